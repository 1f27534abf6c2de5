//! Which system files a confined process may read: as few as needed, and none that hold the operator's secrets.
//!
//! A rule covers everything below a directory, so a directory that contains something protected is never granted as a
//! whole: its other entries are granted one by one.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::process::geteuid;

/// How many levels of a directory are searched for files that are not world-readable.
const LOOKS_EVERYWHERE: u32 = 32;

/// System directories, and how many levels are searched for files that are not world-readable.
const SYSTEM: &[(&str, u32)] = &[
    ("/bin", 0),
    ("/etc", LOOKS_EVERYWHERE),
    ("/lib", 0),
    ("/lib32", 0),
    ("/lib64", 0),
    ("/opt", 2),
    ("/proc", 0),
    ("/sbin", 0),
    ("/sys", 0),
    ("/usr", 0),
];

/// Harmless devices: no disks, memory or other terminals.
const DEVICES: &[&str] = &["/dev/null", "/dev/full", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Kernel interfaces that programs do not need.
const KERNEL: &[&str] = &["/sys/firmware", "/sys/fs/bpf", "/sys/kernel/debug", "/sys/kernel/tracing"];

/// Files of `/etc` that are links to where a service writes them.
const LINKED: &[&str] = &["/etc/hosts", "/etc/localtime", "/etc/resolv.conf"];

/// Where services write the resolver configuration. They replace their files, so a rule for a file would become
/// useless.
const RESOLVERS: &[&str] = &["/run/resolvconf", "/run/systemd/resolve"];
/// The same, next to which there may be secrets.
const NETWORK: &str = "/run/NetworkManager";

/// What is granted at a path.
enum Found {
    /// All of it.
    Whole,
    /// Only these.
    Parts(Vec<PathBuf>),
}

/// The system paths that are readable, except the protected ones.
pub(super) fn system(protected: &[PathBuf]) -> Vec<PathBuf> {
    let protected: Vec<PathBuf> = protected.iter().cloned().chain(KERNEL.iter().map(PathBuf::from)).collect();
    let mut all: Vec<PathBuf> = DEVICES.iter().map(PathBuf::from).collect();
    for (path, looks) in SYSTEM {
        let Ok(path) = fs::canonicalize(path) else { continue };
        all.extend(parts(&path, &protected, Some(*looks)));
    }
    for link in LINKED {
        let target = fs::canonicalize(link).ok().filter(|target| !target.starts_with("/etc"));
        // Its writer replaces the file, which would make a rule for it useless.
        let directory = target.as_deref().and_then(Path::parent).filter(|above| *above != Path::new("/"));
        all.extend(directory.into_iter().flat_map(|above| parts(above, &protected, Some(1))));
    }
    all.extend(RESOLVERS.iter().flat_map(|path| named(Path::new(path), &protected)));
    if let Ok(network) = fs::canonicalize(NETWORK) {
        all.extend(parts(&network, &protected, Some(LOOKS_EVERYWHERE)));
    }
    all.sort();
    all.dedup();
    all
}

/// What is granted of an explicitly named path, except the protected paths below it.
pub(super) fn named(path: &Path, protected: &[PathBuf]) -> Vec<PathBuf> {
    let Ok(path) = fs::canonicalize(path) else { return Vec::new() };
    if path == Path::new("/") { Vec::new() } else { parts(&path, protected, None) }
}

fn parts(path: &Path, protected: &[PathBuf], looks: Option<u32>) -> Vec<PathBuf> {
    match found(path, protected, looks) {
        Found::Whole => vec![path.to_owned()],
        Found::Parts(parts) => parts,
    }
}

/// Examines a path, with the number of levels in which everything must be world-readable.
fn found(path: &Path, protected: &[PathBuf], looks: Option<u32>) -> Found {
    const NOTHING: Found = Found::Parts(Vec::new());
    let Ok(metadata) = fs::symlink_metadata(path) else { return NOTHING };
    let is_closed = looks.is_some() && is_closed(path, &metadata);
    // The kernel follows links; the rules of their targets apply.
    if is_closed || metadata.is_symlink() || protected.iter().any(|one| one == path) {
        return NOTHING;
    }
    let holds_protected = protected.iter().any(|one| one.starts_with(path));
    let deeper = looks.map(|looks| looks.saturating_sub(1));
    if !metadata.is_dir() || (!holds_protected && looks.unwrap_or(0) == 0) {
        return Found::Whole;
    }
    let Ok(entries) = fs::read_dir(path) else {
        // What this process cannot read needs no protection.
        return if holds_protected { NOTHING } else { Found::Whole };
    };
    let (mut is_whole, mut all) = (!holds_protected, Vec::new());
    for entry in entries.flatten() {
        let below = entry.path();
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        match found(&below, protected, deeper) {
            Found::Whole => all.push(below),
            Found::Parts(parts) => {
                is_whole &= is_link;
                all.extend(parts);
            }
        }
    }
    if is_whole { Found::Whole } else { Found::Parts(all) }
}

/// Whether something is not world-readable, but readable for this process. What its user may not read anyway needs no
/// rule: its directory can be granted as a whole, so that files that are replaced later stay readable.
fn is_closed(path: &Path, metadata: &fs::Metadata) -> bool {
    let (wanted, asked) = if metadata.is_dir() { (0o005, Access::EXEC_OK) } else { (0o004, Access::READ_OK) };
    let is_everybodys = metadata.mode() & wanted == wanted;
    // Sockets cannot be read.
    if is_everybodys || metadata.file_type().is_socket() {
        return false;
    }
    let user = geteuid();
    let may = |asked| access(path, asked).is_ok();
    user.is_root() || metadata.uid() == user.as_raw() || may(asked) || may(Access::READ_OK)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn file(path: &Path, mode: u32) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        for above in path.ancestors().skip(1).take_while(|above| above.starts_with("/tmp")) {
            if above != Path::new("/tmp") {
                fs::set_permissions(above, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
    }

    #[test]
    fn everything_around_a_protected_path_is_granted() {
        let directory = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let at = |name: &str| root.join(name);
        for name in ["tool/bin/run", "podium/data/owner-token", "podium/readme", "else/file"] {
            file(&at(name), 0o644);
        }
        std::os::unix::fs::symlink(at("podium/data"), at("link")).unwrap();
        let sorted = |mut paths: Vec<PathBuf>| {
            paths.sort();
            paths
        };
        let protected = [at("podium/data")];
        let expected = vec![at("else"), at("podium/readme"), at("tool")];
        assert_eq!(sorted(named(&root, &protected)), expected);
        assert_eq!(named(&root, &[]), std::slice::from_ref(&root));
        assert_eq!(named(&at("podium/data"), &protected), Vec::<PathBuf>::new(), "it is protected itself");
        let own = at("podium/data/own");
        file(&own.join("file"), 0o600);
        assert_eq!(named(&own, &protected), [own], "whoever names a place within means it");
        assert_eq!(named(Path::new("/"), &[]), Vec::<PathBuf>::new(), "never everything");
    }

    #[test]
    fn files_that_are_not_world_readable_are_not_granted() {
        let directory = tempfile::Builder::new().tempdir_in("/tmp").unwrap();
        let root = fs::canonicalize(directory.path()).unwrap();
        let at = |name: &str| root.join(name);
        for (name, mode) in
            [("passwd", 0o644), ("shadow", 0o640), ("ssl/certs/ca", 0o644), ("ssl/private/key", 0o640)]
        {
            file(&at(name), mode);
        }
        let mut granted = parts(&root, &[], Some(LOOKS_EVERYWHERE));
        granted.sort();
        assert_eq!(granted, [at("passwd"), at("ssl/certs")]);
        assert!(
            !system(&[]).iter().any(|path| path == Path::new("/dev") || path == Path::new("/etc/shadow"))
        );
    }
}
