//! Installed layers: directories that are complete from the moment they have their name, and never change.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{AtFlags, FileType, Gid, Mode, Uid, chmodat, chownat};

use crate::blocking::assert_may_block;
use crate::local::layout::{rename, write_whole};
use crate::local::runtimes::{READY, Runtime};
use crate::local::trees::{self, Walk};
use crate::local::unused_runtimes;

/// The directory of a layer for the Python path.
pub(super) fn site(layer: &Path) -> PathBuf {
    layer.join("site")
}

/// Whether a layer is complete.
pub(super) fn is_ready(layer: &Path) -> bool {
    assert_may_block();
    layer.join(READY).is_file()
}

/// The layers that are installed.
pub(super) fn installed(layers: &Path) -> Vec<String> {
    assert_may_block();
    let entries = fs::read_dir(layers).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| !name.starts_with('.')).collect()
}

/// Removes a layer that has been unused for longer than this; returns whether it did.
pub(super) fn remove_if_idle(layer: &Path, kept_for: Duration) -> io::Result<bool> {
    assert_may_block();
    if unused_runtimes::unused_for(layer).is_none_or(|idle| idle <= kept_for) {
        return Ok(false);
    }
    unused_runtimes::remove(layer).map(|()| true)
}

/// Makes installed packages a layer of a runtime: read-only for everybody, without anything that the runtime has.
pub(super) fn place(installed: &Path, layer: &Path, runtime: &Runtime) -> io::Result<()> {
    assert_may_block();
    let name = layer.file_name().unwrap_or_default().to_string_lossy();
    let draft = layer.with_file_name(format!(".{name}"));
    trees::remove(&draft)?;
    fs::create_dir(&draft)?;
    fs::set_permissions(&draft, fs::Permissions::from_mode(0o755))?;
    let site = site(&draft);
    rename(installed, &site)?;
    take_over(&site)?;
    if let Some(own) = runtime.site_packages()? {
        remove_what_is_in(&site, &own)?;
    }
    write_whole(&draft.join(READY), b"", 0o644)?;
    trees::remove(layer)?;
    rename(&draft, layer)
}

/// Takes everything away from the user that installed it. Nothing may be there that a wheel does not bring.
fn take_over(site: &Path) -> io::Result<()> {
    let is_root = rustix::process::geteuid().is_root();
    let owner = is_root.then_some((Uid::ROOT, Gid::ROOT));
    if let Some((user, group)) = owner {
        std::os::unix::fs::chown(site, Some(user.as_raw()), Some(group.as_raw()))?;
    }
    fs::set_permissions(site, fs::Permissions::from_mode(0o755))?;
    let mut walk = Walk::new(site)?;
    walk.advance(usize::MAX, |entry| {
        let mode = entry.stat.st_mode;
        let is_program = match FileType::from_raw_mode(mode) {
            FileType::Directory => true,
            FileType::RegularFile => mode & 0o100 != 0,
            _ => return Err(rustix::io::Errno::INVAL),
        };
        if let Some((user, group)) = owner {
            chownat(entry.above, entry.name, Some(user), Some(group), AtFlags::SYMLINK_NOFOLLOW)?;
        }
        let mode = Mode::from_raw_mode(if is_program { 0o755 } else { 0o644 });
        chmodat(entry.above, entry.name, mode, AtFlags::empty())
    })?;
    if walk.lost() > 0 {
        return Err(io::Error::other("the installed packages changed while they were taken over"));
    }
    Ok(())
}

/// Removes files from a layer that the runtime has under the same name: a layer adds packages and replaces none.
fn remove_what_is_in(site: &Path, own: &Path) -> io::Result<()> {
    let mut below = vec![PathBuf::new()];
    while let Some(folder) = below.pop() {
        for entry in fs::read_dir(site.join(&folder))? {
            let entry = entry?;
            let name = folder.join(entry.file_name());
            match fs::symlink_metadata(own.join(&name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
                Ok(found) if found.is_dir() && entry.file_type()?.is_dir() => below.push(name),
                Ok(_) => trees::remove(&entry.path())?,
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_layer_replaces_nothing_of_its_runtime() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str| {
            let path = directory.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, name).unwrap();
        };
        let own = "runtime/lib/python3.12/site-packages";
        for name in
            ["airflow/__init__.py", "airflow/providers/http/__init__.py", "six.py", "requests/__init__.py"]
        {
            write(&format!("{own}/{name}"));
        }
        for name in [
            "airflow/__init__.py",
            "airflow/providers/ftp/__init__.py",
            "six.py/x.py",
            "requests",
            "cowsay/__init__.py",
        ] {
            write(&format!("site/{name}"));
        }
        let runtime = Runtime::at("3.3.2".parse().unwrap(), directory.path().join("runtime"));
        let layer = directory.path().join("layer");
        place(&directory.path().join("site"), &layer, &runtime).unwrap();
        assert!(is_ready(&layer));
        let has = |name: &str| site(&layer).join(name).exists();
        assert!(has("airflow/providers/ftp/__init__.py") && has("cowsay/__init__.py"));
        assert!(!has("airflow/__init__.py") && !has("six.py") && !has("requests"));
        let mode = fs::metadata(site(&layer).join("cowsay/__init__.py")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
    }

    #[test]
    fn what_no_wheel_brings_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("site")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("site/link")).unwrap();
        let runtime = Runtime::at("3.3.2".parse().unwrap(), directory.path().join("runtime"));
        place(&directory.path().join("site"), &directory.path().join("layer"), &runtime).unwrap_err();
    }
}
