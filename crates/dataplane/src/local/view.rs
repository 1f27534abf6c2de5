//! The observable status of an environment, updated by its supervisor.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use podium_api::DeploymentId;
use podium_api::deploy_reports::{ReportedStep, RolloutReport};
use podium_domain::deployments::Running;
use podium_domain::deployments::plan::{Component, Health, Observed, Rollout};
use podium_domain::deployments::rollout::{RolloutProgress, RolloutStep};
use podium_domain::{Reason, UserText};
use tokio::time::Instant;

use super::metrics::Measurements;
use crate::{ChangeNotifier, Changed};

/// The status of an environment; every change notifies subscribers.
pub(super) struct View {
    id: DeploymentId,
    notifier: ChangeNotifier,
    status: Mutex<Status>,
    steps: Mutex<StepTimes>,
    /// The findings about the last rollout that ended, with its generation.
    report: Mutex<Option<(i64, RolloutReport)>>,
    /// Measurements of its components, which do not notify anyone.
    pub(super) measurements: Measurements,
}

/// How long the steps of a rollout took.
#[derive(Default)]
struct StepTimes {
    done: BTreeMap<RolloutStep, Duration>,
    current: Option<(RolloutStep, Instant)>,
}

impl StepTimes {
    fn end(&mut self) {
        if let Some((step, since)) = self.current.take() {
            *self.done.entry(step).or_default() += since.elapsed();
        }
    }
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
    /// Where its web server listens, while it does.
    pub(super) web_port: Option<u16>,
    /// What the rollout is doing, while it is under way.
    pub(super) progress: Option<RolloutProgress>,
}

impl View {
    pub(super) fn new(id: DeploymentId, notifier: ChangeNotifier, status: Status) -> Self {
        Self {
            id,
            notifier,
            status: Mutex::new(status),
            steps: Mutex::default(),
            report: Mutex::default(),
            measurements: Measurements::default(),
        }
    }

    /// Changes the status.
    pub(super) fn change(&self, change: impl FnOnce(&mut Status)) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let before = status.clone();
        change(&mut status);
        if status.rollout != Rollout::Underway {
            status.progress = None;
        }
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

    /// Reports that a rollout no longer waits for this: what comes next would be said to wait for it, too.
    pub(super) fn waited_for(&self, what: &str) {
        self.change(|status| {
            let is_over = |component: &Component| component.name == what && component.health != Health::Up;
            status.components.retain(|component| !is_over(component));
        });
    }

    /// Reports the step that a rollout is in.
    pub(super) fn step(&self, step: RolloutStep, done: Option<(u64, u64)>, message: Option<UserText>) {
        self.report_progress(RolloutProgress { step, done, message, waits_for: Vec::new() });
    }

    /// Reports how far a rollout is.
    pub(super) fn report_progress(&self, progress: RolloutProgress) {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        if steps.current.is_none_or(|(current, _)| current != progress.step) {
            steps.end();
            steps.current = Some((progress.step, Instant::now()));
        }
        drop(steps);
        self.change(|status| status.progress = Some(progress));
    }

    /// Whether a rollout waits for running tasks.
    pub(super) fn is_draining(&self) -> bool {
        self.get().progress.is_some_and(|progress| progress.step == RolloutStep::Drain)
    }

    /// Forgets the steps of an earlier rollout.
    pub(super) fn begin_steps(&self) {
        *self.steps.lock().unwrap_or_else(PoisonError::into_inner) = StepTimes::default();
    }

    /// Ends the last step, and returns how long each took.
    pub(super) fn end_steps(&self) -> Vec<ReportedStep> {
        let mut steps = self.steps.lock().unwrap_or_else(PoisonError::into_inner);
        steps.end();
        let reported = |(step, time): (&RolloutStep, &Duration)| ReportedStep {
            step: *step,
            milliseconds: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        };
        steps.done.iter().map(reported).collect()
    }

    /// Publishes the findings about a rollout that has ended.
    pub(super) fn publish_report(&self, generation: i64, report: RolloutReport) {
        *self.report.lock().unwrap_or_else(PoisonError::into_inner) = Some((generation, report));
    }

    pub(super) fn report(&self) -> Option<(i64, RolloutReport)> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
            progress: status.progress,
        }
    }
}
