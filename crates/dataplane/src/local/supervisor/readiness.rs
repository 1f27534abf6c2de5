//! Asks what tasks need whether it answers, and holds what starts or runs tasks until then.

use std::sync::Arc;

use podium_airflow::readiness::TaskNeeds;

use super::Supervisor;
use crate::blocking::blocking;
use crate::local::broker::{BROKER, OwnBroker};
use crate::local::components::is_web;
use crate::local::program::Program;

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
        let (place, user) = (self.place.clone(), self.isolation.user());
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
}
