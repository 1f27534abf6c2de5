//! Liveness and failures: a component that runs but makes no progress is restarted after a bounded time. How often a
//! component failed, why, and when it is restarted is also written to its log.
//!
//! What tasks need is asked whether it answers, and what starts or runs tasks is held until then. A scheduler that is
//! about to start is told since when there have been workers and a broker: what an earlier scheduler gave to others is
//! lost, and no worker that is there now has it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fs, io};

use podium_airflow::components::queue_of;
use podium_airflow::health::{HealthReport, RunningComponent, TaskNeeds, progress_mark};
use podium_api::Timestamp;
use podium_domain::{Reason, UserText};
use rustix::system::sysinfo;
use serde::Serialize;
use tokio::time::Instant;

use super::{SupervisedProcess, Supervisor};
use crate::LogLine;
use crate::blocking::{blocking, blocking_exclusive};
use crate::local::broker::{BROKER, OwnBroker};
use crate::local::components::{self, is_web};
use crate::local::identity::is_stopped;
use crate::local::layout::write_whole;
use crate::local::network::is_uplink;
use crate::local::process::{log_length, work_of_group};
use crate::local::program::Program;
use crate::local::timing::Timing;

/// What part of its time a component that gets on works, or waits for a processor, at least.
const LEAST_WORK: u32 = 128;

/// When components last reported progress, by name.
pub(super) type ProgressTimes = HashMap<String, Timestamp>;

/// Since when there have been workers and a broker, in seconds since the machine was started.
#[derive(Serialize)]
struct Since<'a> {
    /// By queue.
    workers: BTreeMap<&'a str, f64>,
    /// The environment's own broker, which keeps messages in memory only.
    broker: Option<f64>,
}

fn needs(programs: &[Program]) -> TaskNeeds {
    let has = |name: &str| programs.iter().any(|program| program.name == name);
    TaskNeeds { task_api: has("apiserver"), broker: has(BROKER) }
}

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

    /// What a program that is not running has to wait for, if it has to.
    pub(super) fn waits_for(&self, name: &str, programs: &[Program]) -> Option<&'static str> {
        needs(programs).missing_for(name, self.answering)
    }

    /// Whether a program is not running because of that.
    fn is_any_held(&self, programs: &[Program]) -> bool {
        let is_held = |program: &Program| {
            !self.processes.contains_key(&program.name) && self.waits_for(&program.name, programs).is_some()
        };
        programs.iter().any(is_held)
    }

    /// Notes that a process has ended: whatever takes its place has not answered yet.
    pub(super) fn forget_answers_of(&mut self, name: &str) {
        self.answering.task_api &= !is_web(name);
        self.answering.broker &= name != BROKER;
    }

    /// Notes those that have ended and whose exits are not handled yet.
    pub(super) fn forget_answers_of_ended(&mut self) {
        let has_ended = |name: &&String| !self.processes[*name].process.identity.is_alive();
        let ended: Vec<String> = self.processes.keys().filter(has_ended).cloned().collect();
        ended.iter().for_each(|name| self.forget_answers_of(name));
    }

    /// Whether the environment's own broker answers; one that it does not have is not asked.
    pub(super) async fn does_broker_answer(&self, programs: &[Program]) -> bool {
        if !needs(programs).broker || !self.processes.contains_key(BROKER) {
            return false;
        }
        let (place, user) = (self.place.clone(), self.isolation.user);
        let Ok(socket) = blocking(move || OwnBroker::socket(&place, user)).await else { return false };
        tokio::net::UnixStream::connect(socket).await.is_ok()
    }

    /// Waits until what programs wait for answers; forever if none does.
    pub(super) async fn until_answered(&self, programs: &[Program]) -> TaskNeeds {
        if !self.is_any_held(programs) {
            return std::future::pending().await;
        }
        let client = &Arc::clone(&self.plane).web_client;
        let base = self.base_url(&self.state.namespace);
        loop {
            let is_served = self.why_not_serving(3).await.is_none();
            let now = TaskNeeds {
                task_api: needs(programs).task_api && is_served && client.warm_up(&base).await.is_ok(),
                broker: self.does_broker_answer(programs).await,
            };
            if now.task_api && !self.answering.task_api || now.broker && !self.answering.broker {
                return now;
            }
            tokio::time::sleep(self.timing().startup_poll).await;
        }
    }

    /// Tells that to a program that is about to start, if it is the scheduler of workers.
    pub(super) async fn tell_of_workers(&self, starting: &Program, programs: &[Program]) -> io::Result<()> {
        // It is rounded up, and what is too early takes too few tasks for lost.
        let now = Duration::from_secs(u64::try_from(sysinfo().uptime).unwrap_or_default().saturating_sub(1));
        let since = |name: &str| {
            let running = self.processes.get(name).map(|kept| kept.process.identity.since_boot());
            running.unwrap_or(now).as_secs_f64()
        };
        let names = programs.iter().map(|program| program.name.as_str());
        let workers: BTreeMap<&str, f64> =
            names.clone().filter_map(|name| Some((queue_of(name)?, since(name)))).collect();
        if starting.name != "scheduler" || workers.is_empty() {
            return Ok(());
        }
        let broker = names.into_iter().find(|name| *name == BROKER).map(since);
        let text = serde_json::to_vec(&Since { workers, broker })?;
        let path = self.place.workers();
        blocking_exclusive(&self.place.control(), move || write_whole(&path, &text, 0o644)).await
    }
}
