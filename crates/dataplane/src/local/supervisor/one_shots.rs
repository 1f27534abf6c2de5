//! How programs that answer once are run in an environment, with its isolation and its limits, and the one that cleans
//! up its history while it is watched.

use std::ffi::OsString;
use std::sync::Arc;

use podium_airflow::clean_up::{self, CleanUpAnswer, LONGEST, MOST_BYTES};
use podium_airflow::settings::Variables;
use podium_domain::Reason;
use tokio::sync::Semaphore;

use super::Supervisor;
use super::prepare::Prepared;
use crate::blocking::blocking;
use crate::local::command::{OneShot, OneShotError};
use crate::local::components;
use crate::local::orphans::COMPONENT;
use crate::{Changed, CleanUpState, Secret};

/// The name under which a clean-up is found again.
const CLEAN_UP: &str = "clean-up";

/// How many clean-ups run at once on this machine: each reads and deletes much.
const MOST_AT_ONCE: usize = 2;

/// Lets a few environments of this process clean up at once.
static TURNS: Semaphore = Semaphore::const_new(MOST_AT_ONCE);

impl Supervisor {
    /// Such a program, which is found again by its name.
    pub(super) async fn one_shot(
        &self,
        name: &str,
        arguments: Vec<OsString>,
        mut variables: Variables,
    ) -> OneShot {
        variables.insert(COMPONENT.into(), Secret::new(name.into()));
        let (plane, id, isolation) = (Arc::clone(&self.plane), self.id, self.isolation.clone());
        let (isolation, arguments) = blocking(move || plane.bounded(id, isolation, arguments)).await;
        OneShot { isolation, arguments, variables, directory: self.place.user_home() }
    }

    /// Begins the clean-up that was asked for, if there is one.
    pub(super) async fn begin_clean_up(&mut self, prepared: &Prepared) {
        let Some(wanted) = self.controls.clean_ups.begin() else { return };
        if let Some(before) = self.clean_up.take() {
            before.abort();
        }
        let Some(scheduler) = prepared.programs.iter().find(|program| program.name == "scheduler") else {
            let failed = CleanUpState::Failed("the environment has no scheduler".into());
            return self.controls.clean_ups.end(wanted.id, failed);
        };
        let files = components::files(&self.place, &prepared.runtime, &self.plane.support);
        let arguments = clean_up::arguments(&files, wanted.before);
        let program = self.one_shot(CLEAN_UP, arguments, scheduler.variables.clone()).await;
        let (controls, notifier, id) = (Arc::clone(&self.controls), self.plane.notifier.clone(), self.id);
        let cleaning = async move {
            let _turn = TURNS.acquire().await;
            let state = match program.answer::<CleanUpAnswer>(LONGEST, MOST_BYTES).await {
                Ok(answer) => answer.ended(wanted.before),
                Err(error) => CleanUpState::Failed(failure(error)),
            };
            controls.clean_ups.end(wanted.id, state);
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
            self.controls.clean_ups.interrupt();
        }
    }
}

/// Why a clean-up has not said what came of it.
fn failure(error: OneShotError) -> Reason {
    match error {
        OneShotError::TooLong(_) => {
            Reason::new("cleaning up the history took too long, and was ended", error)
        }
        _ => Reason::new("the history could not be cleaned up", error),
    }
}
