//! The code of deployments: each version in its own folder, created atomically and never changed again.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use podium_airflow::parsing::DagFolder;
use podium_api::{DeploymentId, Timestamp};
use podium_domain::deployments::Bundle;
use podium_domain::{Given, Reason, UserText};

use super::layout::{Place, oldest_beyond, rename};
use super::prepare_error::PrepareError;
use super::project::{DAGS, is_folder};
use super::trees::{self, Entry};
use crate::blocking::{blocking, blocking_exclusive};
use crate::{Archive, Archives};

/// The version of a deployment that has no DAGs yet.
const EMPTY: &str = "none";

/// How many versions are kept for runs that started with them.
const KEPT: usize = 20;

/// The folder of the versions of the DAGs, in any path of Airflow's.
pub(super) const DAG_FOLDER: DagFolder = DagFolder("/code/dags/");

/// The folder of the versions of the DAGs.
pub(super) fn dags(place: &Place) -> PathBuf {
    place.code().join("dags")
}

/// The folder that a version of the DAGs is unpacked to.
pub(super) fn version(place: &Place, version: Option<&str>) -> PathBuf {
    dags(place).join("versions").join(version.unwrap_or(EMPTY))
}

/// When the current version became current.
pub(super) fn live_since(place: &Place) -> io::Result<Timestamp> {
    let switched = fs::symlink_metadata(dags(place).join("current"))?.modified()?;
    let since = switched.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Ok(Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

/// Code that cannot be put in place now.
fn broken(why: impl Into<Reason>) -> PrepareError {
    PrepareError::Wait("code", why.into())
}

/// An error of the file system, with what was not possible.
fn not_placed(error: &io::Error, why: Reason) -> PrepareError {
    if is_permanent(error) { PrepareError::Refused(why) } else { broken(why) }
}

/// Why a bundle is refused whose mount path leaves the home.
const OUTSIDE: &str = "the path is outside the environment's home directory";

/// Why a bundle cannot be mounted: its author has to change that, or otherwise it is an error of the file system.
fn not_mounted(bundle: &Bundle, why: Result<&'static str, &io::Error>) -> PrepareError {
    let what = UserText::filled("the bundle at {} cannot be mounted", &[&Given::mount_path(bundle)]);
    match why {
        Ok(why) => PrepareError::Refused(Reason::from(why).within(what)),
        Err(error) => not_placed(error, Reason::of_io(what, error)),
    }
}

/// Unpacks a version of the DAGs next to the current one, which stays current.
pub(super) async fn unpack_dags(
    archives: &dyn Archives,
    id: DeploymentId,
    place: &Place,
    version: Option<&str>,
) -> Result<(), PrepareError> {
    unpack_version(archives, id, &dags(place), version).await
}

/// Unpacks the versions of all bundles next to the current ones, which stay current.
pub(super) async fn unpack_bundles(
    archives: &dyn Archives,
    id: DeploymentId,
    place: &Place,
    bundles: &[Bundle],
) -> Result<(), PrepareError> {
    for bundle in bundles {
        if !is_inside(bundle.place()) {
            return Err(not_mounted(bundle, Ok(OUTSIDE)));
        }
        unpack_version(archives, id, &bundle_folder(place, bundle), Some(&bundle.version)).await?;
    }
    Ok(())
}

/// Switches the DAGs to an unpacked version.
pub(super) async fn switch_dags(place: &Place, version: Option<&str>) -> Result<(), PrepareError> {
    switch_version(&dags(place), version, CurrentFolder::Dags).await
}

/// Switches all bundles to their unpacked versions, each at its mount path in Airflow's home, and removes those that are
/// no longer deployed. Removal comes first: a new mount path may be inside or around an old one.
pub(super) async fn switch_bundles(place: &Place, bundles: &[Bundle]) -> Result<(), PrepareError> {
    let wanted: Vec<String> = bundles.iter().map(|bundle| encoded(bundle.place())).collect();
    let own = place.clone();
    let dropped = blocking_exclusive(&place.code(), move || remove_unwanted(&own, &wanted)).await;
    let why = "bundles that are no longer deployed cannot be removed";
    dropped.map_err(|error| broken(Reason::of_io(why, &error)))?;
    for bundle in bundles {
        let folder = bundle_folder(place, bundle);
        switch_version(&folder, Some(&bundle.version), CurrentFolder::Whole).await?;
        let (home, mounted) = (place.home(), bundle.clone());
        let mounted = move || mount(&folder.join("current"), &home, &mounted);
        blocking_exclusive(&place.code(), mounted).await?;
    }
    Ok(())
}

fn bundle_folder(place: &Place, bundle: &Bundle) -> PathBuf {
    place.code().join("bundles").join(encoded(bundle.place()))
}

/// Removes the bundles that are no longer deployed.
fn remove_unwanted(place: &Place, wanted: &[String]) -> io::Result<()> {
    let there = fs::read_dir(place.code().join("bundles")).into_iter().flatten().flatten();
    for entry in there.filter(|entry| !wanted.iter().any(|name| entry.file_name() == name.as_str())) {
        let gone = decoded(&entry.file_name().to_string_lossy());
        unmount(&place.home(), &gone)?;
        trees::remove(&entry.path())?;
    }
    Ok(())
}

async fn unpack_version(
    archives: &dyn Archives,
    id: DeploymentId,
    folder: &Path,
    version: Option<&str>,
) -> Result<(), PrepareError> {
    let name = version.unwrap_or(EMPTY).to_owned();
    let target = folder.join("versions").join(&name);
    let archive = match version {
        Some(version) if !blocking(move || target.exists()).await => {
            let opened = archives.open(id, version).await.map_err(|fault| broken(fault.into_reason()))?;
            let missing = "the code of version {} is not in the object store";
            let missing = || broken(UserText::filled(missing, &[&Given::word(version)]));
            Some(opened.ok_or_else(missing)?)
        }
        _ => None,
    };
    let own = folder.to_owned();
    blocking_exclusive(folder, move || add(&own, &name, archive)).await.map_err(|error| not_unpacked(&error))
}

/// Makes an unpacked version the current one, and removes the oldest ones.
async fn switch_version(
    folder: &Path,
    version: Option<&str>,
    current: CurrentFolder,
) -> Result<(), PrepareError> {
    let (own, name) = (folder.to_owned(), version.unwrap_or(EMPTY).to_owned());
    // What is in the way of that is on this machine, and not in the code.
    let why = |error: io::Error| Reason::new("the code cannot be made current", with_causes(&error));
    blocking_exclusive(folder, move || switch(&own, &name, current)).await.map_err(|error| broken(why(error)))
}

fn not_unpacked(error: &io::Error) -> PrepareError {
    let told = match (is_full(error), is_permanent(error)) {
        (true, _) => "the code cannot be unpacked: the disk is full",
        (false, true) => "the code cannot be unpacked: a file or directory in it is not possible here",
        (false, false) => "the code cannot be unpacked",
    };
    not_placed(error, Reason::new(told, with_causes(error)))
}

/// Whether an error is, or was caused by, a full disk.
fn is_full(error: &io::Error) -> bool {
    was_caused_by(error, |kind| kind == ErrorKind::StorageFull)
}

/// Whether an error is, or was caused by, something that the file system never accepts: the same archive fails again.
fn is_permanent(error: &io::Error) -> bool {
    use ErrorKind::{AlreadyExists, InvalidFilename, InvalidInput, IsADirectory, NotADirectory};
    let is_refused =
        |kind| matches!(kind, AlreadyExists | InvalidFilename | InvalidInput | IsADirectory | NotADirectory);
    was_caused_by(error, is_refused)
}

fn was_caused_by(error: &io::Error, is_meant: impl Fn(ErrorKind) -> bool) -> bool {
    let mut causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.any(|cause| cause.downcast_ref::<io::Error>().is_some_and(|error| is_meant(error.kind())))
}

/// An error with its causes, which hold the actual reason.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[derive(Clone, Copy)]
enum CurrentFolder {
    /// The folder of DAGs, if there is one; then there is a link to the project, too. `podium_bundle.py` does the same.
    Dags,
    /// The version as a whole.
    Whole,
}

/// Unpacks a version next to the others, unless it is there.
fn add(folder: &Path, version: &str, archive: Option<Archive>) -> io::Result<()> {
    let versions = folder.join("versions");
    let target = versions.join(version);
    make_readable(&versions)?;
    if target.exists() {
        return Ok(());
    }
    let draft = versions.join(format!(".{version}"));
    trees::remove(&draft)?;
    make_readable(&draft)?;
    if let Some(archive) = archive {
        unpack(archive, &draft)?;
    }
    rename(&draft, &target)
}

fn switch(folder: &Path, version: &str, current: CurrentFolder) -> io::Result<()> {
    let versions = folder.join("versions");
    let whole = Path::new("versions").join(version);
    let mut target = whole.clone();
    if let CurrentFolder::Dags = current {
        let link = folder.join("project");
        if is_folder(&versions.join(version).join(DAGS)) {
            target.push(DAGS);
            point(&link, &whole)?;
        } else if fs::symlink_metadata(&link).is_ok() {
            fs::remove_file(&link)?;
        }
    }
    point(&folder.join("current"), &target)?;
    oldest_beyond(&versions, KEPT, version)?.iter().try_for_each(|path| trees::remove(path))
}

/// Unpacks an archive that was checked when it was received. Files get the current time, so that Airflow treats them as
/// new, and are world-readable.
fn unpack(archive: Archive, into: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(MultiGzDecoder::new(archive));
    archive.set_preserve_mtime(false);
    archive.set_preserve_permissions(false);
    archive.unpack(into)?;
    open_up(into)
}

/// Makes everything in a directory world-readable.
fn open_up(directory: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, FileType, Mode, chmodat};
    let open = |seen: &Entry<'_>| {
        let mode = seen.stat.st_mode;
        let is_program = match FileType::from_raw_mode(mode) {
            FileType::Symlink => return Ok(()),
            FileType::Directory => true,
            _ => mode & 0o100 != 0,
        };
        let mode = Mode::from_raw_mode(if is_program { 0o755 } else { 0o644 });
        chmodat(seen.above, seen.name, mode, AtFlags::empty())
    };
    trees::each(directory, open)
}

/// Creates a directory and its missing parents, world-readable. Existing ones are left as they are.
fn make_readable(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(above) = directory.parent() {
        make_readable(above)?;
    }
    fs::create_dir(directory)?;
    fs::set_permissions(directory, fs::Permissions::from_mode(0o755))
}

/// Atomically makes a link point somewhere else.
fn point(link: &Path, to: &Path) -> io::Result<()> {
    if fs::read_link(link).is_ok_and(|now| now == to) {
        return Ok(());
    }
    let draft = link.with_extension("draft");
    let _ = fs::remove_file(&draft);
    symlink(to, &draft)?;
    rename(&draft, link)
}

/// Links a bundle at its mount path below the home. Anything else there is left alone and reported.
fn mount(current: &Path, home: &Path, bundle: &Bundle) -> Result<(), PrepareError> {
    let at = below(home, bundle.place()).map_err(|why| not_mounted(bundle, Ok(why)))?;
    let broken = |error: io::Error| not_mounted(bundle, Err(&error));
    at.parent().map_or(Ok(()), make_readable).map_err(broken)?;
    if fs::symlink_metadata(&at).is_ok_and(|metadata| !metadata.is_symlink()) {
        return Err(not_mounted(bundle, Ok("another file or directory is already there")));
    }
    point(&at, current).map_err(broken)
}

/// Removes the link of a bundle, and the empty folders above it.
fn unmount(home: &Path, place: &str) -> io::Result<()> {
    let Ok(at) = below(home, place) else { return Ok(()) };
    match fs::symlink_metadata(&at) {
        Ok(metadata) if metadata.is_symlink() => fs::remove_file(&at)?,
        _ => return Ok(()),
    }
    let above = at.ancestors().skip(1).take_while(|folder| *folder != home);
    for folder in above {
        match fs::remove_dir(folder) {
            Err(error) if error.kind() == ErrorKind::DirectoryNotEmpty => break,
            removed => removed?,
        }
    }
    Ok(())
}

/// A path below the home without links on the way: such a link is another bundle, which is outside the home. Only the
/// control plane writes there, so no link appears in the meantime.
fn below(home: &Path, place: &str) -> Result<PathBuf, &'static str> {
    if !is_inside(place) {
        return Err(OUTSIDE);
    }
    let at = home.join(place);
    let mut above = at.ancestors().skip(1).take_while(|folder| *folder != home);
    if above.any(|folder| fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_symlink())) {
        return Err("the path is inside another bundle");
    }
    Ok(at)
}

/// Whether a path below the home stays there.
fn is_inside(place: &str) -> bool {
    !place.is_empty() && Path::new(place).components().all(|part| matches!(part, Component::Normal(_)))
}

/// The mount path of a bundle as a single folder name, as installations have it on disk: unlike in a URL, non-ASCII
/// letters are not encoded.
fn encoded(place: &str) -> String {
    place.replace('%', "%25").replace('/', "%2F")
}

fn decoded(name: &str) -> String {
    name.replace("%2F", "/").replace("%25", "%")
}

#[cfg(test)]
mod tests;
