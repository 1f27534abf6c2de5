//! Liveness: a component that runs but makes no progress is restarted after a bounded time.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, SystemTime};

use podium_api::Timestamp;
use podium_domain::{Reason, UserText};
use tokio::time::Instant;

use super::{SupervisedProcess, Supervisor};
use crate::blocking::blocking;
use crate::local::health::HealthReport;
use crate::local::identity::is_stopped;
use crate::local::network::is_uplink;

/// How old a component's last progress mark may be: it is renewed every second or two.
const PROGRESS: Duration = Duration::from_secs(45);

/// When components last reported progress, by name.
pub(super) type ProgressTimes = HashMap<String, SystemTime>;

impl Supervisor {
    /// The health of a running process, judged by whether it does its work.
    pub(super) fn liveness(
        &self,
        name: &str,
        kept: &SupervisedProcess,
        heard: Option<&HealthReport>,
        progress_times: &ProgressTimes,
        is_sequential: bool,
    ) -> Result<(), Reason> {
        if is_stopped(kept.process.identity.pid) {
            return Err("its process is stopped".into());
        }
        if is_uplink(name) {
            return self.check_uplink();
        }
        let progress = self.progress(progress_times.get(name).copied(), kept.started_at);
        let is_scheduler = name == "scheduler";
        if let Some(age) = progress.filter(|age| *age > PROGRESS)
            && !(is_scheduler && is_sequential)
        {
            let seconds = age.as_secs() / 10 * 10;
            return Err(UserText::filled("it has made no progress for {} s", &[&seconds]).into());
        }
        if name.starts_with("worker-") && progress.is_none() {
            return Err("it is not accepting tasks yet".into());
        }
        match heard.map_or(Ok(()), |heard| heard.of(name, kept.started_at)) {
            // While a task runs inside it, it sends no heartbeat.
            Err(_) if is_scheduler && is_sequential && kept.was_healthy => Ok(()),
            health => health,
        }
    }

    /// When each component last reported progress.
    pub(super) async fn progress_times(&self) -> ProgressTimes {
        let (status, names) = (self.place.status(), self.processes.keys().cloned().collect::<Vec<String>>());
        blocking(move || {
            let last_progress = |name: &String| {
                let path = status.join(format!("{name}.progress"));
                fs::symlink_metadata(path).and_then(|found| found.modified()).ok()
            };
            names.into_iter().filter_map(|name| last_progress(&name).map(|at| (name, at))).collect()
        })
        .await
    }

    /// How long ago a component last reported progress; `None` if it has not since its start.
    fn progress(&self, last_progress: Option<SystemTime>, started_at: Timestamp) -> Option<Duration> {
        let at = last_progress?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
        let at = Timestamp::from_millis(i64::try_from(at.as_millis()).ok()?);
        if at < started_at {
            return None;
        }
        let now = (self.plane.services.clock)();
        Some(Duration::from_millis(u64::try_from(now.millis() - at.millis()).unwrap_or(0)))
    }

    /// Kills components that have been unhealthy for too long, so that they are restarted.
    pub(super) async fn restart_hung(&mut self, healths: &[(String, Result<(), Reason>)]) {
        let timing = self.timing();
        for (name, health) in healths {
            let Some(kept) = self.processes.get_mut(name).filter(|kept| kept.kill_at.is_none()) else {
                continue;
            };
            let Err(why) = health else {
                (kept.was_healthy, kept.unhealthy_since) = (true, None);
                continue;
            };
            let since = *kept.unhealthy_since.get_or_insert_with(Instant::now);
            let patience = if kept.was_healthy { timing.hang_timeout } else { timing.startup_timeout };
            if since.elapsed() < patience {
                continue;
            }
            let killed = UserText::filled("it was killed after {} s", &[&patience.as_secs_f32()]);
            self.kill_and_record(name, why.clone().within(killed)).await;
        }
    }

    async fn kill_and_record(&mut self, name: &str, why: Reason) {
        let Some(kept) = self.processes.get(name) else { return };
        kept.process.kill().await;
        let is_steady = kept.since.elapsed() > self.timing().stable_after;
        self.remove_process(name).await;
        self.record_failure(name, why, is_steady).await;
    }
}
