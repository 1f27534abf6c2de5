//! How programs that answer once are run in an environment, with its isolation and its limits, and the one that cleans up its
//! history while it is watched.

use std::ffi::OsString;
use std::sync::Arc;

use podium_airflow::clean_up::{self, CleanUpAnswer, LONGEST, MOST_BYTES};
use podium_domain::Reason;
use tokio::sync::Semaphore;

use super::Supervisor;
use super::prepare::Prepared;
use crate::blocking::blocking;
use crate::local::components;
use crate::local::isolation::Isolation;
use crate::local::one_shot::{OneShot, OneShotError};
use crate::local::orphans::COMPONENT;
use crate::local::process::with_process_limit;
use crate::{Changed, CleanUpState, Secret};

/// The name under which a clean-up is found again.
const CLEAN_UP: &str = "clean-up";

/// How many clean-ups run at once on this machine: each reads and deletes much.
const MOST_AT_ONCE: usize = 2;

/// Lets a few environments of this process clean up at once.
static TURNS: Semaphore = Semaphore::const_new(MOST_AT_ONCE);

impl Supervisor {
    /// The isolation of such a program: that of the environment, in its control groups.
    pub(super) async fn one_shot_isolation(&self) -> Isolation {
        let (plane, id, isolation) = (Arc::clone(&self.plane), self.id, self.isolation.clone());
        blocking(move || {
            let groups = plane.cgroups.groups(id).into_iter().filter(|group| group.exists());
            isolation.in_groups(groups.collect())
        })
        .await
    }

    /// Its command line; without a control group, a limit of the environment's user bounds its processes.
    pub(super) async fn one_shot_arguments(&self, arguments: &[OsString]) -> Vec<OsString> {
        let (plane, id) = (Arc::clone(&self.plane), self.id);
        let is_counted = blocking(move || plane.cgroups.counts_processes(id)).await;
        match self.plane.options.environment_processes.filter(|_| self.isolation.user().is_some()) {
            Some(most) if !is_counted => with_process_limit(arguments, most),
            _ => arguments.into(),
        }
    }

    /// Begins the clean-up that was asked for, if there is one.
    pub(super) async fn begin_clean_up(&mut self, prepared: &Prepared) {
        let Some(wanted) = self.controls.clean_ups.begin() else { return };
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
        let files = components::files(&self.place, &prepared.runtime, self.plane.support());
        let arguments = clean_up::arguments(&files, wanted.before);
        let (arguments, isolation) =
            (self.one_shot_arguments(&arguments).await, self.one_shot_isolation().await);
        let (controls, directory) = (Arc::clone(&self.controls), self.place.user_home());
        let (notifier, id) = (self.plane.notifier.clone(), self.id);
        let cleaning = async move {
            let _turn = TURNS.acquire().await;
            let program = OneShot {
                isolation: &isolation,
                arguments: &arguments,
                variables: &variables,
                directory: &directory,
            };
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
