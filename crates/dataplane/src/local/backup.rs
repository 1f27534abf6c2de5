//! Which parts of the plane go into a backup, and what has to change before a restored plane can run elsewhere.
//!
//! Runtimes and tools are not backed up: they are installed again. Neither is anything that has a meaning only on the
//! original machine: processes, ports, the users that environments run as, and which of them its operator has stopped.

use std::os::unix::fs::lchown;
use std::path::{Path, PathBuf};
use std::{fs, io};

use podium_api::DeploymentId;
use rustix::fs::{AtFlags, Gid, Uid, chownat};

use super::layout::{Layout, missing_is_none, write_whole};
use super::options::OpenError;
use super::orphans::has_marker;
use super::state::State;
use super::trees::{self, Entry, remove};
use super::{pids, users};
use crate::blocking::allow_blocking;

/// Marker file: this plane was restored from a backup and has not been started since.
const RESTORED: &str = "restored";

/// The parts of a plane that go into a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BackupContents {
    /// SQLite databases, which may be in use: to be copied as a consistent snapshot.
    pub databases: Vec<PathBuf>,
    /// Log offsets, to be copied before the logs.
    pub offsets: Vec<PathBuf>,
    /// What is excluded, in addition to the files that belong to the databases.
    pub excluded: Vec<PathBuf>,
    /// The state of each environment at the time of the call; later changes are not included.
    pub states: Vec<(PathBuf, Vec<u8>)>,
    /// Environments whose metadata database is on the plane's own server, with the file that each is dumped to.
    pub dumps: Vec<(DeploymentId, PathBuf)>,
    /// Environments whose metadata database is on an external server, which has to be backed up separately.
    pub on_external_server: Vec<DeploymentId>,
}

/// Determines the backup contents of the plane in a directory. It blocks: for a command that does nothing else
/// meanwhile.
pub fn backup_contents(directory: &Path) -> io::Result<BackupContents> {
    allow_blocking(|| find_contents(directory))
}

fn find_contents(directory: &Path) -> io::Result<BackupContents> {
    let mut contents = BackupContents::default();
    let layout = Layout::at(directory);
    contents.excluded = vec![
        layout.runtimes(),
        layout.tools(),
        layout.support(),
        layout.aside(),
        layout.postgres(),
        layout.packages(),
    ];
    let known = missing_is_none(layout.known())?.unwrap_or_default();
    for id in known {
        let place = layout.environment(id);
        contents.excluded.extend([place.temporary(), place.stopped()]);
        contents.offsets.push(place.offsets());
        let Ok(bytes) = fs::read(place.state()) else { continue };
        // A broken one is backed up as it is, and does not prevent the others from being backed up.
        let state = State::read(&place.state()).ok().flatten();
        contents.excluded.push(place.state());
        contents.states.push((place.state(), bytes));
        let is_file = state.as_ref().is_none_or(|state| !state.is_private && state.server_runtime.is_none());
        match state {
            Some(state) if state.is_private => contents.dumps.push((id, place.saved_metadata())),
            Some(state) if state.server_runtime.is_some() => contents.on_external_server.push(id),
            _ => {}
        }
        // The environment owns this directory: anything but a regular file there is not opened.
        let file = place.database_file();
        if is_file && fs::symlink_metadata(&file).is_ok_and(|metadata| metadata.is_file()) {
            contents.databases.push(file);
        } else {
            contents.excluded.push(file);
        }
    }
    Ok(contents)
}

/// Prepares a restored plane to run at `home`, where it is about to be moved. It blocks: for a command that does
/// nothing else meanwhile.
pub fn prepare_restored(directory: &Path, home: &Path) -> io::Result<()> {
    allow_blocking(|| settle(directory, home))
}

/// Removes a directory and everything in it, however deep it is. It blocks: for a command that does nothing else
/// meanwhile.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    allow_blocking(|| remove(path))
}

fn settle(directory: &Path, home: &Path) -> io::Result<()> {
    if !directory.exists() {
        return Ok(());
    }
    let layout = Layout::at(directory);
    // The original installation has other users.
    let first_user = users::choose(directory, home)?.start;
    write_whole(&directory.join(RESTORED), b"", 0o600)?;
    let known = missing_is_none(layout.known())?.unwrap_or_default();
    let is_root = rustix::process::geteuid().is_root();
    let slots = users::renumber(directory, known.len())?;
    for (id, slot) in known.into_iter().zip(slots) {
        let place = layout.environment(id);
        let Ok(Some(mut state)) = State::read(&place.state()) else { continue };
        // These belong to another machine, or to another installation on this one.
        state.processes.clear();
        state.starting = None;
        state.slot = slot;
        state.web_port = 0;
        // Its metadata database was on the plane's own server and is not in the backup: it is created again.
        if state.is_private && !place.saved_metadata().exists() {
            state.migrated_for = None;
        }
        state.write(&place.state())?;
        for own in place.own() {
            fs::create_dir_all(&own)?;
            if is_root {
                give_all(&own, first_user + state.slot)?;
            }
        }
    }
    Ok(())
}

/// Refuses the first start of a restored plane while the original runs on this machine: each would mistake the other's
/// processes for its own.
pub(super) fn check_first_start(directory: &Path, layout: &Layout) -> Result<(), OpenError> {
    let marker = directory.join(RESTORED);
    if !marker.exists() {
        return Ok(());
    }
    for id in layout.known().map_err(|error| OpenError::unusable(directory, error))? {
        if let Some(pid) = pids().find(|pid| has_marker(*pid, id)) {
            return Err(OpenError::StillRuns { pid, id });
        }
    }
    fs::remove_file(marker).map_err(|error| OpenError::unusable(directory, error))
}

/// Changes the owner of a directory and everything in it; links are not followed.
fn give_all(directory: &Path, user: u32) -> io::Result<()> {
    lchown(directory, Some(user), Some(user))?;
    let (owner, group) = (Some(Uid::from_raw(user)), Some(Gid::from_raw(user)));
    let give = |seen: &Entry<'_>| chownat(seen.above, seen.name, owner, group, AtFlags::SYMLINK_NOFOLLOW);
    trees::each(directory, give)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::tests::fresh_id;

    #[test]
    fn machine_specific_state_is_dropped_on_restore() {
        let directory = tempfile::tempdir().unwrap();
        let local = directory.path().join("local");
        let layout = Layout::make(&local).unwrap();
        let (id, users) = (fresh_id(), layout.users.start);
        let place = layout.environment(id);
        fs::create_dir_all(place.database()).unwrap();
        fs::write(place.database_file(), "").unwrap();
        let state = State { slot: 3, web_port: 4000, generation: 7, ..State::default() };
        state.write(&place.state()).unwrap();
        let found = backup_contents(&local).unwrap();
        assert_eq!(found.databases.len(), 1);
        assert!(found.excluded.iter().any(|path| path.ends_with("runtimes")));
        assert_eq!(found.on_external_server, []);
        prepare_restored(&local, Path::new("/somewhere/else/local")).unwrap();
        let settled = State::read(&place.state()).unwrap().unwrap();
        assert_eq!((settled.slot, settled.generation), (1, 7), "its users are others, from the first on");
        assert_eq!(settled.web_port, 0);
        let broken = layout.environment(fresh_id());
        fs::create_dir_all(broken.database()).unwrap();
        fs::write(broken.database_file(), "").unwrap();
        fs::write(broken.state(), "{").unwrap();
        assert!(backup_contents(&local).unwrap().databases.contains(&broken.database_file()));
        let private = State { is_private: true, migrated_for: Some("3.3.2".into()), ..state };
        let migrated_for = |is_saved: bool| {
            private.write(&place.state()).unwrap();
            let _ = fs::remove_file(place.saved_metadata());
            if is_saved {
                fs::write(place.saved_metadata(), "").unwrap();
            }
            prepare_restored(&local, Path::new("/somewhere/else/local")).unwrap();
            State::read(&place.state()).unwrap().unwrap().migrated_for
        };
        assert_eq!(migrated_for(true), private.migrated_for);
        assert_eq!(migrated_for(false), None, "there is nothing to bring back: it has to be made");
        let layout = Layout::make(&local).unwrap();
        assert_ne!(layout.users.start, users, "its users are its own");
        let (name, value) = podium_airflow::settings::marker(id);
        let mut old = std::process::Command::new("sleep").arg("1000").env(name, value).spawn().unwrap();
        while !has_marker(old.id().cast_signed(), id) {
            std::thread::yield_now();
        }
        assert!(
            check_first_start(&local, &layout)
                .unwrap_err()
                .to_string()
                .contains("still runs on this machine")
        );
        old.kill().unwrap();
        old.wait().unwrap();
        check_first_start(&local, &layout).unwrap();
        assert!(!local.join(RESTORED).exists());
        assert_eq!(backup_contents(Path::new("/nowhere")).unwrap().databases, Vec::<PathBuf>::new());
    }
}
