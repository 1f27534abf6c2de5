//! Removes unused runtimes and layers of packages after a while, because each takes hundreds of megabytes. Those that
//! are in use, or were until recently and may be rolled back to, stay.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use podium_domain::options::Version;
use podium_domain::{Reason, UserText};

use super::disk_space::FreeSpace;
use super::plane::Plane;
use super::runtimes::READY;
use super::state::State;
use crate::blocking::{assert_may_block, blocking};

/// Its modification time says when a runtime was last used.
const USED: &str = "podium-used";
const EVERY: Duration = Duration::from_hours(1);
/// The size of an installed runtime, with space for unpacking.
const RUNTIME_SIZE: u64 = 1 << 30;

/// Refuses an installation that would fill the disk.
pub(super) fn check_space_for_runtime(directory: &Path, reserve: u64) -> Result<(), Reason> {
    let Ok(FreeSpace { bytes: free, .. }) = FreeSpace::of(directory) else { return Ok(()) };
    if free >= reserve.saturating_add(RUNTIME_SIZE) {
        return Ok(());
    }
    let told = UserText::filled(
        "the disk is full: a runtime needs up to {} MiB, {} MiB are free and {} MiB are held in reserve",
        &[&(RUNTIME_SIZE >> 20), &(free >> 20), &(reserve >> 20)],
    );
    Err(Reason::new(told, directory.display()))
}

/// Records that a runtime is in use now.
pub(super) fn note_use(directory: &Path) {
    assert_may_block();
    let noted = File::create(directory.join(USED));
    if let Err(error) = noted.and_then(|file| file.set_len(0).and_then(|()| file.set_modified(now()))) {
        tracing::debug!(%error, directory = %directory.display(), "the last use of a runtime cannot be recorded");
    }
}

/// How long ago a complete runtime was last used.
fn unused_for(directory: &Path) -> Option<Duration> {
    let changed = |name: &str| fs::metadata(directory.join(name)).and_then(|file| file.modified()).ok();
    let installed = changed(READY)?;
    let used = changed(USED).map_or(installed, |used| used.max(installed));
    Some(now().duration_since(used).unwrap_or_default())
}

/// Removes a runtime, starting with its completion marker.
fn remove(directory: &Path) -> io::Result<()> {
    assert_may_block();
    fs::remove_file(directory.join(READY))?;
    fs::remove_dir_all(directory)
}

/// Removes what has been unused for longer than this; returns whether it did.
pub(super) fn remove_if_idle(directory: &Path, kept_for: Duration) -> io::Result<bool> {
    if unused_for(directory).is_none_or(|idle| idle <= kept_for) {
        return Ok(false);
    }
    remove(directory).map(|()| true)
}

pub(super) fn installed(runtimes: &Path) -> Vec<Version> {
    assert_may_block();
    let entries = fs::read_dir(runtimes).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Removes unused runtimes periodically, as long as the plane exists.
pub(super) async fn sweep(plane: Weak<Plane>) {
    if let Some(plane) = plane.upgrade() {
        plane.runtimes.close_installed().await;
    }
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(plane) = plane.upgrade() else { return };
        once(&plane).await;
    }
}

/// Removes runtimes that have been unused for longer than the retention period.
pub(super) async fn once(plane: &Arc<Plane>) {
    let Some(days) = plane.options.runtime_retention_days else { return };
    let looked = Arc::clone(plane);
    match blocking(move || in_use(&looked)).await {
        Ok(in_use) => {
            let kept_for = Duration::from_hours(24 * u64::from(days));
            plane.runtimes.remove_unused(&in_use.runtimes, kept_for).await;
            plane.packages.remove_unused(&in_use.layers, kept_for, layers_in_use(plane)).await;
        }
        // It is unknown what environments use, so nothing is removed.
        Err(error) => tracing::warn!(%error, "unused runtimes cannot be determined"),
    }
}

/// Removes layers of packages that no environment uses, if there is no room for another.
pub(super) async fn make_room_for_layer(plane: &Arc<Plane>) {
    let looked = Arc::clone(plane);
    let in_use = blocking(move || {
        let has_room = check_space_for_runtime(&looked.layout.layers(), looked.options.disk_reserve).is_ok();
        if has_room { Ok(None) } else { in_use(&looked).map(Some) }
    });
    match in_use.await {
        Ok(None) => {}
        Ok(Some(in_use)) => {
            plane.packages.remove_unused(&in_use.layers, Duration::ZERO, layers_in_use(plane)).await;
        }
        Err(error) => tracing::warn!(%error, "unused packages cannot be determined"),
    }
}

struct InUse {
    /// The versions that they run, are being changed to, or have their database migrated to.
    runtimes: BTreeSet<Version>,
    /// The layers that they run with, or are being changed to.
    layers: BTreeSet<String>,
}

fn layers_in_use(
    plane: &Arc<Plane>,
) -> impl Fn() -> io::Result<BTreeSet<String>> + Clone + Send + 'static + use<> {
    let plane = Arc::clone(plane);
    move || in_use(&plane).map(|in_use| in_use.layers)
}

fn in_use(plane: &Plane) -> io::Result<InUse> {
    let (mut versions, mut layers) = (BTreeSet::new(), BTreeSet::new());
    let mut add = |text: Option<String>| versions.extend(text.and_then(|text| text.parse::<Version>().ok()));
    for id in plane.layout.known()? {
        let Some(state) = State::read(&plane.layout.environment(id).state())? else { continue };
        add(state.live().runtime_version.clone());
        add(state.running.runtime_version);
        add(state.migrated_for);
        add(state.server_runtime);
        layers.extend(state.layers);
    }
    for handle in plane.supervisors().values() {
        if let super::Order::Run(environment) = &*handle.orders.borrow() {
            add(Some(environment.spec.runtime_version.clone()));
        }
    }
    Ok(InUse { runtimes: versions, layers })
}

#[expect(clippy::disallowed_methods, reason = "times of files are the machine's")]
fn now() -> std::time::SystemTime {
    std::time::SystemTime::now()
}
