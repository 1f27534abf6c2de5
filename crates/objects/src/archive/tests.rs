//! Archives that pass, and archives that must not.

use super::*;
use crate::error::Flaw;
use crate::sample::{Archive, checksummed, gzip, header, noise, record};

mod properties;

pub(super) const SMALL: Limits =
    Limits { bytes: 1 << 20, unpacked: 1 << 20, ratio: 200, free: 1 << 20, entries: 50, path: 200 };

/// Judges an archive that arrives in pieces of this size.
pub(super) fn check_in(pieces: usize, bytes: &[u8], limits: Limits) -> Result<Contents, Refused> {
    let mut checker = Checker::new(limits);
    for piece in bytes.chunks(pieces) {
        checker.push(piece)?;
    }
    checker.finish()
}

fn check(bytes: &[u8]) -> Result<Contents, Refused> {
    let answers = [1, 7, 511, 512, 513, usize::MAX].map(|pieces| check_in(pieces, bytes, SMALL));
    let [first, others @ ..] = answers;
    for other in others {
        assert_eq!(first, other, "the size of the pieces changed the answer");
    }
    first
}

/// What is wrong with the only wrong entry of an archive.
fn flaw(archive: Archive) -> (String, Flaw) {
    match check(&archive.gz()) {
        Err(Refused::Entry { name, flaw }) => (name, flaw),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_valid_archive_passes() {
    let long = format!("{}/task.py", "very_long_name".repeat(9));
    let archive = Archive::new()
        .entry(b'g', b"pax_global_header", b"", record("comment", "1234567").as_bytes())
        .directory("./")
        .directory("dags/")
        .file("dags/first.py", b"print()")
        .file("dags/large.bin", &[7; 5000])
        .file("dags/empty.py", b"")
        .symlink("dags/latest.py", "first.py")
        .symlink("dags/shared", "../include")
        .hardlink("dags/same.py", "./dags/first.py")
        .pax(&[("path", &long), ("mtime", "1800000000.5")])
        .file("dags/cut-off", b"named before")
        .entry(b'L', b"././@LongLink", b"", format!("gnu/{long}\0").as_bytes())
        .file("gnu/cut-off", b"named before")
        .entry(b'K', b"././@LongLink", b"", b"dags/first.py\0")
        .symlink("long-link", "dags/fir")
        .entry(0, b"old/", b"", b"")
        .entry(0, b"old/file", b"", b"v7")
        .file("dags/first.py", b"appended: the last one counts");
    let tar = archive.clone().tar();
    let gz = archive.gz();
    let expected = Contents { bytes: gz.len() as u64, unpacked: tar.len() as u64, entries: 15 };
    assert_eq!(check(&gz), Ok(expected));
    let halves = [gzip(&tar[..700]), gzip(&tar[700..])].concat();
    assert_eq!(check(&halves).unwrap().entries, 15, "gzip data may come in several members");
    assert_eq!(check(&Archive::new().gz()).unwrap().entries, 0, "an archive may be empty");
}

#[test]
fn data_that_is_not_gzip_is_refused() {
    let good = Archive::new().file("a", b"b").gz();
    for bytes in [&b""[..], b"\x1f", b"PK\x03\x04", b"hello", &Archive::new().file("a", b"b").tar()] {
        assert_eq!(check(bytes), Err(Refused::NotGzip));
    }
    for end in [3, 10, 12, good.len() / 2, good.len() - 8, good.len() - 1] {
        assert_eq!(check(&good[..end]), Err(Refused::BrokenGzip), "cut off after {end} bytes");
    }
    assert_eq!(check(&[&good[..], b"x"].concat()), Err(Refused::BrokenGzip));
    assert_eq!(check(&[&good[..], &[0; 10]].concat()), Err(Refused::BrokenGzip));
    let mut damaged = good.clone();
    let last = damaged.len() - 6;
    damaged[last] ^= 1;
    assert_eq!(check(&damaged), Err(Refused::BrokenGzip), "the checksum is wrong");
}

#[test]
fn data_that_is_not_a_tar_is_refused() {
    let not_tar = |bytes: &[u8]| match check(&gzip(bytes)) {
        Err(Refused::NotTar(why)) => why,
        other => panic!("{other:?}"),
    };
    assert_eq!(not_tar(b""), "it is empty");
    assert_eq!(not_tar(b"hello"), "it ends before its end-of-archive marker");
    assert_eq!(not_tar(&[b'x'; 2048]), "it does not begin with a tar header");
    let tar = Archive::new().file("a", &[1; 600]).tar();
    assert_eq!(not_tar(&tar[..1100]), "it ends before its end-of-archive marker");
    assert_eq!(not_tar(&tar[..1536]), "it ends before its end-of-archive marker", "no end mark at all");
    assert_eq!(not_tar(&tar[..2048]), "it ends before its end-of-archive marker", "half an end mark");
    assert_eq!(not_tar(&[&tar[..], &[0; 7]].concat()), "it does not end with a full block");
    assert_eq!(not_tar(&[&tar[..], &tar].concat()), "data follows its end-of-archive marker");
    assert_eq!(not_tar(&Archive::new().pax(&[("path", "a")]).tar()), "its last entry is missing");
}

#[test]
fn paths_that_leave_the_tree_are_refused() {
    for (name, expected) in [
        ("/etc/passwd", Flaw::Absolute),
        ("../up", Flaw::Parent),
        ("dags/../../up", Flaw::Parent),
        ("dags/..", Flaw::Parent),
        ("", Flaw::EmptyPath),
        ("./", Flaw::Ambiguous("a file with the name of a directory")),
        (".", Flaw::EmptyPath),
        ("line\nbreak", Flaw::NotText),
    ] {
        let shown = name.replace('\n', "\u{fffd}");
        assert_eq!(flaw(Archive::new().file(name, b"x")), (shown.clone(), expected.clone()), "{name}");
        if !name.is_empty() && name != "./" {
            let by_pax = Archive::new().pax(&[("path", name)]).file("innocent", b"x");
            assert_eq!(flaw(by_pax), (shown.clone(), expected.clone()), "{name} by an extended header");
            let long = Archive::new().entry(b'L', b"", b"", name.as_bytes()).file("innocent", b"x");
            assert_eq!(flaw(long), (shown, expected), "{name} as a long name");
        }
    }
    assert_eq!(flaw(Archive::new().entry(b'0', b"\xff", b"", b"")).1, Flaw::NotText);
    let mut split = header(b'0', b"passwd", b"", 0);
    split[345..352].copy_from_slice(b"/../etc");
    assert_eq!(flaw(Archive::new().raw(&checksummed(split))).0, "/../etc/passwd");
}

#[test]
fn links_that_leave_the_tree_are_refused() {
    let leaves = |target: &str| Flaw::LeavesTree(target.into());
    for (archive, expected) in [
        (Archive::new().symlink("a", "/etc"), leaves("/etc")),
        (Archive::new().symlink("a", "../b"), leaves("../b")),
        (Archive::new().symlink("a/b", "../../c"), leaves("../../c")),
        (Archive::new().symlink("a", ""), leaves("")),
        // Through `here` the second one would be one step above the archive.
        (Archive::new().symlink("here", ".").symlink("there", "here/.."), leaves("here/..")),
        (Archive::new().symlink("a", "b").file("a/c", b"x"), Flaw::Collides("a".into())),
        (Archive::new().symlink("a", "b").symlink("a/c", "../d"), Flaw::Collides("a".into())),
        (Archive::new().file("a/c", b"x").symlink("a", "b"), Flaw::Collides("a/c".into())),
        (Archive::new().symlink("a", "b").file("a", b"written through it"), Flaw::Collides("a".into())),
        (Archive::new().symlink("a", "b").symlink("a", "b"), Flaw::Collides("a".into())),
        (Archive::new().symlink("a", "b").directory("a"), Flaw::Collides("a".into())),
        (Archive::new().file("a", b"").file("a/b", b""), Flaw::Collides("a".into())),
        (Archive::new().directory("a").file("a", b""), Flaw::Collides("a".into())),
    ] {
        assert_eq!(flaw(archive).1, expected);
    }
    for target in ["/etc/passwd", "../up", "missing", "dir", "link", "a", ""] {
        let archive = Archive::new().directory("dir").symlink("link", "dir").hardlink("a", target);
        assert_eq!(flaw(archive), ("a".into(), Flaw::LinkToNothing(target.into())), "{target}");
    }
    let by_pax = Archive::new().pax(&[("linkpath", "/etc")]).symlink("a", "innocent");
    assert_eq!(flaw(by_pax).1, leaves("/etc"));
}

#[test]
fn only_files_directories_and_links_are_taken() {
    for (kind, expected) in [
        (b'3', Flaw::Device),
        (b'4', Flaw::Device),
        (b'6', Flaw::Device),
        (b'S', Flaw::Sparse),
        (b'M', Flaw::Kind('M')),
        (b'V', Flaw::Kind('V')),
        (b'\n', Flaw::Kind('?')),
    ] {
        let archive = Archive::new().entry(kind, b"dev/thing", b"", b"");
        assert_eq!(flaw(archive), ("dev/thing".into(), expected));
    }
    assert_eq!(flaw(Archive::new().pax(&[("GNU.sparse.major", "1")]).file("a", b"")).1, Flaw::Sparse);
}

#[test]
fn ambiguous_archives_are_refused() {
    let doubtful = |archive: Archive| match flaw(archive).1 {
        Flaw::Ambiguous(why) => why,
        other => panic!("{other}"),
    };
    let smuggled = Archive::new().pax(&[("size", "0")]).file("a", &Archive::new().symlink("b", "/").tar());
    assert_eq!(doubtful(smuggled), "its two sizes differ");
    assert_eq!(doubtful(Archive::new().entry(b'2', b"a", b"b", &[0; 512])), "only files have content");
    assert_eq!(doubtful(Archive::new().entry(b'5', b"a", b"", &[0; 512])), "only files have content");
    let twice = Archive::new().pax(&[("path", "a")]).pax(&[("path", "b")]).file("c", b"");
    assert_eq!(doubtful(twice), "two headers of the same kind describe one entry");
    let both = Archive::new().pax(&[("path", "a")]).entry(b'L', b"", b"", b"b").file("c", b"");
    assert_eq!(doubtful(both), "it has two long names");
    let both = Archive::new().pax(&[("linkpath", "a")]).entry(b'K', b"", b"", b"b").symlink("c", "d");
    assert_eq!(doubtful(both), "it has two long link targets");
    let global =
        Archive::new().entry(b'g', b"g", b"", record("path", "/etc/passwd").as_bytes()).file("a", b"");
    assert_eq!(doubtful(global), "a global header sets names or sizes of entries");
    let named = Archive::new().entry(0, b"a/", b"", b"");
    assert_eq!(check(&named.gz()).unwrap().entries, 1, "how directories were marked once");
    let renamed = Archive::new().pax(&[("path", "b")]).entry(0, b"a/", b"", b"");
    assert_eq!(doubtful(renamed), "a file with the name of a directory");
    let name = b"good\0/../bad".as_slice();
    let hidden = Archive::new().entry(b'L', b"", b"", name).file("c", b"");
    assert_eq!(flaw(hidden).1, Flaw::NotText);
}

#[test]
fn damaged_headers_are_refused() {
    let damaged = |change: fn(&mut [u8; 512])| {
        let mut block = header(b'0', b"second", b"", 0);
        change(&mut block);
        match flaw(Archive::new().file("first", b"").raw(&block)) {
            (name, Flaw::Header(why)) => {
                assert_eq!(name, "second");
                why
            }
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(damaged(|block| block[300] ^= 1), "its checksum is wrong");
    assert_eq!(damaged(|block| block[148] = b'x'), "it has no checksum");
    assert_eq!(
        damaged(|block| {
            block[124..136].copy_from_slice(b"not a number");
            *block = checksummed(*block);
        }),
        "its size is not a number"
    );
    assert_eq!(
        damaged(|block| {
            block[124..136].copy_from_slice(b"\x80\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff");
            *block = checksummed(*block);
        }),
        "its size is not a number"
    );
    let huge = Archive::new().raw(&header(b'x', b"x", b"", 1 << 30));
    assert_eq!(flaw(huge).1, Flaw::Header("it is too large to describe an entry"));
}

#[test]
fn limits_hold() {
    let with = |limits: Limits, archive: Archive| check_in(512, &archive.gz(), limits);
    let bomb = Archive::new().file("zeros", &vec![0; 2 << 20]);
    assert!(bomb.clone().gz().len() < 20_000);
    assert_eq!(with(SMALL, bomb), Err(Refused::UnpacksTooLarge(1 << 20)));
    let announced = Archive::new().raw(&header(b'0', b"large", b"", 1 << 40)).raw(&[0; 4096]);
    assert_eq!(with(SMALL, announced), Err(Refused::NotTar("it ends before its end-of-archive marker")));
    let few = Limits { bytes: 100, ..SMALL };
    assert_eq!(with(few, Archive::new().file("noise", &noise(1000))), Err(Refused::TooLarge(100)));
    let many = (0..51).fold(Archive::new(), |archive, i| archive.file(&format!("f{i}"), b""));
    assert_eq!(with(SMALL, many), Err(Refused::TooManyEntries(50)));
    let described = (0..50)
        .fold(Archive::new(), |archive, i| archive.pax(&[("mtime", "1.5")]).file(&format!("f{i}"), b""));
    assert_eq!(with(SMALL, described).unwrap().entries, 50, "what describes an entry is none");
    let global = (0..51).fold(Archive::new(), |archive, _| archive.entry(b'g', b"g", b"", b""));
    assert_eq!(with(SMALL, global), Err(Refused::TooManyEntries(50)));
    let long = "d/".repeat(100) + "f";
    assert_eq!(flaw(Archive::new().pax(&[("path", &long)]).file("x", b"")).1, Flaw::LongPath(200));
    assert_eq!(flaw(Archive::new().pax(&[("linkpath", &long)]).symlink("x", "y")).1, Flaw::LongPath(200));
}

/// What was found: 1 MiB that became 1 GiB.
#[test]
fn an_archive_unpacks_to_no_more_than_its_size_allows() {
    let limits = Limits { bytes: 64 << 20, unpacked: 64 << 20, ratio: 200, free: 4 << 20, ..SMALL };
    let bomb = Archive::new().file("zeros", &vec![0; 8 << 20]).gz();
    let (bytes, most) = (bomb.len() as u64, bomb.len() as u64 * 200 + (4 << 20));
    assert!(bytes < 20_000);
    for pieces in [1000, 4096, usize::MAX] {
        assert_eq!(check_in(pieces, &bomb, limits), Err(Refused::UnpacksTooMuch { bytes, most }));
    }
    let small = Archive::new().file("zeros", &vec![0; 3 << 20]).gz();
    assert!(check_in(4096, &small, limits).is_ok(), "a little may compress as well as it likes");
    let mixed = Archive::new().file("zeros", &vec![0; 8 << 20]).file("noise", &noise(60_000)).gz();
    for pieces in [1000, usize::MAX] {
        assert!(check_in(pieces, &mixed, limits).is_ok(), "the whole counts, wherever its zeros are");
    }
    assert_eq!(Limits::default().unpacked_of(1 << 20), (200 << 20) + (32 << 20));
    assert_eq!(Limits::default().unpacked_of(1 << 30), 4 << 30);
}

#[test]
fn refusals_name_the_entry_and_say_what_is_wrong() {
    let refused = |archive: Archive| check(&archive.gz()).unwrap_err().to_string();
    assert_eq!(refused(Archive::new().file("../x", b"")), "the entry `../x` has `..` in its path");
    assert_eq!(
        refused(Archive::new().symlink("a", "/etc/passwd")),
        "the entry `a` is a link to `/etc/passwd`, which is or may be outside the archive"
    );
    let long = "x".repeat(1000);
    let shown = refused(Archive::new().pax(&[("path", &long)]).file("x", b""));
    assert_eq!(shown, format!("the entry `{}…` has a path of more than 200 bytes", &long[..200]));
}

/// The files of an archive that arrives in pieces of this size: path, size and the beginning of the hash.
fn list_in(pieces: usize, bytes: &[u8], most: usize) -> (Vec<(String, u64, String)>, u64) {
    let mut checker = Checker::listing(SMALL);
    bytes.chunks(pieces).for_each(|piece| checker.push(piece).unwrap());
    let listed = checker.finish_listing(most).unwrap();
    let shown = |file: ArchivedFile| {
        let hash = podium_api::hex(&file.sha256[..4]);
        (file.path, file.size, hash)
    };
    (listed.files.into_iter().map(shown).collect(), listed.total)
}

#[test]
fn files_are_listed_in_order_with_what_they_hold_in_the_end() {
    let archive = Archive::new()
        .directory("dags/")
        .file("./dags//b.py", b"print()")
        .hardlink("dags/same.py", "./dags/b.py")
        .file("dags/empty.py", b"")
        .symlink("dags/latest.py", "b.py")
        .file("a.bin", &[7; 5000])
        .file("dags/b.py", b"appended: the last one counts");
    let bytes = archive.gz();
    let expected = [
        ("a.bin", 5000, "f302a3f8"),
        ("dags/b.py", 29, "643bd9ff"),
        ("dags/empty.py", 0, "e3b0c442"),
        ("dags/same.py", 7, "525d5133"),
    ]
    .map(|(path, size, hash)| (path.to_owned(), size, hash.to_owned()));
    for pieces in [1, 7, 511, 512, 513, usize::MAX] {
        assert_eq!(list_in(pieces, &bytes, 100), (expected.to_vec(), 4), "in pieces of {pieces}");
    }
    assert_eq!(list_in(512, &bytes, 2), (expected[..2].to_vec(), 4), "the first, and how many there are");
    assert_eq!(Checker::listing(SMALL).finish_listing(1), Err(Refused::NotGzip));
}
