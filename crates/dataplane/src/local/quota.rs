//! Disk quotas of environments: usage is measured a little at a time.
//!
//! An environment that exceeds its quota is stopped, with a status reason, until it uses less. If the disk itself runs
//! full, environments that keep writing are stopped before nothing is left for the control plane. Between two
//! measurements an environment can exceed its quota: the kernel does not enforce it.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use podium_api::DeploymentId;
use podium_domain::{Given, UserText};
use tokio::time::Instant;

use super::disk_space::{FEWEST_FILES, FreeSpace};
use super::layout::Place;
use super::packages::recorded_size;
use super::plane::Plane;
use super::state::State;
use super::trees::{Entry, Walk};
use crate::blocking::{assert_may_block, blocking};

/// How many files are measured before a pause.
const SLICE: usize = 4_000;
/// The least that a file counts, because its directory entry takes space too.
const SMALLEST: u64 = 4096;
/// After measuring, the pause is this many times as long, unless much is written.
const REST: u32 = 5;
/// How much may be written before usage is measured again.
const MUCH: u64 = 256 << 20;
/// Growth between two measurements of a full disk that counts as writing.
const WRITES_ON: u64 = 1 << 20;
/// How many more files are measured of an environment that exceeds its quota, to say where they are.
const FURTHER: usize = 25 * SLICE;
/// The longest measurement of a running environment: files that come and go could make it endless.
const LONGEST: Duration = Duration::from_secs(600);

/// The name of shared layers of packages.
const PACKAGES: &str = "packages";

/// The disk usage of an environment by directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage(BTreeMap<String, u64>);

impl Usage {
    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The largest directories, as text.
    fn described(&self) -> UserText {
        let mut parts: Vec<(&String, &u64)> = self.0.iter().filter(|(_, bytes)| **bytes >= 1 << 20).collect();
        parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        let part = |(name, bytes): &(&String, &u64)| {
            UserText::filled("{} in {}", &[&size(**bytes), &Given::word(name)])
        };
        UserText::joined(parts.iter().take(3).map(part), ", ")
    }
}

pub(super) struct Measuring {
    waiting: Vec<(String, std::path::PathBuf)>,
    at: Option<(String, Walk)>,
    usage: Usage,
}

/// What an environment uses of shared directories: the packages of its project, as if it had them alone. While they change
/// there are two, and the larger one counts: a change that fits must not stop the environment.
fn shared(place: &Place, layers: &Path) -> u64 {
    assert_may_block();
    let state = State::read(&place.state()).ok().flatten().unwrap_or_default();
    state.layers.iter().map(|key| recorded_size(&layers.join(key))).max().unwrap_or_default()
}

impl Measuring {
    pub(super) fn new(place: &Place, layers: &Path) -> Self {
        let usage = Usage(BTreeMap::from([(PACKAGES.to_owned(), shared(place, layers))]));
        Self { waiting: place.measured(), at: None, usage }
    }

    /// Continues measuring; returns the usage once it is complete. What cannot be read is not counted.
    pub(super) fn advance(&mut self, most: usize) -> Option<Usage> {
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
        let walked = walk.advance(most, |seen| {
            *bytes = bytes.saturating_add(taken(seen));
            Ok(())
        });
        if let Err(error) = &walked {
            tracing::warn!(name, %error, "the rest of a directory cannot be measured");
        }
        if walked.unwrap_or(true) {
            if walk.lost > 0 {
                tracing::debug!(name, lost = walk.lost, "not everything could be measured");
            }
            self.at = None;
        }
        None
    }
}

/// The space of a file, divided by its number of hard links.
fn taken(seen: &Entry<'_>) -> u64 {
    let blocks = u64::try_from(seen.stat.st_blocks).unwrap_or(0).saturating_mul(512);
    (blocks / seen.stat.st_nlink.max(1)).max(SMALLEST)
}

/// Measures environments as long as the plane exists.
pub(super) async fn watch(plane: Weak<Plane>) {
    let (mut before, mut took) = (HashMap::new(), Duration::ZERO);
    while rest(&plane, took * REST).await.is_some() {
        let begun = Instant::now();
        let Some(ids) =
            plane.upgrade().map(|plane| plane.supervisors().keys().copied().collect::<Vec<DeploymentId>>())
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

/// Waits for a while, or until much was written or the disk is full; `None` if the plane is gone.
async fn rest(plane: &Weak<Plane>, length: Duration) -> Option<()> {
    let look = |plane: Arc<Plane>| {
        blocking(move || {
            let free = FreeSpace::of(&plane.layout.environments()).map_or(0, |free| free.bytes);
            (free, FullDisk::look(&plane).is_some())
        })
    };
    let (until, (at_first, _)) = (Instant::now() + length, look(plane.upgrade()?).await);
    loop {
        tokio::time::sleep(plane.upgrade()?.timing.disk_poll).await;
        let (free, is_full) = look(plane.upgrade()?).await;
        let is_urgent = is_full || free < at_first.saturating_sub(MUCH);
        if is_urgent || Instant::now() >= until {
            return Some(());
        }
    }
}

/// Measures an environment, with pauses; `None` if it is gone.
async fn measure(plane: &Weak<Plane>, id: DeploymentId) -> Option<Usage> {
    let (place, layers, bound, is_stopped) = {
        let plane = plane.upgrade()?;
        let is_stopped = plane.supervisors().get(&id)?.controls.stop_reason().is_some();
        let (place, layers) = (plane.layout.environment(id), plane.layout.layers());
        (place, layers, plane.options.environment_disk, is_stopped)
    };
    let mut measuring = blocking(move || Measuring::new(&place, &layers)).await;
    let (begun, mut further) = (Instant::now(), 0);
    loop {
        let step = blocking(move || {
            let done = measuring.advance(SLICE);
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
        // A stopped environment is measured completely: it runs again only if its total is below the quota.
        if further > FURTHER || (!is_stopped && begun.elapsed() > LONGEST) {
            return Some(measuring.usage);
        }
        tokio::time::sleep(plane.upgrade()?.timing.disk_pause).await;
    }
}

/// Stops an environment that exceeds its quota, or lets it run again.
fn judge(plane: &Plane, id: DeploymentId, usage: &Usage, before: Option<u64>) {
    let supervisors = plane.supervisors();
    let Some(handle) = supervisors.get(&id) else { return };
    handle.view.lock().disk = Some(usage.total());
    let bound = plane.options.environment_disk;
    if let Some(most) = bound {
        let is_much = |bytes: u64| bytes > most / 5 * 4;
        if is_much(usage.total()) && !before.is_some_and(is_much) {
            let (has, may_have) = (size(usage.total()), size(most));
            tracing::warn!(%id, %has, %may_have, "an environment uses more than 80 percent of its disk quota");
        }
    }
    let is_stopped = handle.controls.stop_reason();
    // One that was stopped for a full disk waits until there is space again.
    let why = over(usage, bound).or_else(|| is_stopped.clone().filter(|_| FullDisk::look(plane).is_some()));
    // The text stays the same while it is stopped, because every change of it is stored.
    if is_stopped.is_some() != why.is_some() {
        handle.set_stop_reason(why);
    }
}

/// Stops the environment that wrote the most, if the disk is full.
fn stop_writer(plane: &Plane, now: &HashMap<DeploymentId, Usage>, before: &HashMap<DeploymentId, u64>) {
    let Some(full) = FullDisk::look(plane) else { return };
    let growth =
        |(id, usage): (&DeploymentId, &Usage)| Some((usage.total().saturating_sub(*before.get(id)?), *id));
    let Some((_, id)) = now.iter().filter_map(growth).max().filter(|(growth, _)| *growth >= WRITES_ON) else {
        return;
    };
    let supervisors = plane.supervisors();
    let handle = supervisors.get(&id).filter(|handle| handle.controls.stop_reason().is_none());
    if let (Some(handle), Some(usage)) = (handle, now.get(&id)) {
        handle.set_stop_reason(Some(full.described(usage)));
    }
}

/// The status reason of an environment that exceeds its quota.
fn over(usage: &Usage, most: Option<u64>) -> Option<UserText> {
    let most = most.filter(|most| usage.total() > *most)?;
    Some(UserText::filled(
        "it was stopped because it uses {} of disk space and may use {} ({}). It starts again once it uses less: remove some of its files on its machine, or have the operator raise --environment-disk-gib",
        &[&size(usage.total()), &size(most), &usage.described()],
    ))
}

/// A disk with less free space than is reserved for the control plane.
struct FullDisk {
    left: UserText,
}

impl FullDisk {
    fn look(plane: &Plane) -> Option<Self> {
        let FreeSpace { bytes, files } = FreeSpace::of(&plane.layout.environments()).ok()?;
        Self::with(bytes, files, plane.options.disk_reserve)
    }

    /// Environments are stopped when a quarter of the reserve is used: the rest is for what they write until then, and
    /// for the control plane.
    fn with(free: u64, files: Option<u64>, reserve: u64) -> Option<Self> {
        if free < reserve.saturating_sub(reserve / 4) {
            let left = UserText::filled("{} free, {} held in reserve", &[&size(free), &size(reserve)]);
            return Some(Self { left });
        }
        let files = files.filter(|files| reserve > 0 && *files < FEWEST_FILES)?;
        Some(Self { left: UserText::filled("room for {} more files", &[&files]) })
    }

    fn described(&self, usage: &Usage) -> UserText {
        UserText::filled(
            "it was stopped because the disk of its machine is full ({}) and it kept writing: it uses {} ({}). It starts again once there is space",
            &[&self.left, &size(usage.total()), &usage.described()],
        )
    }
}

/// Half of the size of the file system of a directory, which may not exist yet.
pub fn half_of_disk(directory: &Path) -> Option<u64> {
    let found = directory.ancestors().find(|path| path.exists()).unwrap_or(Path::new("."));
    let disk = rustix::fs::statvfs(found).ok()?;
    Some(disk.f_blocks.saturating_mul(disk.f_frsize) / 2).filter(|half| *half > 0)
}

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
        assert_eq!(left(3 << 20, Some(FEWEST_FILES), 4 << 20), None);
        assert_eq!(left(3 << 20, None, 4 << 20), None, "where files are not counted");
        let few = left(2 << 20, Some(FEWEST_FILES), 4 << 20);
        assert_eq!(few, Some("2 MiB free, 4 MiB held in reserve".into()));
        assert_eq!(left(8 << 20, Some(7), 4 << 20), Some("room for 7 more files".into()));
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
