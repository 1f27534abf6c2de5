//! Installed layers: directories that are complete from the moment they have their name, and never change.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, RenameFlags, Uid, chmodat, chownat, renameat_with};
use rustix::io::Errno;

use super::job;
use crate::blocking::assert_may_block;
use crate::local::layout::{missing_is_none, rename, write_whole};
use crate::local::runtimes::{READY, Runtime};
use crate::local::trees::{self, Walk};

/// The file with the disk usage of a layer.
const SIZE: &str = "podium-size";

/// The directory of a layer for the Python path.
pub(super) fn site(layer: &Path) -> PathBuf {
    layer.join("site")
}

pub(super) fn is_ready(layer: &Path) -> bool {
    assert_may_block();
    layer.join(READY).is_file()
}

pub(super) fn installed(layers: &Path) -> Vec<String> {
    assert_may_block();
    let entries = fs::read_dir(layers).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.filter(|name| !name.starts_with('.')).collect()
}

/// Makes the packages in the directory of a job a layer of a runtime: read-only for everybody, without anything that the
/// runtime has. If another job has placed the same layer meanwhile, that one stays.
pub(super) fn place(job: &Path, layer: &Path, runtime: &Runtime) -> io::Result<()> {
    assert_may_block();
    let name = job.file_name().unwrap_or_default().to_string_lossy();
    // Of this job alone: one that was abandoned may still be at it.
    let draft = layer.with_file_name(format!(".{name}"));
    let placed = make(&site(job), &draft, runtime).and_then(|()| publish(&draft, layer));
    if placed.is_err() || draft.exists() {
        let _ = trees::remove(&draft);
    }
    placed
}

fn make(installed: &Path, draft: &Path, runtime: &Runtime) -> io::Result<()> {
    fs::create_dir(draft)?;
    fs::set_permissions(draft, fs::Permissions::from_mode(0o755))?;
    let site = site(draft);
    rename(installed, &site)?;
    take_over(&site)?;
    if let Some(own) = runtime.site_packages()? {
        remove_what_is_in(&site, &own)?;
    }
    let bytes = job::size(&site)?.ok_or_else(|| io::Error::other("the packages have too many files"))?;
    write_whole(&draft.join(SIZE), bytes.to_string().as_bytes(), 0o644)?;
    write_whole(&draft.join(READY), b"", 0o644)
}

/// Gives a layer its name, unless there is a complete one.
fn publish(draft: &Path, layer: &Path) -> io::Result<()> {
    let give = || renameat_with(CWD, draft, CWD, layer, RenameFlags::NOREPLACE);
    let given = match give() {
        Err(Errno::EXIST) if is_ready(layer) => return Ok(()),
        Err(Errno::EXIST) => {
            // The rest of one whose removal was interrupted.
            trees::remove(layer)?;
            give()
        }
        given => given,
    };
    given?;
    layer.parent().map_or(Ok(()), |directory| fs::File::open(directory)?.sync_all())
}

/// Removes what interrupted jobs left. None may be running.
pub(super) fn remove_drafts(layers: &Path) -> io::Result<()> {
    assert_may_block();
    for entry in fs::read_dir(layers)? {
        let entry = entry?;
        if entry.file_name().as_encoded_bytes().starts_with(b".") {
            trees::remove(&entry.path())?;
        }
    }
    Ok(())
}

/// How much disk a layer uses, as recorded when it was installed.
pub(in super::super) fn recorded_size(layer: &Path) -> u64 {
    assert_may_block();
    fs::read_to_string(layer.join(SIZE)).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
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
    if walk.lost > 0 {
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
            match missing_is_none(fs::symlink_metadata(own.join(&name)))? {
                None => {}
                Some(found) if found.is_dir() && entry.file_type()?.is_dir() => below.push(name),
                Some(_) => trees::remove(&entry.path())?,
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
            write(&format!("job/site/{name}"));
        }
        let runtime = Runtime::at("3.3.2".parse().unwrap(), directory.path().join("runtime"));
        let layer = directory.path().join("layer");
        place(&directory.path().join("job"), &layer, &runtime).unwrap();
        assert!(is_ready(&layer));
        assert!(recorded_size(&layer) >= 4 * 4096, "{}", recorded_size(&layer));
        let has = |name: &str| site(&layer).join(name).exists();
        assert!(has("airflow/providers/ftp/__init__.py") && has("cowsay/__init__.py"));
        assert!(!has("airflow/__init__.py") && !has("six.py") && !has("requests"));
        let mode = fs::metadata(site(&layer).join("cowsay/__init__.py")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644);
    }

    #[test]
    fn what_no_wheel_brings_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("job/site")).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", directory.path().join("job/site/link")).unwrap();
        let runtime = Runtime::at("3.3.2".parse().unwrap(), directory.path().join("runtime"));
        place(&directory.path().join("job"), &directory.path().join("layer"), &runtime).unwrap_err();
        let left: Vec<_> =
            fs::read_dir(directory.path()).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert_eq!(left, ["job"], "nothing half-done stays behind");
    }

    #[test]
    fn two_jobs_place_one_layer() {
        let directory = tempfile::tempdir().unwrap();
        let runtime = Runtime::at("3.3.2".parse().unwrap(), directory.path().join("runtime"));
        let layers = directory.path().join("layers");
        fs::create_dir(&layers).unwrap();
        let job = |name: &str| {
            let job = directory.path().join(name);
            fs::create_dir_all(job.join("site")).unwrap();
            fs::write(job.join("site/module.py"), name).unwrap();
            job
        };
        // What an interrupted removal left.
        fs::create_dir_all(layers.join("key/site")).unwrap();
        place(&job("one"), &layers.join("key"), &runtime).unwrap();
        place(&job("two"), &layers.join("key"), &runtime).unwrap();
        let module = fs::read_to_string(layers.join("key/site/module.py")).unwrap();
        assert_eq!(module, "one", "a layer never changes");
        assert_eq!(fs::read_dir(&layers).unwrap().count(), 1);
        fs::create_dir(layers.join(".three")).unwrap();
        remove_drafts(&layers).unwrap();
        assert_eq!(installed(&layers), ["key"]);
        assert_eq!(fs::read_dir(&layers).unwrap().count(), 1);
    }
}
