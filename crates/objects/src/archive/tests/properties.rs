//! What must hold for any archive at all: the checker never panics, judges alike in whatever pieces it arrives, and
//! lets nothing pass that a trusting program would unpack outside of the tree.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
struct Entry {
    kind: u8,
    name: String,
    link: String,
}

/// Few names and many ways up, so that links conspire often.
fn entry() -> impl Strategy<Value = Entry> {
    let kind = prop_oneof![2 => Just(b'0'), 1 => Just(b'1'), 8 => Just(b'2'), 1 => Just(b'5')];
    let name = prop::sample::select(vec!["a", "b", "a/a", "a/b", "a/b/a", "./b/a", "../a"]);
    let links =
        vec![".", "..", "a", "b", "a/..", "b/..", "a/a", "../a", "../b", "../..", "../a/..", "/a", "b/../a"];
    let link = prop::sample::select(links);
    (kind, name, link).prop_map(|(kind, name, link)| Entry { kind, name: name.into(), link: link.into() })
}

fn packed(entries: &[Entry]) -> Vec<u8> {
    let add = |archive: Archive, entry: &Entry| {
        let content: &[u8] = if entry.kind == b'0' { b"content" } else { b"" };
        archive.entry(entry.kind, entry.name.as_bytes(), entry.link.as_bytes(), content)
    };
    entries.iter().fold(Archive::new(), add).gz()
}

/// Those entries that pass together: as many as a hostile sender could get through.
fn passing(entries: Vec<Entry>) -> Vec<Entry> {
    let mut passing = Vec::new();
    for entry in entries {
        passing.push(entry);
        if check_in(4096, &packed(&passing), SMALL).is_err() {
            passing.pop();
        }
    }
    passing
}

/// Unpacks like a program that trusts its input: it follows every link and replaces nothing.
fn unpack(entries: &[Entry], into: &Path) {
    for entry in entries {
        let at = into.join(&entry.name);
        if let Some(parent) = at.parent() {
            let _ = fs::create_dir_all(parent);
        }
        let _ = match entry.kind {
            b'0' => fs::write(&at, "content"),
            b'1' => fs::hard_link(into.join(&entry.link), &at),
            b'2' => std::os::unix::fs::symlink(&entry.link, &at),
            _ => fs::create_dir_all(&at),
        };
    }
}

/// Every path that can be reached below a directory, links followed once, stays below it.
fn stays_below(directory: &Path, root: &Path) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        if let Ok(real) = entry.path().canonicalize() {
            assert!(real.starts_with(root), "{} leads to {}", entry.path().display(), real.display());
        }
        if entry.file_type().unwrap().is_dir() {
            stays_below(&entry.path(), root);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_valid_archive_unpacks_inside_its_directory(entries in prop::collection::vec(entry(), 1..12)) {
        let passing = passing(entries);
        let outside = tempfile::tempdir().unwrap();
        let inside = outside.path().canonicalize().unwrap().join("inside");
        fs::create_dir(&inside).unwrap();
        unpack(&passing, &inside);
        stays_below(&inside, &inside);
        prop_assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_size_of_the_pieces_does_not_matter(entries in prop::collection::vec(entry(), 0..5), pieces in 1..2000_usize) {
        let bytes = packed(&entries);
        prop_assert_eq!(check_in(pieces, &bytes, SMALL), check_in(usize::MAX, &bytes, SMALL));
    }

    #[test]
    fn damaged_archives_are_refused_or_the_same(
        entries in prop::collection::vec(entry(), 0..5),
        at in any::<prop::sample::Index>(),
        flip in 1..=255_u8,
    ) {
        let good = packed(&entries);
        let mut bad = good.clone();
        let at = at.index(bad.len());
        bad[at] ^= flip;
        // Some bytes of the gzip header mean nothing.
        if at >= 10 && check_in(97, &bad, SMALL).is_ok() {
            prop_assert_eq!(check_in(97, &good, SMALL).map(|c| c.unpacked), check_in(97, &bad, SMALL).map(|c| c.unpacked));
        }
    }

    #[test]
    fn damaged_headers_never_confuse(
        entries in prop::collection::vec(entry(), 1..5),
        at in any::<prop::sample::Index>(),
        bytes in prop::collection::vec(any::<u8>(), 1..40),
    ) {
        let add = |archive: Archive, entry: &Entry| archive.entry(entry.kind, entry.name.as_bytes(), entry.link.as_bytes(), b"");
        let mut tar = entries.iter().fold(Archive::new(), add).tar();
        let at = at.index(tar.len());
        let end = (at + bytes.len()).min(tar.len());
        tar[at..end].copy_from_slice(&bytes[..end - at]);
        for block in tar.chunks_exact_mut(512).filter(|block| block.iter().any(|byte| *byte != 0)) {
            let mended = checksummed(block.try_into().unwrap());
            block.copy_from_slice(&mended);
        }
        let _ = check_in(512, &gzip(&tar), SMALL);
    }

    #[test]
    fn noise_never_confuses(bytes in prop::collection::vec(any::<u8>(), 0..3000), pieces in 1..700_usize) {
        prop_assert!(check_in(pieces, &bytes, SMALL).is_err());
        prop_assert!(check_in(pieces, &gzip(&bytes), SMALL).is_err());
        let begun = [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3][..], &bytes].concat();
        prop_assert!(check_in(pieces, &begun, SMALL).is_err());
    }
}
