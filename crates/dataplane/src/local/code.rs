//! Code of deployments: every version in a folder of its own, made as a whole and never changed again.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};

use flate2::read::MultiGzDecoder;
use podium_api::DeploymentId;
use podium_domain::deployments::Bundle;
use podium_domain::{Given, Reason, UserText};

use super::layout::{Place, rename};
use super::services::{Archive, Archives};
use super::trees::{self, Seen, Walk};
use crate::Fault;
use crate::blocking::{blocking, in_turn};

/// The version of a deployment that has no DAGs yet.
const EMPTY: &str = "none";

/// The folder of an archive that the DAGs are in, where there is one of this name. `podium_bundle.py` knows it too.
const ROOT: &str = "dags";

/// How many versions are kept for runs that began with them.
const KEPT: usize = 20;

/// The folder of the versions of the DAGs.
pub(super) fn dags(place: &Place) -> PathBuf {
    place.code().join("dags")
}

/// Why a bundle is not at its place.
#[derive(Debug, thiserror::Error)]
enum Unplaced {
    #[error("{0}")]
    Refused(&'static str),
    #[error(transparent)]
    Broken(#[from] io::Error),
}

impl Unplaced {
    fn reason(self, bundle: &Bundle) -> Reason {
        let what = UserText::filled("the bundle at {} cannot be mounted", &[&Given::mount_path(bundle)]);
        match self {
            Self::Refused(why) => Reason::from(why).within(what),
            Self::Broken(error) => Reason::of_io(what, &error),
        }
    }
}

/// Brings the DAGs to a version.
pub(super) async fn bring_dags(
    archives: &dyn Archives,
    id: DeploymentId,
    place: &Place,
    version: Option<&str>,
) -> Result<(), Reason> {
    bring(archives, id, &dags(place), version, Some(ROOT)).await
}

/// Brings all bundles to their versions, each at its place in Airflow's home, and drops those that are gone. They are
/// dropped first: what comes may lie inside or around what goes.
pub(super) async fn bring_bundles(
    archives: &dyn Archives,
    id: DeploymentId,
    place: &Place,
    bundles: &[Bundle],
) -> Result<(), Reason> {
    let wanted: Vec<String> = bundles.iter().map(|bundle| encoded(bundle.place())).collect();
    let own = place.clone();
    let dropped = in_turn(&place.code(), move || drop_others(&own, &wanted)).await;
    dropped.map_err(|error| Reason::of_io("bundles that are gone cannot be removed", &error))?;
    for bundle in bundles {
        let folder = place.code().join("bundles").join(encoded(bundle.place()));
        bring(archives, id, &folder, Some(&bundle.version), None).await?;
        let (home, at) = (place.home(), bundle.place().to_owned());
        let mounted = in_turn(&place.code(), move || mount(&folder.join("current"), &home, &at)).await;
        mounted.map_err(|error| error.reason(bundle))?;
    }
    Ok(())
}

/// Drops the bundles that are not wanted any more.
fn drop_others(place: &Place, wanted: &[String]) -> io::Result<()> {
    let there = fs::read_dir(place.code().join("bundles")).into_iter().flatten().flatten();
    for entry in there.filter(|entry| !wanted.iter().any(|name| entry.file_name() == name.as_str())) {
        let gone = decoded(&entry.file_name().to_string_lossy());
        unmount(&place.home(), &gone)?;
        trees::remove(&entry.path())?;
    }
    Ok(())
}

async fn bring(
    archives: &dyn Archives,
    id: DeploymentId,
    folder: &Path,
    version: Option<&str>,
    root: Option<&'static str>,
) -> Result<(), Reason> {
    let name = version.unwrap_or(EMPTY).to_owned();
    let target = folder.join("versions").join(&name);
    let archive = match version {
        Some(version) if !blocking(move || target.exists()).await => {
            let opened = archives.open(id, version).await.map_err(Fault::into_reason)?;
            let missing = "the code of version {} is not in the object store";
            Some(opened.ok_or_else(|| UserText::filled(missing, &[&Given::word(version)]))?)
        }
        _ => None,
    };
    let own = folder.to_owned();
    let placed = in_turn(folder, move || switch(&own, &name, archive, root)).await;
    placed.map_err(|error| {
        let told = match is_full(&error) {
            true => "the code cannot be unpacked: the disk is full",
            false => "the code cannot be unpacked",
        };
        Reason::new(told, with_causes(&error))
    })
}

/// Whether an error is, or was caused by, a disk without room.
fn is_full(error: &io::Error) -> bool {
    let mut causes = std::iter::successors(Some(error as &dyn std::error::Error), |error| error.source());
    causes.any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == ErrorKind::StorageFull)
    })
}

/// An error with what caused it, which is where the reason is.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Unpacks a version beside the others and makes it the current one. Where it has a folder of the name `root`, that
/// folder is what is current.
fn switch(folder: &Path, version: &str, archive: Option<Archive>, root: Option<&str>) -> io::Result<()> {
    let versions = folder.join("versions");
    let target = versions.join(version);
    make_readable(&versions)?;
    if !target.exists() {
        let draft = versions.join(format!(".{version}"));
        trees::remove(&draft)?;
        make_readable(&draft)?;
        if let Some(archive) = archive {
            unpack(archive, &draft)?;
        }
        rename(&draft, &target)?;
    }
    let is_folder = |path: &Path| fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_dir());
    let mut current = Path::new("versions").join(version);
    if let Some(root) = root.filter(|root| is_folder(&target.join(root))) {
        current.push(root);
    }
    point(&folder.join("current"), &current)?;
    forget_old(&versions, version)
}

/// Unpacks an archive that was checked when it was received. Files get the present time, so that Airflow sees them as
/// new, and can be read by everybody who can reach them.
fn unpack(archive: Archive, into: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(MultiGzDecoder::new(archive));
    archive.set_preserve_mtime(false);
    archive.set_preserve_permissions(false);
    archive.unpack(into)?;
    open_up(into)
}

/// Lets everybody who reaches it read all that is in a directory.
fn open_up(directory: &Path) -> io::Result<()> {
    use rustix::fs::{AtFlags, FileType, Mode, chmodat};
    let open = |seen: &Seen<'_>| {
        let mode = seen.stat.st_mode;
        let is_program = match FileType::from_raw_mode(mode) {
            FileType::Symlink => return Ok(()),
            FileType::Directory => true,
            _ => mode & 0o100 != 0,
        };
        let mode = Mode::from_raw_mode(if is_program { 0o755 } else { 0o644 });
        chmodat(seen.above, seen.name, mode, AtFlags::empty())
    };
    Walk::new(directory)?.go_on(usize::MAX, open)?;
    Ok(())
}

/// Makes a directory, and those above it that are missing, readable for everybody who reaches them. What is there
/// already is left as it is.
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

/// Makes a link point somewhere else, at once.
fn point(link: &Path, to: &Path) -> io::Result<()> {
    if fs::read_link(link).is_ok_and(|now| now == to) {
        return Ok(());
    }
    let draft = link.with_extension("draft");
    let _ = fs::remove_file(&draft);
    symlink(to, &draft)?;
    rename(&draft, link)
}

/// Removes the oldest versions beyond those that are kept.
fn forget_old(versions: &Path, current: &str) -> io::Result<()> {
    let mut all = Vec::new();
    for entry in fs::read_dir(versions)? {
        let entry = entry?;
        if entry.file_name() != current {
            all.push((entry.metadata()?.modified()?, entry.path()));
        }
    }
    all.sort();
    let over = all.len().saturating_sub(KEPT);
    all.iter().take(over).try_for_each(|(_, path)| trees::remove(path))
}

/// Puts a bundle at its place below the home. What else is there stays, and is said.
fn mount(current: &Path, home: &Path, place: &str) -> Result<(), Unplaced> {
    let at = below(home, place)?;
    if let Some(above) = at.parent() {
        make_readable(above)?;
    }
    match fs::symlink_metadata(&at) {
        Ok(metadata) if !metadata.is_symlink() => Err(Unplaced::Refused("something else is there already")),
        _ => Ok(point(&at, current)?),
    }
}

/// Takes a bundle away, and the folders above it that nothing else is in.
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

/// A path below the home that no link leads out of: a link on the way is another bundle, and what lies inside it is not
/// the home. Only the control plane writes there, so nobody puts one there meanwhile.
fn below(home: &Path, place: &str) -> Result<PathBuf, Unplaced> {
    let wrong = |message| Err(Unplaced::Refused(message));
    let place = Path::new(place);
    if place.as_os_str().is_empty() || !place.components().all(|part| matches!(part, Component::Normal(_))) {
        return wrong("it does not lie in the environment's home");
    }
    let at = home.join(place);
    for folder in at.ancestors().skip(1).take_while(|folder| *folder != home) {
        if fs::symlink_metadata(folder).is_ok_and(|metadata| metadata.is_symlink()) {
            return wrong("it lies inside another bundle");
        }
    }
    Ok(at)
}

/// The place of a bundle as the name of one folder, as installations have it on disk: letters of all scripts stay what they
/// are, unlike in a URL.
fn encoded(place: &str) -> String {
    place.replace('%', "%25").replace('/', "%2F")
}

fn decoded(name: &str) -> String {
    name.replace("%2F", "/").replace("%25", "%")
}

#[cfg(test)]
mod tests;
