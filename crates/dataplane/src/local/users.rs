//! The users that environments run as, if each has its own: a range for each plane, and no user is ever reused.
//!
//! An environment's user may have left anything anywhere on the machine: files, with or without set-user-id bits, or
//! messages in queues. They cannot all be found, so the user of a removed environment is never used again.

use std::ops::Range;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::{fs, io};

use aws_lc_rs::digest::{SHA256, digest};

use super::layout::{Layout, missing_is_none, write_whole};
use super::state::State;

/// The first user of the oldest planes, above the ids that distributions assign to people.
const FIRST_USER: u32 = 2_000_000;
/// The number of users of a plane, and the number of possible ranges.
const USERS: u32 = 65_536;
const PLANES: u32 = 25_000;
/// The number of users of planes from older versions.
const LEGACY_USERS: u32 = 4096;
/// The lower half may have been used by environments that no longer exist.
const FIRST_UNUSED_LEGACY_SLOT: u32 = LEGACY_USERS / 2;
/// The slot of the user that the plane's own database server runs as; no environment gets it.
pub(super) const DATABASE_SLOT: u32 = LEGACY_USERS - 1;
/// The slot of the user that network helpers run as; no environment gets it.
pub(super) const NETWORK_SLOT: u32 = LEGACY_USERS - 2;
/// The slot of the user that installs packages of projects; no environment gets it.
pub(super) const PACKAGES_SLOT: u32 = LEGACY_USERS - 3;

const RANGE: &str = "first-user";
const NEXT: &str = "next-slot";

/// The users of the plane in a directory, as chosen once. The range is unique to this plane: killing the processes of a
/// user must not hit another plane on the same machine.
pub(super) fn of_plane(root: &Path, has_environments: bool) -> io::Result<Range<u32>> {
    let path = root.join(RANGE);
    match missing_is_none(fs::read_to_string(&path))? {
        Some(text) => parsed(&text).ok_or_else(|| lacks(&path, "a range of users")),
        None if has_environments => {
            write_whole(&path, format!("{FIRST_USER}\n").as_bytes(), 0o600)?;
            Ok(FIRST_USER..FIRST_USER + LEGACY_USERS)
        }
        None => choose(root, root),
    }
}

/// Chooses users for a plane that is about to be moved to `home`, whose environments have none yet.
pub(super) fn choose(root: &Path, home: &Path) -> io::Result<Range<u32>> {
    // Depends on this very directory: an earlier one at the same path had other users.
    let made = fs::metadata(root)?;
    let about = format!("{} {} {}.{}", home.display(), made.ino(), made.ctime(), made.ctime_nsec());
    let hash = digest(&SHA256, about.as_bytes());
    let number = hash.as_ref().iter().take(4).fold(0, |number, byte| number << 8 | u32::from(*byte));
    let first = FIRST_USER + USERS * (number % PLANES);
    write_whole(&root.join(RANGE), format!("{first} {USERS}\n").as_bytes(), 0o600)?;
    Ok(first..first + USERS)
}

fn lacks(path: &Path, what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{} does not contain {what}", path.display()))
}

fn parsed(text: &str) -> Option<Range<u32>> {
    let mut numbers = text.split_whitespace().map(str::parse::<u32>);
    let first = numbers.next()?.ok()?;
    let count = numbers.next().unwrap_or(Ok(LEGACY_USERS)).ok()?;
    Some(first..first.checked_add(count)?)
}

/// A slot that no environment had before, saved before it is used.
pub(super) fn take_slot(root: &Path, users: &Range<u32>, taken: &[u32]) -> io::Result<u32> {
    let path = root.join(NEXT);
    let slots = users.end - users.start;
    let next = match missing_is_none(fs::read_to_string(&path))? {
        Some(text) => text.trim().parse().map_err(|_| lacks(&path, "a number"))?,
        None if slots == LEGACY_USERS => FIRST_UNUSED_LEGACY_SLOT,
        None => 1,
    };
    let next = taken.iter().map(|slot| slot + 1).chain([next]).max().unwrap_or(1);
    let slot = (next..).find(|slot| !is_reserved(*slot)).unwrap_or(next);
    if slot >= slots {
        return Err(io::Error::other(format!(
            "all {slots} users reserved for this installation's environments have been used, and none is ever reused: make a backup and restore it to another directory, where it gets new ones"
        )));
    }
    write_whole(&path, format!("{}\n", slot + 1).as_bytes(), 0o600)?;
    Ok(slot)
}

/// Whether an environment has a slot that is now reserved.
pub(super) fn has_slot(layout: &Layout, slot: u32) -> io::Result<bool> {
    let state = |id| State::read(&layout.environment(id).state()).ok().flatten();
    Ok(layout.known()?.into_iter().filter_map(state).any(|state| state.slot == slot))
}

fn is_reserved(slot: u32) -> bool {
    [DATABASE_SLOT, NETWORK_SLOT, PACKAGES_SLOT].contains(&slot)
}

/// Assigns new slots to this many environments, for a new range of users.
pub(super) fn renumber(root: &Path, environments: usize) -> io::Result<Vec<u32>> {
    let slots: Vec<u32> = (1..).filter(|slot| !is_reserved(*slot)).take(environments).collect();
    let next = slots.last().map_or(1, |last| last + 1);
    write_whole(&root.join(NEXT), format!("{next}\n").as_bytes(), 0o600)?;
    Ok(slots)
}

#[cfg(test)]
mod tests {
    use podium_api::Id;

    use super::*;
    use crate::local::layout::Layout;

    #[test]
    fn every_plane_has_users_of_its_own_and_keeps_them_wherever_it_goes() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let (one, two) = (Layout::make(&at("one")).unwrap(), Layout::make(&at("two")).unwrap());
        assert!(one.users.start.abs_diff(two.users.start) >= USERS);
        fs::rename(at("one"), at("moved")).unwrap();
        assert_eq!(Layout::make(&at("moved")).unwrap().users, one.users);
        let old = at("old").join("environments").join(Id::from_parts(1, 2, 3).as_str());
        fs::create_dir_all(old).unwrap();
        assert_eq!(Layout::make(&at("old")).unwrap().users, FIRST_USER..FIRST_USER + LEGACY_USERS);
        fs::remove_dir_all(at("two")).unwrap();
        let again = Layout::make(&at("two")).unwrap();
        assert_ne!(again.users.start, two.users.start, "what was here before may have left something");
    }

    #[test]
    fn no_slot_is_reused_and_running_out_of_them_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path();
        let users = 1000..1000 + USERS;
        assert_eq!(take_slot(root, &users, &[]).unwrap(), 1);
        assert_eq!(
            take_slot(root, &users, &[]).unwrap(),
            2,
            "the first is gone, and its user still nobody's"
        );
        assert_eq!(take_slot(root, &users, &[9]).unwrap(), 10);
        for reserved in [PACKAGES_SLOT, NETWORK_SLOT, DATABASE_SLOT] {
            fs::write(root.join(NEXT), reserved.to_string()).unwrap();
            assert_eq!(
                take_slot(root, &users, &[]).unwrap(),
                DATABASE_SLOT + 1,
                "those are the database server's, and of those who make networks"
            );
        }
        fs::write(root.join(NEXT), (USERS - 1).to_string()).unwrap();
        assert_eq!(take_slot(root, &users, &[]).unwrap(), USERS - 1);
        let end = take_slot(root, &users, &[]).unwrap_err().to_string();
        assert!(end.contains("all 65536 users") && end.contains("restore it to another directory"), "{end}");
        assert_eq!(renumber(root, 3).unwrap(), [1, 2, 3]);
        assert_eq!(take_slot(root, &users, &[]).unwrap(), 4);
    }

    #[test]
    fn a_plane_of_an_older_version_starts_above_all_used_slots() {
        let directory = tempfile::tempdir().unwrap();
        let users = FIRST_USER..FIRST_USER + LEGACY_USERS;
        assert_eq!(take_slot(directory.path(), &users, &[1, 3]).unwrap(), FIRST_UNUSED_LEGACY_SLOT);
    }
}
