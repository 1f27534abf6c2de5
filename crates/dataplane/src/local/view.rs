//! The observable status of an environment, updated by its supervisor.

use std::sync::{Mutex, PoisonError};

use podium_api::DeploymentId;
use podium_domain::deployments::Running;
use podium_domain::deployments::plan::{Component, Health, Observed, Rollout};
use podium_domain::deployments::rollout::RolloutProgress;
use podium_domain::{Reason, UserText};

use super::metrics::Measurements;
use crate::{ChangeNotifier, Changed};

/// The status of an environment; every change notifies subscribers.
pub(super) struct View {
    id: DeploymentId,
    notifier: ChangeNotifier,
    status: Mutex<Status>,
    /// Measurements of its components, which do not notify anyone.
    pub(super) measurements: Measurements,
}

/// The status of an environment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Status {
    /// The generation that was applied; `None` after a restart, so that it is applied again.
    pub(super) generation: Option<i64>,
    pub(super) is_hibernating: bool,
    pub(super) rollout: Rollout,
    pub(super) components: Vec<Component>,
    pub(super) running: Running,
    pub(super) note: Option<UserText>,
    /// What the rollout is doing.
    pub(super) progress: Option<RolloutProgress>,
    /// Where its web server listens, while it does.
    pub(super) web_port: Option<u16>,
}

impl View {
    pub(super) fn new(id: DeploymentId, notifier: ChangeNotifier, status: Status) -> Self {
        Self { id, notifier, status: Mutex::new(status), measurements: Measurements::default() }
    }

    /// Changes the status.
    pub(super) fn change(&self, change: impl FnOnce(&mut Status)) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let before = status.clone();
        change(&mut status);
        let is_changed = *status != before;
        drop(status);
        if is_changed {
            self.notifier.notify(Changed::Environment(self.id));
        }
    }

    /// Reports what a rollout is waiting for.
    pub(super) fn wait_for(&self, what: &str, why: impl Into<Reason>) {
        let down = Component { name: what.to_owned(), health: Health::Down(why.into()) };
        self.change(|status| {
            status.rollout = Rollout::Underway;
            status.components = vec![down];
        });
    }

    pub(super) fn get(&self) -> Status {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn observed(&self) -> Observed {
        let status = self.get();
        Observed {
            generation: status.generation.unwrap_or(-1),
            is_hibernating: status.is_hibernating,
            rollout: status.rollout,
            components: status.components,
            running: status.running,
            note: status.note,
            look_again_at: None,
            progress: status.progress.filter(|_| status.rollout == Rollout::Underway),
        }
    }
}
