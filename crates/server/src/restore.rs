//! `podium restore`: creates an installation from a backup, in an empty directory.
//!
//! Everything is unpacked and checked in a subdirectory of the new one, and moved into place at the end, the database
//! last. An interrupted restore leaves that subdirectory behind, and no server starts while it exists.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};

use clap::Args;
use tar::EntryType;

use crate::backup::archive::{CHECKSUMS, Checksums, Hashing, MANIFEST, Manifest};
use crate::data_dir::{DATABASE, LOCAL, RESTORING, SECRET_KEY};
use crate::failure::Failure;
use crate::settings::absolute;

const LONGEST_MANIFEST: u64 = 1 << 20;

/// Create an installation from a backup, in an empty directory.
///
/// The directory may be on another machine and at another path. Do not run it at the same time as the installation that
/// the backup was taken from: both would manage the same deployments.
#[derive(Args)]
#[command(after_help = "Example: podium restore /backups/podium-monday --data-dir ./restored")]
pub struct Restore {
    /// The file that `podium backup` wrote.
    file: PathBuf,
    /// The directory to restore to: one that does not exist, or is empty.
    #[arg(long, env = "PODIUM_DATA_DIR", value_parser = absolute())]
    data_dir: PathBuf,
}

/// What has to be done once all files are unpacked.
#[derive(Default)]
struct Later {
    directories: BTreeMap<PathBuf, u32>,
    links: Vec<(PathBuf, PathBuf)>,
}

impl Restore {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let target = &self.data_dir;
        let is_new = !target.exists();
        let shown = target.display();
        let used = |error: io::Error| format!("the directory {shown} cannot be used: {error}");
        rustix::process::umask(rustix::fs::Mode::from_bits_truncate(0o077));
        // Before anything is created: a wrong name leaves nothing behind.
        let file = File::open(&self.file)
            .map_err(|error| format!("the backup {} cannot be read: {error}", self.file.display()))?;
        fs::create_dir_all(target).map_err(used)?;
        if fs::read_dir(target).map_err(used)?.next().is_some() {
            return Err(
                format!("{shown} is not empty: name an empty directory, or one that does not exist").into()
            );
        }
        let draft = target.join(RESTORING);
        let restored = unpack(file, &draft).and_then(|manifest| {
            prepare_restored(&draft, target)?;
            put_in_place(&draft, target)
                .map_err(|error| format!("its files cannot be moved into place: {error}"))?;
            Ok(manifest)
        });
        match restored {
            Ok(manifest) => {
                eprintln!(
                    "Restored the backup of {} to {shown}. Start it with: podium serve --data-dir {shown}",
                    manifest.taken_at
                );
                Ok(())
            }
            Err(why) => {
                let _ = podium_dataplane::local::remove_tree(&draft);
                if is_new {
                    let _ = fs::remove_dir(target);
                }
                Err(format!("nothing was restored from {}: {why}", self.file.display()).into())
            }
        }
    }
}

/// Unpacks a backup and checks all of it.
fn unpack(file: File, draft: &Path) -> Result<Manifest, Failure> {
    let damaged = |error: io::Error| format!("it is damaged or incomplete ({error})");
    fs::create_dir(draft)?;
    let decoder = zstd::Decoder::new(file)?;
    let mut archive = tar::Archive::new(decoder);
    let (mut manifest, mut expected, mut found) = (None, None, Checksums::default());
    let mut later = Later::default();
    for entry in archive.entries().map_err(|_| "it is not a Podium backup".to_owned())? {
        let mut entry = match entry {
            Ok(entry) => entry,
            Err(_) if manifest.is_none() => return Err("it is not a Podium backup".into()),
            Err(error) => return Err(damaged(error).into()),
        };
        let path = entry.path().map_err(damaged)?.into_owned();
        if expected.is_some() {
            return Err("it is damaged: there is data after its end".into());
        }
        if manifest.is_none() {
            let mut bytes = Vec::new();
            let is_manifest = path == Path::new(MANIFEST);
            entry.by_ref().take(LONGEST_MANIFEST).read_to_end(&mut bytes).map_err(damaged)?;
            manifest = Some(Manifest::parse(if is_manifest { &bytes } else { b"" })?);
            let mut hashing = Hashing::new(bytes.as_slice());
            io::copy(&mut hashing, &mut io::sink()).map_err(damaged)?;
            found.add(&path, hashing.finish(), bytes.len() as u64);
            continue;
        }
        if path == Path::new(CHECKSUMS) {
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).map_err(damaged)?;
            let read: Checksums = serde_json::from_slice(&bytes).map_err(|error| damaged(error.into()))?;
            expected = Some(read);
            continue;
        }
        take(&mut entry, &path, draft, &mut found, &mut later).map_err(damaged)?;
    }
    let expected = expected.ok_or("it is incomplete: its end is missing")?;
    if let Some(wrong) = difference(&expected, &found) {
        return Err(format!("it is damaged: {wrong} does not match its checksum").into());
    }
    for name in [DATABASE, SECRET_KEY] {
        if !draft.join(name).is_file() {
            return Err(format!("it is incomplete: {name} is missing").into());
        }
    }
    finish(draft, later)?;
    manifest.ok_or_else(|| "it is not a Podium backup".into())
}

/// The first name that is missing on one side, or has other content.
fn difference(expected: &Checksums, found: &Checksums) -> Option<String> {
    let names = expected.files.keys().chain(found.files.keys());
    names.into_iter().find(|name| expected.files.get(*name) != found.files.get(*name)).cloned()
}

/// Unpacks one entry. Links are created after all files, so that nothing is ever written through one.
fn take(
    entry: &mut tar::Entry<'_, impl Read>,
    path: &Path,
    draft: &Path,
    found: &mut Checksums,
    later: &mut Later,
) -> io::Result<()> {
    if !path.components().all(|part| matches!(part, Component::Normal(_))) {
        return Err(io::Error::other(format!("{} leads outside of the backup", path.display())));
    }
    let to = draft.join(path);
    let mode = entry.header().mode()? & 0o777;
    match entry.header().entry_type() {
        EntryType::Directory => {
            fs::create_dir_all(&to)?;
            found.add(path, "directory".into(), 0);
            later.directories.insert(to, mode);
        }
        EntryType::Symlink => {
            let target = entry.link_name()?.ok_or(io::ErrorKind::InvalidData)?.into_owned();
            found.add(path, format!("link {}", target.as_os_str().as_bytes().escape_ascii()), 0);
            later.links.push((to, target));
        }
        EntryType::Regular => {
            if let Some(parent) = to.parent() {
                fs::create_dir_all(parent)?;
            }
            let (size, modified) = (entry.header().size()?, entry.header().mtime()?);
            let mut file = File::options().write(true).create_new(true).mode(0o600).open(&to)?;
            let mut hashing = Hashing::new(entry);
            let written = io::copy(&mut hashing, &mut file)?;
            if written != size {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            found.add(path, hashing.finish(), size);
            file.set_permissions(fs::Permissions::from_mode(mode))?;
            file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(modified))?;
            file.sync_all()?;
        }
        other => return Err(io::Error::other(format!("{} is a {other:?}", path.display()))),
    }
    Ok(())
}

fn finish(draft: &Path, later: Later) -> io::Result<()> {
    for (path, target) in later.links {
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        symlink(target, path)?;
    }
    // Bottom-up: a directory that becomes read-only may contain others.
    for (path, mode) in later.directories.into_iter().rev() {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    File::open(draft)?.sync_all()
}

fn prepare_restored(draft: &Path, target: &Path) -> Result<(), Failure> {
    let home = fs::canonicalize(target)?.join(LOCAL);
    Ok(podium_dataplane::local::prepare_restored(&draft.join(LOCAL), &home)?)
}

/// Moves everything to where it belongs, the database last.
fn put_in_place(draft: &Path, target: &Path) -> io::Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(draft)? {
        names.push(entry?.file_name());
    }
    names.sort_by_key(|name| name == DATABASE);
    for name in names {
        fs::rename(draft.join(&name), target.join(&name))?;
    }
    File::open(target)?.sync_all()?;
    fs::remove_dir(draft)
}
