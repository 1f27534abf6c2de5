//! Trees that break whoever walks them by path, by recursion or with a descriptor for each level.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::*;

/// Directories one in another, really made, with a file in the last.
pub(in super::super) fn nest(directory: &Path, levels: usize) {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at = openat(CWD, directory, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&at, "nested", Mode::from_raw_mode(0o755)).unwrap();
        at = openat(&at, "nested", flags, Mode::empty()).unwrap();
    }
    let created = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC;
    let file = openat(&at, "deepest", created, Mode::from_raw_mode(0o600)).unwrap();
    rustix::io::write(&file, b"down here").unwrap();
}

fn names(directory: &Path, most: usize) -> (BTreeSet<String>, u64) {
    let (mut walk, mut names) = (Walk::new(directory).unwrap(), BTreeSet::new());
    while !walk
        .advance(most, |seen| {
            names.insert(seen.name.to_str().unwrap().to_owned());
            Ok(())
        })
        .unwrap()
    {}
    (names, walk.lost)
}

#[test]
fn fifteen_thousand_nested_directories_are_walked_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    fs::create_dir(&tree).unwrap();
    nest(&tree, 15_000);
    for most in [7, usize::MAX] {
        let (mut walk, mut directories, mut bytes) = (Walk::new(&tree).unwrap(), 0, 0);
        let mut visit = |seen: &Entry<'_>| {
            match is_directory(seen.stat.st_mode) {
                true => directories += 1,
                false => bytes += seen.stat.st_size,
            }
            Ok(())
        };
        while !walk.advance(most, &mut visit).unwrap() {}
        assert_eq!((directories, bytes, walk.lost), (15_000, 9, 0));
    }
    // On the smallest stack that a thread may have.
    let small = std::thread::Builder::new().stack_size(64 * 1024);
    small.spawn(move || remove(&tree).unwrap()).unwrap().join().unwrap();
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn few_descriptors_are_enough() {
    // Limits are the whole process's: in one of its own.
    const INSIDE: &str = "PODIUM_TEST_TREE";
    if let Some(tree) = std::env::var_os(INSIDE) {
        let limits = getrlimit(Resource::Nofile);
        let taken = fs::read_dir("/proc/self/fd").unwrap().count() as u64;
        setrlimit(Resource::Nofile, Rlimit { current: Some(taken + 20), ..limits }).unwrap();
        assert_eq!(names(Path::new(&tree), usize::MAX).1, 0);
        setrlimit(Resource::Nofile, Rlimit { current: Some(taken + 4), ..limits }).unwrap();
        return remove(Path::new(&tree)).unwrap();
    }
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    for side in ["a", "b", "c"] {
        fs::create_dir_all(tree.join(side)).unwrap();
        nest(&tree.join(side), 300);
    }
    let mut again = Command::new("/proc/self/exe");
    again
        .arg0("again")
        .args(["--exact", "local::trees::tests::few_descriptors_are_enough"])
        .env(INSIDE, &tree);
    let output = again.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    assert!(!tree.exists());
}

#[test]
fn links_are_not_followed_and_inaccessible_directories_are_opened() {
    let directory = tempfile::tempdir().unwrap();
    let (tree, outside) = (directory.path().join("tree"), directory.path().join("outside"));
    fs::create_dir_all(tree.join("closed/within/further")).unwrap();
    fs::create_dir_all(outside.join("kept")).unwrap();
    fs::set_permissions(&outside, fs::Permissions::from_mode(0o711)).unwrap();
    symlink(&outside, tree.join("link")).unwrap();
    symlink(&outside, tree.join("closed/within/link")).unwrap();
    symlink(&outside, directory.path().join("tree-by-link")).unwrap();
    rustix::fs::mkfifoat(CWD, tree.join("pipe"), Mode::from_raw_mode(0o600)).unwrap();
    fs::write(tree.join("closed/within/file"), "").unwrap();
    for closed in ["closed/within/further", "closed/within", "closed"] {
        fs::set_permissions(tree.join(closed), fs::Permissions::from_mode(0o0)).unwrap();
    }
    let whole = ["closed", "file", "further", "link", "pipe", "within"].map(str::to_owned);
    assert_eq!(names(&tree, 1), (BTreeSet::from(whole), 0));
    remove(&tree).unwrap();
    remove(&directory.path().join("tree-by-link")).unwrap();
    remove(&directory.path().join("nothing")).unwrap();
    assert!(outside.join("kept").exists() && !tree.exists());
    assert_eq!(fs::metadata(&outside).unwrap().permissions().mode() & 0o777, 0o711);
}

#[test]
fn a_removal_continues_and_spares_the_excluded_name() {
    let directory = tempfile::tempdir().unwrap();
    for name in ["a", "b", "c"] {
        fs::create_dir_all(directory.path().join(name)).unwrap();
        nest(&directory.path().join(name), 20);
    }
    fs::write(directory.path().join("kept"), "").unwrap();
    let mut rounds = 0;
    while clear(directory.path(), Some(c"kept"), 5).unwrap() == Remaining::Something {
        rounds += 1;
        assert!(directory.path().join("kept").exists());
    }
    assert!(rounds > 10, "{rounds}");
    let left: Vec<_> =
        fs::read_dir(directory.path()).unwrap().flatten().map(|left| left.file_name()).collect();
    assert_eq!(left, ["kept"]);
    assert_eq!(clear(&directory.path().join("nothing"), None, 1).unwrap(), Remaining::Nothing);
}

#[test]
fn a_directory_that_is_moved_during_the_walk_does_not_lead_it_elsewhere() {
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    fs::create_dir_all(tree.join("side")).unwrap();
    fs::create_dir_all(directory.path().join("outside/secret")).unwrap();
    nest(&tree, 40);
    let deep: std::path::PathBuf = std::iter::repeat_n("nested", 30).collect();
    let (mut walk, mut seen) = (Walk::new(&tree).unwrap(), Vec::new());
    let note = |seen: &mut Vec<String>, entry: &Entry<'_>| seen.push(entry.name.to_str().unwrap().to_owned());
    while seen.len() < 35 {
        walk.advance(1, |entry| {
            note(&mut seen, entry);
            Ok(())
        })
        .unwrap();
    }
    fs::rename(tree.join(deep), directory.path().join("outside/moved")).unwrap();
    while !walk
        .advance(1, |entry| {
            note(&mut seen, entry);
            Ok(())
        })
        .unwrap()
    {}
    assert!(walk.lost > 0 && !seen.contains(&"secret".to_owned()));
    assert!(seen.contains(&"side".to_owned()));
}

#[test]
fn a_directory_that_becomes_inaccessible_during_the_walk_is_opened_again() {
    // Nothing is closed to the administrator: as somebody else, in a process of its own.
    const INSIDE: &str = "PODIUM_TEST_CLOSED_TREE";
    if let Some(tree) = std::env::var_os(INSIDE) {
        let tree = Path::new(&tree);
        let (mut walk, mut names) = (Walk::new(tree).unwrap(), BTreeSet::new());
        loop {
            fs::set_permissions(tree, fs::Permissions::from_mode(0o600)).unwrap();
            let is_all = walk.advance(1, |seen| {
                names.insert(seen.name.to_str().unwrap().to_owned());
                Ok(())
            });
            if is_all.unwrap() {
                break;
            }
        }
        assert_eq!((names.len(), walk.lost), (3, 0));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let tree = directory.path().join("tree");
    fs::create_dir(&tree).unwrap();
    for name in ["a", "b", "c"] {
        fs::write(tree.join(name), "").unwrap();
    }
    let mut again = Command::new("/proc/self/exe");
    if rustix::process::geteuid().is_root() {
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
        std::os::unix::fs::chown(&tree, Some(65_534), None).unwrap();
        again.uid(65_534);
    }
    again
        .arg0("again")
        .args([
            "--exact",
            "local::trees::tests::a_directory_that_becomes_inaccessible_during_the_walk_is_opened_again",
        ])
        .current_dir("/")
        .env(INSIDE, &tree);
    let output = again.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
