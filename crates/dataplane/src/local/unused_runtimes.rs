//! Runtimes that nothing uses any more: removed after a while, because each takes hundreds of megabytes. What an
//! environment runs on, or ran on until lately and may be rolled back to, stays.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use podium_domain::options::Version;
use podium_domain::{Reason, UserText};

use super::plane::Plane;
use super::runtimes::READY;
use super::state::State;
use crate::blocking::{assert_may_block, blocking};

/// Its time of change says when a runtime was last used.
const USED: &str = "podium-used";
/// How often somebody looks.
const EVERY: Duration = Duration::from_hours(1);
/// What an installed runtime takes, with room for what is unpacked on the way.
const RUNTIME_SIZE: u64 = 1 << 30;

/// Refuses to begin an installation that would fill the disk.
pub(super) fn check_space_for_runtime(directory: &Path, reserve: u64) -> Result<(), Reason> {
    assert_may_block();
    let Ok(disk) = rustix::fs::statvfs(directory) else { return Ok(()) };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    if free >= reserve.saturating_add(RUNTIME_SIZE) {
        return Ok(());
    }
    let told = UserText::filled(
        "the disk is full: a runtime needs up to {} MiB, {} MiB are free and {} MiB are held in reserve",
        &[&(RUNTIME_SIZE >> 20), &(free >> 20), &(reserve >> 20)],
    );
    Err(Reason::new(told, directory.display()))
}

/// Notes that a runtime is used now.
pub(super) fn note_use(directory: &Path) {
    assert_may_block();
    let noted = File::create(directory.join(USED));
    if let Err(error) = noted.and_then(|file| file.set_len(0).and_then(|()| file.set_modified(now()))) {
        tracing::debug!(%error, directory = %directory.display(), "the last use of a runtime cannot be recorded");
    }
}

/// How long ago a whole runtime was last used.
pub(super) fn unused_for(directory: &Path) -> Option<Duration> {
    let changed = |name: &str| fs::metadata(directory.join(name)).and_then(|file| file.modified()).ok();
    let installed = changed(READY)?;
    let used = changed(USED).map_or(installed, |used| used.max(installed));
    Some(now().duration_since(used).unwrap_or_default())
}

/// Removes a runtime. What says that it is whole goes first.
pub(super) fn remove(directory: &Path) -> io::Result<()> {
    assert_may_block();
    fs::remove_file(directory.join(READY))?;
    fs::remove_dir_all(directory)
}

/// The versions that are installed.
pub(super) fn installed(runtimes: &Path) -> Vec<Version> {
    assert_may_block();
    let entries = fs::read_dir(runtimes).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Removes what is not used, from time to time, as long as the plane is there.
pub(super) async fn sweep(plane: Weak<Plane>) {
    loop {
        tokio::time::sleep(EVERY).await;
        let Some(plane) = plane.upgrade() else { return };
        once(&plane).await;
    }
}

/// Removes what has not been used for longer than the plane's retention.
pub(super) async fn once(plane: &Arc<Plane>) {
    let Some(days) = plane.options.runtime_retention_days else { return };
    let looked = Arc::clone(plane);
    match blocking(move || in_use(&looked)).await {
        Ok(in_use) => {
            let kept_for = Duration::from_hours(24 * u64::from(days));
            plane.runtimes.remove_unused(&in_use, kept_for).await;
        }
        // What an environment uses is not known, so nothing is removed.
        Err(error) => tracing::warn!(%error, "unused runtimes cannot be determined"),
    }
}

/// The versions that environments run on, are brought to, or have their database migrated for.
fn in_use(plane: &Plane) -> io::Result<BTreeSet<Version>> {
    let mut versions = BTreeSet::new();
    let mut add = |text: Option<String>| versions.extend(text.and_then(|text| text.parse::<Version>().ok()));
    for id in plane.layout.known()? {
        let Some(state) = State::read(&plane.layout.environment(id).state())? else { continue };
        add(state.running.runtime_version);
        add(state.migrated_for);
        add(state.server_runtime);
    }
    for handle in plane.supervisors().values() {
        if let super::Order::Run(environment) = &*handle.orders.borrow() {
            add(Some(environment.runtime_version.clone()));
        }
    }
    Ok(versions)
}

#[expect(clippy::disallowed_methods, reason = "times of files are the machine's")]
fn now() -> std::time::SystemTime {
    std::time::SystemTime::now()
}
