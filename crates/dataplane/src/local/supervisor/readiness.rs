//! Asks what tasks need whether it answers, and holds what starts or runs tasks until then.
//!
//! A scheduler that is about to start is told since when there have been workers and a broker: what an earlier scheduler gave
//! to others is lost, and no worker that is there now has it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use podium_airflow::components::queue_of;
use podium_airflow::health::TaskNeeds;
use rustix::system::sysinfo;
use serde::Serialize;

use super::Supervisor;
use crate::blocking::{blocking, blocking_exclusive};
use crate::local::broker::{BROKER, OwnBroker};
use crate::local::components::is_web;
use crate::local::layout::write_whole;
use crate::local::program::Program;

/// Since when there have been workers and a broker, in seconds since the machine was started.
#[derive(Serialize)]
struct Since<'a> {
    /// By queue.
    workers: BTreeMap<&'a str, f64>,
    /// The environment's own broker, which keeps messages in memory only.
    broker: Option<f64>,
}

/// What the tasks of these programs need.
fn needs(programs: &[Program]) -> TaskNeeds {
    let has = |name: &str| programs.iter().any(|program| program.name == name);
    TaskNeeds { task_api: has("apiserver"), broker: has(BROKER) }
}

impl Supervisor {
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
