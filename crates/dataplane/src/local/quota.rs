//! What environments have on disk: measured a little at a time, and bounded.
//!
//! An environment that has more than it may is stopped, and says so, until it has less. Where the disk itself runs full
//! those are stopped that go on writing, before nothing is left for the control plane. Between two looks an environment
//! can write more than it may: the bound is kept to, not enforced by the kernel.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use podium_api::DeploymentId;
use podium_domain::{Given, UserText};
use tokio::time::Instant;

use super::layout::Place;
use super::plane::Plane;
use super::trees::{Seen, Walk};
use crate::blocking::{blocking, not_on_a_worker};

/// How many files are looked at before others may use the disk.
const SLICE: usize = 4_000;
/// What a file takes at the least: somewhere its name is written down.
const SMALLEST: u64 = 4096;
/// Measuring takes this part of the time at the most, unless much is written.
const REST: u32 = 5;
/// What may be written before it is measured who wrote it.
const MUCH: u64 = 256 << 20;
/// What is written between two looks at a full disk, by somebody who goes on writing.
const WRITES_ON: u64 = 1 << 20;
/// So many files more are measured of an environment that has more than it may, to say where it has them.
const FURTHER: usize = 25 * SLICE;
/// One that runs is measured for so long at the most: files that come and go could keep it going for ever.
const LONGEST: Duration = Duration::from_secs(600);
/// A disk that can take fewer files than this is as full as one without room.
const FILES: u64 = 1_500;

/// What an environment has on disk, by the directory that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage(BTreeMap<String, u64>);

impl Usage {
    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The directories that hold the most, for people.
    fn described(&self) -> UserText {
        let mut parts: Vec<(&String, &u64)> = self.0.iter().filter(|(_, bytes)| **bytes >= 1 << 20).collect();
        parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        let part = |(name, bytes): &(&String, &u64)| {
            UserText::filled("{} in {}", &[&size(**bytes), &Given::word(name)])
        };
        UserText::joined(parts.iter().take(3).map(part), ", ")
    }
}

/// An environment that is being measured.
pub(super) struct Measuring {
    waiting: Vec<(String, std::path::PathBuf)>,
    at: Option<(String, Walk)>,
    usage: Usage,
}

impl Measuring {
    pub(super) fn new(place: &Place) -> Self {
        Self { waiting: place.measured(), at: None, usage: Usage::default() }
    }

    /// Measures on; the usage once that was all. What cannot be looked at does not count, and ends nothing.
    pub(super) fn go_on(&mut self, most: usize) -> Option<Usage> {
        if self.at.is_none() {
            let Some((name, path)) = self.waiting.pop() else {
                return Some(std::mem::take(&mut self.usage));
            };
            match Walk::new(&path) {
                Ok(walk) => self.at = Some((name, walk)),
                Err(error) => {
                    tracing::warn!(path = %path.display(), %error, "a directory cannot be measured");
                }
            }
        }
        let (name, walk) = self.at.as_mut()?;
        let bytes = self.usage.0.entry(name.clone()).or_default();
        let walked = walk.go_on(most, |seen| {
            *bytes = bytes.saturating_add(taken(seen));
            Ok(())
        });
        if let Err(error) = &walked {
            tracing::warn!(name, %error, "the rest of a directory cannot be measured");
        }
        if walked.unwrap_or(true) {
            if walk.lost() > 0 {
                tracing::debug!(name, lost = walk.lost(), "not everything could be measured");
            }
            self.at = None;
        }
        None
    }
}

/// What a file takes; one with several names is shared among them.
fn taken(seen: &Seen<'_>) -> u64 {
    let blocks = u64::try_from(seen.stat.st_blocks).unwrap_or(0).saturating_mul(512);
    (blocks / seen.stat.st_nlink.max(1)).max(SMALLEST)
}

/// Measures environments as long as the plane is there.
pub(super) async fn watch(plane: Weak<Plane>) {
    let (mut before, mut took) = (HashMap::new(), Duration::ZERO);
    while rest(&plane, took * REST).await.is_some() {
        let begun = Instant::now();
        let Some(ids) =
            plane.upgrade().map(|plane| plane.keepers().keys().copied().collect::<Vec<DeploymentId>>())
        else {
            return;
        };
        let mut now = HashMap::new();
        for id in ids {
            let Some(usage) = measure(&plane, id).await else { continue };
            let Some(plane) = plane.upgrade() else { return };
            let before = before.get(&id).copied();
            let judged = blocking(move || {
                judge(&plane, id, &usage, before);
                usage
            });
            now.insert(id, judged.await);
        }
        let Some(plane) = plane.upgrade() else { return };
        let totals = now.iter().map(|(id, usage)| (*id, usage.total())).collect();
        let earlier = std::mem::replace(&mut before, totals);
        blocking(move || stop_writer(&plane, &now, &earlier)).await;
        took = begun.elapsed();
    }
}

/// Waits for a while, or until much was written or the disk is full; nothing where the plane is gone.
async fn rest(plane: &Weak<Plane>, length: Duration) -> Option<()> {
    let look = |plane: Arc<Plane>| {
        blocking(move || {
            let free = free_bytes(&plane.layout.environments()).unwrap_or(0);
            (free, FullDisk::look(&plane).is_some())
        })
    };
    let (until, (at_first, _)) = (Instant::now() + length, look(plane.upgrade()?).await);
    loop {
        tokio::time::sleep(plane.upgrade()?.pace.measure).await;
        let (free, is_full) = look(plane.upgrade()?).await;
        let is_urgent = is_full || free < at_first.saturating_sub(MUCH);
        if is_urgent || Instant::now() >= until {
            return Some(());
        }
    }
}

/// The bytes that are free at a directory.
fn free_bytes(directory: &Path) -> Option<u64> {
    not_on_a_worker();
    let disk = rustix::fs::statvfs(directory).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Measures an environment, with pauses; nothing where it is gone.
async fn measure(plane: &Weak<Plane>, id: DeploymentId) -> Option<Usage> {
    let (place, bound, is_stopped) = {
        let plane = plane.upgrade()?;
        let is_stopped = plane.keepers().get(&id)?.stopped_for().is_some();
        (plane.layout.environment(id), plane.options.environment_disk, is_stopped)
    };
    let (mut measuring, begun, mut further) = (Measuring::new(&place), Instant::now(), 0);
    loop {
        let step = blocking(move || {
            let done = measuring.go_on(SLICE);
            (measuring, done)
        });
        let (kept, done) = step.await;
        measuring = kept;
        if done.is_some() {
            return done;
        }
        if bound.is_some_and(|most| measuring.usage.total() > most) {
            further += SLICE;
        }
        // What is stopped is measured to the end: it runs again only where all of it is little enough.
        if further > FURTHER || (!is_stopped && begun.elapsed() > LONGEST) {
            return Some(measuring.usage);
        }
        tokio::time::sleep(plane.upgrade()?.pace.slice).await;
    }
}

/// Tells an environment whether it has to stop because of what it has, or may run again.
fn judge(plane: &Plane, id: DeploymentId, usage: &Usage, before: Option<u64>) {
    let keepers = plane.keepers();
    let Some(handle) = keepers.get(&id) else { return };
    handle.view.pulse.note_disk(usage.total());
    let bound = plane.options.environment_disk;
    if let Some(most) = bound {
        let is_much = |bytes: u64| bytes > most / 5 * 4;
        if is_much(usage.total()) && !before.is_some_and(is_much) {
            let (has, may_have) = (size(usage.total()), size(most));
            tracing::warn!(%id, %has, %may_have, "an environment has nearly as much on disk as it may have");
        }
    }
    let is_stopped = handle.stopped_for();
    // What was stopped for the disk waits until there is room again.
    let why = over(usage, bound).or_else(|| is_stopped.clone().filter(|_| FullDisk::look(plane).is_some()));
    // The same words as long as it is stopped: every change of them is written down.
    if is_stopped.is_some() != why.is_some() {
        handle.stop_for(why);
    }
}

/// Stops whoever wrote the most, where the disk is full.
fn stop_writer(plane: &Plane, now: &HashMap<DeploymentId, Usage>, before: &HashMap<DeploymentId, u64>) {
    let Some(full) = FullDisk::look(plane) else { return };
    let growth =
        |(id, usage): (&DeploymentId, &Usage)| Some((usage.total().saturating_sub(*before.get(id)?), *id));
    let Some((_, id)) = now.iter().filter_map(growth).max().filter(|(growth, _)| *growth >= WRITES_ON) else {
        return;
    };
    let keepers = plane.keepers();
    let handle = keepers.get(&id).filter(|handle| handle.stopped_for().is_none());
    if let (Some(handle), Some(usage)) = (handle, now.get(&id)) {
        handle.stop_for(Some(full.described(usage)));
    }
}

/// What is wrong where an environment has more than it may.
fn over(usage: &Usage, most: Option<u64>) -> Option<UserText> {
    let most = most.filter(|most| usage.total() > *most)?;
    Some(UserText::filled(
        "it was stopped, because it has {} on disk and may have {} ({}). It starts again once it has less: remove files of \
         it on its machine, or have the operator raise --environment-disk-gib",
        &[&size(usage.total()), &size(most), &usage.described()],
    ))
}

/// A disk with less room than is kept for the control plane.
struct FullDisk {
    /// What is left, for people.
    left: UserText,
}

impl FullDisk {
    fn look(plane: &Plane) -> Option<Self> {
        not_on_a_worker();
        let disk = rustix::fs::statvfs(plane.layout.environments()).ok()?;
        let free = disk.f_bavail.saturating_mul(disk.f_frsize);
        let files = (disk.f_files > 0).then_some(disk.f_favail);
        Self::with(free, files, plane.options.disk_reserve)
    }

    /// Environments stop when a quarter of the reserve is gone: the rest is for what is written until they have, and for the
    /// control plane.
    fn with(free: u64, files: Option<u64>, reserve: u64) -> Option<Self> {
        if free < reserve.saturating_sub(reserve / 4) {
            let left =
                UserText::filled("{} are free, and {} are kept in reserve", &[&size(free), &size(reserve)]);
            return Some(Self { left });
        }
        let files = files.filter(|files| reserve > 0 && *files < FILES)?;
        Some(Self { left: UserText::filled("it can take {} files more", &[&files]) })
    }

    fn described(&self, usage: &Usage) -> UserText {
        UserText::filled(
            "it was stopped, because the disk of its machine is full ({}) and it went on writing: it has {} ({}). It \
             starts again once there is room",
            &[&self.left, &size(usage.total()), &usage.described()],
        )
    }
}

/// Half of the file system that a directory is on, or will be.
pub fn half_of_disk(directory: &Path) -> Option<u64> {
    let found = directory.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let disk = rustix::fs::statvfs(found).ok()?;
    Some(disk.f_blocks.saturating_mul(disk.f_frsize) / 2).filter(|half| *half > 0)
}

/// Bytes for people.
fn size(bytes: u64) -> UserText {
    if bytes < 10 << 30 {
        return UserText::filled("{} MiB", &[&(bytes >> 20)]);
    }
    UserText::filled("{} GiB", &[&(bytes >> 30)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_full_without_bytes_and_without_files() {
        let left = |free, files, reserve| FullDisk::with(free, files, reserve).map(|full| full.left);
        assert_eq!(left(3 << 20, Some(FILES), 4 << 20), None);
        assert_eq!(left(3 << 20, None, 4 << 20), None, "where files are not counted");
        let few = left(2 << 20, Some(FILES), 4 << 20);
        assert_eq!(few, Some("2 MiB are free, and 4 MiB are kept in reserve".into()));
        assert_eq!(left(8 << 20, Some(7), 4 << 20), Some("it can take 7 files more".into()));
        assert_eq!(left(0, Some(0), 0), None, "where nothing is kept in reserve");
    }

    #[test]
    fn half_of_a_disk_is_known_before_its_directory_is_made() {
        let directory = tempfile::tempdir().unwrap();
        let half = half_of_disk(directory.path());
        assert!(half.is_some());
        assert_eq!(half_of_disk(&directory.path().join("not/there/yet")), half);
    }
}
