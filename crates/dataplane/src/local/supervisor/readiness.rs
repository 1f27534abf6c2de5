//! What starts or runs tasks waits until what tasks need answers.
//!
//! A task asks the web server before it begins, and one that gets no answer has lost an attempt; one that cannot be sent
//! to the broker has lost it, too. What already runs keeps running while they are away: its tasks ask again, for longer
//! than it takes to replace either.

use std::sync::Arc;

use podium_airflow::components::runs_tasks;

use super::Supervisor;
use crate::blocking::blocking;
use crate::local::broker::{BROKER, OwnBroker};
use crate::local::components::is_web;
use crate::local::program::Program;

/// What answered when it was last asked, and has not ended since.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answering {
    /// The web server, to requests of tasks.
    pub(super) task_api: bool,
    /// The environment's own broker.
    pub(super) broker: bool,
}

/// Whether tasks ask the web server: those of the 2.x line use the database.
fn has_task_api(programs: &[Program]) -> bool {
    programs.iter().any(|program| program.name == "apiserver")
}

fn has_broker(programs: &[Program]) -> bool {
    programs.iter().any(|program| program.name == BROKER)
}

impl Supervisor {
    /// What a program that is not running has to wait for, if it has to.
    pub(super) fn waits_for(&self, name: &str, programs: &[Program]) -> Option<&'static str> {
        if !runs_tasks(name) {
            None
        } else if has_broker(programs) && !self.answering.broker {
            Some("waiting for the broker to answer")
        } else if has_task_api(programs) && !self.answering.task_api {
            Some("waiting for the web server to answer requests of tasks")
        } else {
            None
        }
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
        if !has_broker(programs) || !self.processes.contains_key(BROKER) {
            return false;
        }
        let (place, user) = (self.place.clone(), self.isolation.user());
        let Ok(socket) = blocking(move || OwnBroker::socket(&place, user)).await else { return false };
        tokio::net::UnixStream::connect(socket).await.is_ok()
    }

    /// Waits until what programs wait for answers; forever if none does.
    pub(super) async fn until_answered(&self, programs: &[Program]) -> Answering {
        if !self.is_any_held(programs) {
            return std::future::pending().await;
        }
        let client = &Arc::clone(&self.plane).web_client;
        let base = self.base_url(&self.state.namespace);
        loop {
            let is_served = self.why_not_serving(3).await.is_none();
            let now = Answering {
                task_api: has_task_api(programs) && is_served && client.warm_up(&base).await.is_ok(),
                broker: self.does_broker_answer(programs).await,
            };
            if now.task_api && !self.answering.task_api || now.broker && !self.answering.broker {
                return now;
            }
            tokio::time::sleep(self.timing().startup_poll).await;
        }
    }
}
