//! Cleans up the history of a running environment while it is watched.

use std::sync::Arc;

use tokio::sync::Semaphore;

use super::Supervisor;
use super::prepare::Prepared;
use crate::local::clean_up::{self, LONGEST, MOST_AT_ONCE};
use crate::local::one_shot::OneShot;
use crate::local::orphans::COMPONENT;
use crate::{Changed, CleanUpState, Secret};

/// The name under which a clean-up is found again.
const CLEAN_UP: &str = "clean-up";

/// Lets a few environments of this process clean up at once.
static TURNS: Semaphore = Semaphore::const_new(MOST_AT_ONCE);

impl Supervisor {
    /// Begins the clean-up that was asked for, if there is one.
    pub(super) async fn begin_clean_up(&mut self, prepared: &Prepared) {
        let Some(wanted) = self.clean_ups.begin() else { return };
        if let Some(before) = self.clean_up.take() {
            before.abort();
        }
        let Some(scheduler) = prepared.programs.iter().find(|program| program.name == "scheduler") else {
            return self
                .clean_ups
                .end(wanted.id, CleanUpState::Failed("the environment has no scheduler".into()));
        };
        let mut variables = scheduler.variables.clone();
        variables.insert(COMPONENT.into(), Secret::new(CLEAN_UP.into()));
        let arguments = [
            prepared.runtime.program("python").into(),
            self.plane.support().join("podium_clean_up.py").into(),
            wanted.before.millis().to_string().into(),
            LONGEST.as_secs().to_string().into(),
            self.place.task_logs().into(),
            self.place.parser_logs().into(),
        ];
        let (arguments, isolation) =
            (self.one_shot_arguments(&arguments).await, self.one_shot_isolation().await);
        let (clean_ups, directory) = (Arc::clone(&self.clean_ups), self.place.user_home());
        let (notifier, id) = (self.plane.notifier.clone(), self.id);
        let cleaning = async move {
            let _turn = TURNS.acquire().await;
            let program = OneShot {
                isolation: &isolation,
                arguments: &arguments,
                variables: &variables,
                directory: &directory,
            };
            let state = clean_up::run(program, wanted.before).await;
            clean_ups.end(wanted.id, state);
            notifier.notify(Changed::Environment(id));
        };
        self.clean_up = Some(tokio::spawn(cleaning).abort_handle());
    }

    /// Ends the clean-up that an earlier control plane has left behind, once.
    pub(super) async fn end_earlier_clean_up(&mut self) {
        if !std::mem::replace(&mut self.has_ended_earlier_clean_up, true) {
            self.orphans().kill_component(CLEAN_UP, Vec::new()).await;
        }
    }

    /// Ends the clean-up that is under way.
    pub(super) fn interrupt_clean_up(&mut self) {
        if let Some(clean_up) = self.clean_up.take() {
            clean_up.abort();
            self.clean_ups.interrupt();
        }
    }
}
