//! What environments have on disk: measured a little at a time, and bounded.
//!
//! An environment that has more than it may is stopped, and says so, until it has less. Where the disk itself runs full
//! those are stopped that go on writing, before nothing is left for the control plane. Between two looks an environment
//! can write more than it may: the bound is kept to, not enforced by the kernel.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use podium_api::Id;
use rustix::io::Result;
use tokio::time::Instant;

use super::layout::Place;
use super::plane::Plane;
use super::trees::{Seen, Walk};

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

/// What an environment has on disk, by the directory that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage(BTreeMap<String, u64>);

impl Usage {
    pub(super) fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// The directories that hold the most, for people.
    fn described(&self) -> String {
        let mut parts: Vec<(&String, &u64)> = self.0.iter().filter(|(_, bytes)| **bytes >= 1 << 20).collect();
        parts.sort_by_key(|(_, bytes)| std::cmp::Reverse(**bytes));
        let parts: Vec<String> =
            parts.iter().take(3).map(|(name, bytes)| format!("{} in {name}", size(**bytes))).collect();
        parts.join(", ")
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

    /// Measures on; the usage once that was all.
    pub(super) fn go_on(&mut self, most: usize) -> Result<Option<Usage>> {
        if self.at.is_none() {
            let Some((name, path)) = self.waiting.pop() else {
                return Ok(Some(std::mem::take(&mut self.usage)));
            };
            self.at = Some((name, Walk::new(&path)?));
        }
        let Some((name, walk)) = &mut self.at else { return Ok(None) };
        let bytes = self.usage.0.entry(name.clone()).or_default();
        let is_all = walk.go_on(most, |seen| {
            *bytes = bytes.saturating_add(taken(seen));
            Ok(())
        })?;
        if is_all {
            if walk.lost() > 0 {
                tracing::debug!(name, lost = walk.lost(), "directories moved while they were measured");
            }
            self.at = None;
        }
        Ok(None)
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
        let Some(ids) = plane.upgrade().map(|plane| plane.keepers().keys().copied().collect::<Vec<Id>>())
        else {
            return;
        };
        let mut now = HashMap::new();
        for id in ids {
            if let Some(usage) = measure(&plane, id).await {
                now.insert(id, usage);
            }
        }
        let Some(plane) = plane.upgrade() else { return };
        judge(&plane, &now, &before);
        before = now.into_iter().map(|(id, usage)| (id, usage.total())).collect();
        took = begun.elapsed();
    }
}

/// Waits for a while, or until much was written or the disk is full; nothing where the plane is gone.
async fn rest(plane: &Weak<Plane>, length: Duration) -> Option<()> {
    let free = |plane: &Plane| free_bytes(&plane.layout.environments()).unwrap_or(0);
    let (until, at_first) = (Instant::now() + length, free(&*plane.upgrade()?));
    loop {
        tokio::time::sleep(plane.upgrade()?.pace.measure).await;
        let plane = plane.upgrade()?;
        let is_urgent = FullDisk::look(&plane).is_some() || free(&plane) < at_first.saturating_sub(MUCH);
        if is_urgent || Instant::now() >= until {
            return Some(());
        }
    }
}

/// The bytes that are free at a directory.
fn free_bytes(directory: &Path) -> Option<u64> {
    let disk = rustix::fs::statvfs(directory).ok()?;
    Some(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Measures an environment, with pauses; nothing where it is gone or cannot be measured now.
async fn measure(plane: &Weak<Plane>, id: Id) -> Option<Usage> {
    let place = plane.upgrade()?.layout.environment(id);
    let mut measuring = Measuring::new(&place);
    loop {
        let step = tokio::task::spawn_blocking(move || {
            let done = measuring.go_on(SLICE);
            (measuring, done)
        });
        let (kept, done) = step.await.ok()?;
        measuring = kept;
        match done {
            Ok(Some(usage)) => return Some(usage),
            Ok(None) => tokio::time::sleep(plane.upgrade()?.pace.slice).await,
            Err(error) => {
                tracing::warn!(%id, %error, "what an environment has on disk cannot be measured");
                return None;
            }
        }
    }
}

/// Tells each environment whether it has to stop.
fn judge(plane: &Arc<Plane>, now: &HashMap<Id, Usage>, before: &HashMap<Id, u64>) {
    let full = FullDisk::look(plane);
    let growth = |(id, usage): (&Id, &Usage)| Some((usage.total().saturating_sub(*before.get(id)?), *id));
    let writer = now.iter().filter_map(growth).max();
    let writer = writer.filter(|(growth, _)| full.is_some() && *growth >= WRITES_ON).map(|(_, id)| id);
    for (id, handle) in plane.keepers().iter() {
        let Some(usage) = now.get(id) else { continue };
        handle.view.pulse.note_disk(usage.total());
        let is_stopped = handle.stopped_for();
        let why = match (over(usage, plane.options.environment_disk), &full) {
            (Some(over), _) => Some(over),
            (None, Some(full)) if writer == Some(*id) => Some(full.described(usage)),
            // What was stopped for the disk waits until there is room again.
            (None, Some(_)) => is_stopped.clone(),
            (None, None) => None,
        };
        // The same words as long as it is stopped: every change of them is written down.
        if is_stopped.is_some() != why.is_some() {
            handle.stop_for(why);
        }
    }
}

/// What is wrong where an environment has more than it may.
fn over(usage: &Usage, most: Option<u64>) -> Option<String> {
    let most = most.filter(|most| usage.total() > *most)?;
    Some(format!(
        "it was stopped, because it has {} on disk and may have {} ({}). It starts again once it has less: remove files of \
         it on its machine, or have the operator raise --environment-disk-gib",
        size(usage.total()),
        size(most),
        usage.described()
    ))
}

/// A disk with less room than is kept for the control plane.
struct FullDisk {
    free: u64,
    reserve: u64,
}

impl FullDisk {
    /// Environments stop when a quarter of the reserve is gone: the rest is for what is written until they have, and for the
    /// control plane.
    fn look(plane: &Plane) -> Option<Self> {
        let (free, reserve) = (free_bytes(&plane.layout.environments())?, plane.options.disk_reserve);
        (free < reserve.saturating_sub(reserve / 4)).then_some(Self { free, reserve })
    }

    fn described(&self, usage: &Usage) -> String {
        format!(
            "it was stopped, because the disk of its machine is full ({} are free, and {} are kept in reserve) and it went \
             on writing: it has {} ({}). It starts again once there is room",
            size(self.free),
            size(self.reserve),
            size(usage.total()),
            usage.described()
        )
    }
}

/// Bytes for people.
fn size(bytes: u64) -> String {
    if bytes < 10 << 30 {
        return format!("{} MiB", bytes >> 20);
    }
    format!("{} GiB", bytes >> 30)
}
