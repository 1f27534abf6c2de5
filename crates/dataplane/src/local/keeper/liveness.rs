//! Alive is what does its work: a component that runs and does not is started again, after a bounded time.

use std::fs;
use std::time::{Duration, SystemTime};

use podium_api::Timestamp;
use tokio::time::Instant;

use super::{Keeper, Kept};
use crate::local::health::Heard;
use crate::local::identity::is_stopped;
use crate::local::network::is_uplink;

/// How old a component's own sign of progress may be: it is given every second or two.
const PROGRESS: Duration = Duration::from_secs(45);

impl Keeper {
    /// How a process that runs does: by what it is for, as far as that can be told.
    pub(super) fn liveness(
        &self,
        name: &str,
        kept: &Kept,
        heard: Option<&Heard>,
        is_sequential: bool,
    ) -> Result<(), String> {
        if is_stopped(kept.process.identity.pid) {
            return Err("its process is stopped".into());
        }
        if is_uplink(name) {
            return self.uplink_health();
        }
        let progress = self.progress(name, kept.started_at);
        let is_scheduler = name == "scheduler";
        if let Some(age) = progress.filter(|age| *age > PROGRESS)
            && !(is_scheduler && is_sequential)
        {
            return Err(format!("it has made no progress for {} s", age.as_secs() / 10 * 10));
        }
        if name.starts_with("worker-") && progress.is_none() {
            return Err("it does not take tasks yet".into());
        }
        match heard.map_or(Ok(()), |heard| heard.of(name, kept.started_at)) {
            // While a task runs within it, it says nothing else.
            Err(_) if is_scheduler && is_sequential && kept.was_well => Ok(()),
            health => health,
        }
    }

    /// How long ago a component last said that it gets on; nothing where it never did since its start.
    fn progress(&self, name: &str, started_at: Timestamp) -> Option<Duration> {
        let path = self.place.status().join(format!("{name}.progress"));
        let modified = fs::symlink_metadata(path).ok()?.modified().ok()?;
        let at = modified.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let at = Timestamp::from_millis(i64::try_from(at.as_millis()).ok()?);
        if at < started_at {
            return None;
        }
        let now = (self.plane.services.clock)();
        Some(Duration::from_millis(u64::try_from(now.millis() - at.millis()).unwrap_or(0)))
    }

    /// Starts a component again that has not been well for too long.
    pub(super) async fn end_hung(&mut self, healths: &[(String, Result<(), String>)]) {
        let pace = self.pace();
        for (name, health) in healths {
            let Some(kept) = self.kept.get_mut(name).filter(|kept| kept.ends_by.is_none()) else { continue };
            let Err(why) = health else {
                (kept.was_well, kept.unwell_since) = (true, None);
                continue;
            };
            let since = *kept.unwell_since.get_or_insert_with(Instant::now);
            let patience = if kept.was_well { pace.hung } else { pace.patience };
            if since.elapsed() < patience {
                continue;
            }
            let why = format!("it was killed after {} s: {why}", patience.as_secs_f32());
            self.end_at_once(name, &why).await;
        }
    }

    async fn end_at_once(&mut self, name: &str, why: &str) {
        let Some(kept) = self.kept.get(name) else { return };
        kept.process.kill().await;
        let is_steady = kept.since.elapsed() > self.pace().steady;
        self.forget_process(name);
        self.note_failure(name, why, is_steady);
    }
}
