//! What is known of an environment, updated by its supervisor, and the resource metrics of its components, from that
//! and the kernel.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use podium_api::deploy_reports::{ReportedStep, RolloutReport};
use podium_api::{DeploymentId, Timestamp};
use podium_domain::deployments::Running;
use podium_domain::deployments::plan::{Component, Health, Observed, Rollout};
use podium_domain::deployments::rollout::{RolloutProgress, RolloutStep};
use podium_domain::{Reason, UserText};
use tokio::time::Instant;

use super::identity::booted_at;
use super::plane::{Plane, UNREADABLE_COMPONENT};
use super::process::{group_of, pids};
use super::state::State;
use super::supervisor::Handle;
use crate::{ChangeNotifier, Changed, ComponentMetrics, EnvironmentMetrics};

pub(super) struct View {
    id: DeploymentId,
    notifier: ChangeNotifier,
    known: Mutex<Known>,
}

/// What is known of an environment. Only changes of what is observed, and of the web server, notify anyone.
pub(super) struct Known {
    observed: Observed,
    /// Where its web server listens, while it does.
    web_port: Option<u16>,
    /// How long the steps of the rollout took.
    pub(super) steps: StepTimes,
    /// The findings about the last rollout that ended, with its generation.
    pub(super) report: Option<(i64, RolloutReport)>,
    pub(super) heartbeats: BTreeMap<String, Timestamp>,
    /// Its disk usage, as last measured.
    pub(super) disk: Option<u64>,
}

/// How long the steps of a rollout took.
#[derive(Default)]
pub(super) struct StepTimes {
    done: BTreeMap<RolloutStep, Duration>,
    current: Option<(RolloutStep, Instant)>,
}

impl StepTimes {
    fn begin(&mut self, step: RolloutStep) {
        if self.current.is_none_or(|(current, _)| current != step) {
            self.end();
            self.current = Some((step, Instant::now()));
        }
    }

    fn end(&mut self) {
        if let Some((step, since)) = self.current.take() {
            *self.done.entry(step).or_default() += since.elapsed();
        }
    }
}

impl View {
    pub(super) fn new(id: DeploymentId, notifier: ChangeNotifier, observed: Observed) -> Self {
        let (steps, heartbeats) = (StepTimes::default(), BTreeMap::new());
        let known = Known { observed, web_port: None, steps, report: None, heartbeats, disk: None };
        Self { id, notifier, known: Mutex::new(known) }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is observed; subscribers are notified if that is something else then.
    pub(super) fn change(&self, change: impl FnOnce(&mut Observed)) {
        let mut known = self.lock();
        let before = known.observed.clone();
        change(&mut known.observed);
        if known.observed.rollout != Rollout::Underway {
            known.observed.progress = None;
        }
        let is_changed = known.observed != before;
        drop(known);
        if is_changed {
            self.notifier.notify(Changed::Environment(self.id));
        }
    }

    /// Says where its web server listens, or that it does not.
    pub(super) fn show_web_server(&self, port: Option<u16>) {
        if std::mem::replace(&mut self.lock().web_port, port) != port {
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

    pub(super) fn step(&self, step: RolloutStep, done: Option<(u64, u64)>, message: Option<UserText>) {
        self.report_progress(RolloutProgress { step, done, message, waits_for: Vec::new() });
    }

    /// Reports how far a rollout is.
    pub(super) fn report_progress(&self, progress: RolloutProgress) {
        self.lock().steps.begin(progress.step);
        self.change(|status| status.progress = Some(progress));
    }

    /// Whether a rollout waits for running tasks.
    pub(super) fn is_draining(&self) -> bool {
        self.observed().progress.is_some_and(|progress| progress.step == RolloutStep::Drain)
    }

    /// Ends the last step, and returns how long each took.
    pub(super) fn end_steps(&self) -> Vec<ReportedStep> {
        let steps = &mut self.lock().steps;
        steps.end();
        let reported = |(step, time): (&RolloutStep, &Duration)| ReportedStep {
            step: *step,
            milliseconds: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        };
        steps.done.iter().map(reported).collect()
    }

    pub(super) fn observed(&self) -> Observed {
        self.lock().observed.clone()
    }

    pub(super) fn web_port(&self) -> Option<u16> {
        self.lock().web_port
    }
}

/// An environment to which any generation is applied again.
pub(super) fn not_applied(components: Vec<Component>) -> Observed {
    Observed {
        generation: -1,
        is_hibernating: false,
        rollout: Rollout::Underway,
        components,
        running: Running::default(),
        note: None,
        look_again_at: None,
        progress: None,
    }
}

pub(super) fn metrics_of(plane: &Plane) -> Vec<EnvironmentMetrics> {
    let seen: Vec<_> = {
        let supervisors = plane.supervisors();
        let known = |(id, handle): (&DeploymentId, &Handle)| {
            let components = handle.view.observed().components;
            let known = handle.view.lock();
            (*id, components, known.heartbeats.clone(), known.disk)
        };
        supervisors.iter().map(known).collect()
    };
    let (memory, booted) = (memory_of_groups(), booted_at());
    let metrics = seen.into_iter().map(|(id, components, heartbeats, disk)| {
        let state = State::read(&plane.layout.environment(id).state()).ok().flatten().unwrap_or_default();
        let component = |component: podium_domain::deployments::plan::Component| {
            let process = state.processes.get(&component.name).map(|started| &started.identity);
            let process = process.filter(|process| process.is_alive());
            ComponentMetrics {
                restarts: Some(state.restarts.get(&component.name).copied().unwrap_or(0)),
                memory: process.and_then(|process| memory.get(&process.pid).copied()),
                started_at: process.zip(booted).map(|(process, booted)| process.started_at(booted)),
                heartbeat_at: heartbeats.get(&component.name).copied(),
                name: component.name,
                is_up: component.health == Health::Up,
                problem: match component.health {
                    Health::Up => None,
                    Health::Down(why) => Some(why.user_text().clone()),
                },
            }
        };
        EnvironmentMetrics { id, components: components.into_iter().map(component).collect(), disk }
    });
    let unreadable = plane.unreadable_ids().into_iter().map(|id| {
        let down = ComponentMetrics { name: UNREADABLE_COMPONENT.into(), ..ComponentMetrics::default() };
        EnvironmentMetrics { id, components: vec![down], disk: None }
    });
    let mut metrics: Vec<EnvironmentMetrics> = metrics.chain(unreadable).collect();
    metrics.sort_by_key(|metrics| metrics.id);
    metrics
}

/// The resident memory of every process group in bytes. Memory that members share is counted for each of them.
fn memory_of_groups() -> HashMap<i32, u64> {
    let page = rustix::param::page_size() as u64;
    let mut groups = HashMap::new();
    for pid in pids() {
        let Some(group) = group_of(pid) else { continue };
        let statm = fs::read_to_string(format!("/proc/{pid}/statm")).unwrap_or_default();
        let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap_or(0);
        *groups.entry(group).or_default() += pages * page;
    }
    groups
}
