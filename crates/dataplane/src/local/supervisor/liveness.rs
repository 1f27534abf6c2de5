//! Liveness and failures: a component that runs but makes no progress is restarted after a bounded time. How often a component
//! failed, why, and when it is restarted is also written to its log.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, SystemTime};

use podium_airflow::health::{HealthReport, RunningComponent, progress_mark};
use podium_api::Timestamp;
use podium_domain::{Reason, UserText};
use tokio::time::Instant;

use super::{SupervisedProcess, Supervisor};
use crate::LogLine;
use crate::blocking::blocking;
use crate::local::components;
use crate::local::identity::is_stopped;
use crate::local::network::is_uplink;
use crate::local::process::{log_length, work_of_group};
use crate::local::timing::Timing;

/// What part of its time a component that gets on works, or waits for a processor, at least.
const LEAST_WORK: u32 = 128;

/// When components last reported progress, by name.
pub(super) type ProgressTimes = HashMap<String, Timestamp>;

/// How far a component that is unhealthy had come at a time.
#[derive(Clone, Copy)]
pub(super) struct GotOn {
    at: Instant,
    work: Duration,
    log_length: u64,
}

impl GotOn {
    /// Whether it has come further since then than one that only waits would in this time.
    fn is_beyond(&self, last: &Self, patience: Duration) -> bool {
        let least = (patience / LEAST_WORK).max(Duration::from_nanos(1));
        self.work >= last.work + least || self.work < last.work || self.log_length != last.log_length
    }
}

/// The failures of a component.
#[derive(Default)]
pub(super) struct Failure {
    pub(super) times: u32,
    pub(super) start_at: Option<Instant>,
    pub(super) why: Reason,
}

impl Failure {
    pub(super) fn fail(&mut self, why: Reason, timing: &Timing) {
        let pause = timing.pause(self.times);
        self.times += 1;
        self.start_at = Some(Instant::now() + pause);
        let times = match self.times {
            1 => UserText::new("once"),
            times => UserText::filled("{} times", &[&times]),
        };
        // The text stays the same until something happens, because every change of it is stored.
        let more = "; happened {}, restarting after {} s";
        self.why = why.followed_by(&UserText::filled(more, &[&times, &pause.as_secs_f32()]));
    }
}

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
        let running = RunningComponent {
            name,
            started_at: kept.started_at,
            progress_at: progress_times.get(name).copied(),
            heard,
            is_sequential,
            was_healthy: kept.was_healthy,
        };
        running.health((self.plane.services.clock)())
    }

    /// When each component last reported progress.
    pub(super) async fn progress_times(&self) -> ProgressTimes {
        let (status, names) = (self.place.status(), self.processes.keys().cloned().collect::<Vec<String>>());
        blocking(move || {
            let last_progress = |name: &String| {
                let path = status.join(progress_mark(name));
                let at = fs::symlink_metadata(path).and_then(|found| found.modified()).ok()?;
                let since = at.duration_since(SystemTime::UNIX_EPOCH).ok()?;
                Some(Timestamp::from_millis(i64::try_from(since.as_millis()).ok()?))
            };
            names.into_iter().filter_map(|name| last_progress(&name).map(|at| (name, at))).collect()
        })
        .await
    }

    /// Whether a component may have started tasks since its start: one that has not come so far has none to wait for.
    pub(super) async fn may_run_tasks(&self, name: &str) -> bool {
        let Some(kept) = self.processes.get(name) else { return false };
        let last_progress = self.progress_times().await.get(name).copied();
        kept.has_worked || last_progress.is_some_and(|at| at >= kept.started_at)
    }

    /// Kills components that have been unhealthy for too long, so that they are restarted. One that gets on is given time: on
    /// an overloaded machine another start would make that worse. One that was healthy and works, but does not respond,
    /// may be caught in a loop: it gets as long as a start may take.
    pub(super) async fn restart_hung(&mut self, healths: &[(String, Result<(), Reason>)]) {
        let timing = self.timing();
        for (name, health) in healths {
            let Some(kept) = self.processes.get_mut(name).filter(|kept| kept.kill_at.is_none()) else {
                continue;
            };
            let Err(why) = health else {
                (kept.was_healthy, kept.unhealthy_since, kept.got_on) = (true, None, None);
                continue;
            };
            let patience = if kept.was_healthy { timing.hang_timeout } else { timing.startup_timeout };
            let (group, log) = (kept.process.identity.pid, self.place.component_log(name));
            let (work, log_length) = blocking(move || (work_of_group(group), log_length(&log))).await;
            let got_on = GotOn { at: Instant::now(), work, log_length };
            let last = *kept.got_on.get_or_insert(got_on);
            // The tasks of a scheduler that is stopped may still work.
            if !is_stopped(group) && got_on.is_beyond(&last, patience) {
                kept.got_on = Some(got_on);
            }
            let (since, idle) =
                (*kept.unhealthy_since.get_or_insert_with(Instant::now), kept.got_on.unwrap_or(got_on).at);
            let is_caught = kept.was_healthy && since.elapsed() >= timing.startup_timeout.max(patience);
            if idle.elapsed() < patience && !is_caught {
                continue;
            }
            let patience = if is_caught { timing.startup_timeout.max(patience) } else { patience };
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

    /// Records that a component failed and when it restarts.
    pub(super) async fn record_failure(&mut self, name: &str, why: Reason, is_steady: bool) -> Reason {
        let timing = self.timing();
        let failure = self.failures.entry(name.to_owned()).or_default();
        if is_steady {
            failure.times = 0;
        }
        failure.fail(why, &timing);
        let why = failure.why.clone();
        tracing::warn!(id = %self.id, component = name, %why, "a component failed and will be restarted");
        *self.state.restarts.entry(name.to_owned()).or_default() += 1;
        self.save_state().await;
        self.log_for_component(name, why.user_text());
        why
    }

    /// Writes a line of the supervisor to a component's log.
    fn log_for_component(&self, component: &str, what: &UserText) {
        let Some(source) = components::source(component) else { return };
        let line = LogLine {
            deployment_id: self.id,
            source: source.to_owned(),
            timestamp: (self.plane.services.clock)(),
            text: format!("podium.supervisor: {component}: {what}"),
        };
        let logs = std::sync::Arc::clone(&self.plane.services.logs);
        let id = self.id;
        tokio::spawn(async move {
            if let Err(fault) = logs.append(vec![line]).await {
                tracing::warn!(%id, %fault, "a component's restart could not be written to its log");
            }
        });
    }
}
