//! Controls the simulated plane in tests: injected faults, timing, and the journal of calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use podium_api::deploy_reports::{ReportedImportError, RolloutReport};
use podium_api::{ClusterId, DeploymentId, Id};
use podium_domain::clusters::plan::Progress;
use podium_domain::deployments::plan::Health;
use podium_domain::deployments::rollout::{RolloutProgress, RolloutStep};
use podium_domain::{Reason, UserText};

use crate::{
    ChangeNotifier, Changed, CleanUp, CleanUpState, EnvironmentMetrics, Fault, RunningTasks, WebServer,
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Call {
    Apply,
    Observe,
    Remove,
    EndDrain,
    CleanUp,
    ApplyCluster,
    ObserveCluster,
    RemoveCluster,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InjectedFault {
    /// The call has no effect and returns this fault.
    Fail(Fault),
    /// The call takes effect, but its response is lost.
    LoseResponse,
    /// The call takes effect, but never returns.
    Hang,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub call: Call,
    pub id: Id,
    /// The generation that it was to apply.
    pub generation: Option<i64>,
}

/// The script of a plane; clones share it.
#[derive(Clone)]
pub struct Script {
    inner: Arc<Mutex<Told>>,
    notifier: ChangeNotifier,
}

/// What the plane does and tells.
#[derive(Default)]
pub struct Told {
    pub rollout: Duration,
    pub removal: Duration,
    injected: Vec<Planned>,
    unreachable: Unreachable,
    refused: HashMap<String, Reason>,
    broken: HashMap<String, Reason>,
    /// The import errors of all DAGs, of which deploys report: strict ones are refused.
    pub import_errors: Vec<ReportedImportError>,
    /// The removals that were to wait for running tasks, each once, and for how long.
    pub drained_removals: Vec<(DeploymentId, Option<Duration>)>,
    health: HashMap<(DeploymentId, String), Health>,
    flaps: HashMap<(DeploymentId, String), u32>,
    pub(super) progress: HashMap<DeploymentId, RolloutProgress>,
    clean_up: Option<CleanUpState>,
    /// The clean-ups that were asked for, each once.
    pub cleaned_up: Vec<(DeploymentId, CleanUp)>,
    pub(super) clusters: HashMap<ClusterId, Progress>,
    /// The web servers of environments, which the test runs.
    pub web_servers: HashMap<DeploymentId, WebServer>,
    pub metrics: Vec<EnvironmentMetrics>,
    /// Whether it measures without end.
    pub measures_forever: bool,
    /// The tasks that environments run, or why they do not tell.
    pub running_tasks: HashMap<DeploymentId, Result<RunningTasks, Fault>>,
    /// The users that environments run as.
    pub users: Option<std::ops::Range<u32>>,
    /// Why it makes no new clusters.
    pub no_clusters: Option<UserText>,
    /// Whether it runs no images.
    pub has_no_images: bool,
    journal: Option<Vec<Entry>>,
    /// How many calls never returned.
    pub hung: u32,
}

struct Planned {
    call: Option<Call>,
    id: Option<Id>,
    after: u32,
    fault: InjectedFault,
    times: u32,
}

/// What the plane does not respond to.
#[derive(Default)]
struct Unreachable {
    all: bool,
    ids: Vec<Id>,
}

impl Script {
    pub(super) fn new(notifier: ChangeNotifier) -> Self {
        Self { inner: Arc::default(), notifier }
    }

    /// Sets how far clean-ups are from now on, and notifies subscribers; `None` means that they end at once.
    pub fn clean_ups_are(&self, state: Option<CleanUpState>) {
        self.lock().clean_up = state;
        self.notifier.notify(Changed::Everything);
    }

    pub(super) fn clean_up(&self, id: DeploymentId, clean_up: CleanUp) -> CleanUpState {
        let mut inner = self.lock();
        if !inner.cleaned_up.contains(&(id, clean_up)) {
            inner.cleaned_up.push((id, clean_up));
        }
        inner.clean_up.clone().unwrap_or(CleanUpState::Done(UserText::EMPTY))
    }

    /// Injects a fault into the next calls of a kind.
    pub fn inject(&self, call: Call, fault: InjectedFault, times: u32) {
        self.lock().injected.push(Planned { call: Some(call), id: None, after: 0, fault, times });
    }

    /// Injects a fault into the next calls of a kind for one id.
    pub fn inject_for(&self, id: Id, call: Call, fault: InjectedFault, times: u32) {
        self.lock().injected.push(Planned { call: Some(call), id: Some(id), after: 0, fault, times });
    }

    /// Injects a fault into one call of any kind for one id, after this many others.
    pub fn inject_after(&self, id: Id, after: u32, fault: InjectedFault) {
        self.lock().injected.push(Planned { call: None, id: Some(id), after, fault, times: 1 });
    }

    /// Fails the next calls of a kind.
    pub fn fail(&self, call: Call, why: impl Into<Reason>, times: u32) {
        self.inject(call, InjectedFault::Fail(Fault::Failed(why.into())), times);
    }

    /// Makes the plane unreachable, and notifies subscribers.
    pub fn lose_contact(&self) {
        self.lock().unreachable.all = true;
        self.notifier.notify(Changed::Everything);
    }

    /// Makes one environment unreachable, and notifies subscribers.
    pub fn lose_contact_with(&self, id: DeploymentId) {
        self.lock().unreachable.ids.push(id.id());
        self.notifier.notify(Changed::Environment(id));
    }

    /// Makes everything reachable again, and notifies subscribers.
    pub fn regain_contact(&self) {
        self.lock().unreachable = Unreachable::default();
        self.notifier.notify(Changed::Everything);
    }

    /// Refuses to run a version of DAGs.
    pub fn refuse_dags(&self, version: &str, why: impl Into<Reason>) {
        self.lock().refused.insert(version.to_owned(), why.into());
    }

    /// Lets a version of DAGs have an import error that the live one does not have: a strict deploy of it is refused.
    pub fn break_dags(&self, version: &str, why: impl Into<Reason>) {
        self.lock().broken.insert(version.to_owned(), why.into());
    }

    pub(super) fn rollout_report(&self) -> Option<RolloutReport> {
        let import_errors = self.lock().import_errors.clone();
        let import_error_count = import_errors.len() as u64;
        let report = RolloutReport { import_errors, import_error_count, ..RolloutReport::default() };
        (import_error_count > 0).then_some(report)
    }

    /// Why a version of DAGs is refused, if it is.
    pub(super) fn why_refused(&self, version: Option<&str>, is_strict: bool) -> Option<Reason> {
        let (inner, version) = (self.lock(), version?);
        let has_errors = !inner.import_errors.is_empty();
        let broken = inner.broken.get(version).cloned();
        let broken = broken
            .or_else(|| has_errors.then(|| "the deploy is strict, and files cannot be imported".into()));
        inner.refused.get(version).cloned().or_else(|| broken.filter(|_| is_strict))
    }

    pub(super) fn note_drained_removal(&self, id: DeploymentId, grace: Option<Duration>) {
        let mut inner = self.lock();
        if !inner.drained_removals.contains(&(id, grace)) {
            inner.drained_removals.push((id, grace));
        }
    }

    /// Forgets the progress of an environment if it is a drain; returns whether it was.
    pub(super) fn end_drain(&self, id: DeploymentId) -> bool {
        let mut inner = self.lock();
        let drains = inner.progress.get(&id).is_some_and(|progress| progress.step == RolloutStep::Drain);
        if drains {
            inner.progress.remove(&id);
        }
        drop(inner);
        if drains {
            self.notifier.notify(Changed::Environment(id));
        }
        drains
    }

    /// Sets the health of a component, and notifies subscribers.
    pub fn set_health(&self, id: DeploymentId, component: &str, health: Health) {
        let key = (id, component.to_owned());
        match health {
            Health::Up => drop(self.lock().health.remove(&key)),
            down => drop(self.lock().health.insert(key, down)),
        }
        self.notifier.notify(Changed::Environment(id));
    }

    /// Lets a component alternate between down and up with every observation.
    pub fn flap(&self, id: DeploymentId, component: &str, looks: u32) {
        self.lock().flaps.insert((id, component.to_owned()), looks);
        self.notifier.notify(Changed::Environment(id));
    }

    /// Sets what an environment reports while a rollout is under way, and notifies subscribers; `None` for nothing.
    pub fn set_progress(&self, id: DeploymentId, progress: Option<RolloutProgress>) {
        match progress {
            Some(progress) => drop(self.lock().progress.insert(id, progress)),
            None => drop(self.lock().progress.remove(&id)),
        }
        self.notifier.notify(Changed::Environment(id));
    }

    /// Overrides the progress of a cluster; `None` removes the override.
    pub fn set_cluster(&self, id: ClusterId, progress: Option<Progress>) {
        match progress {
            Some(progress) => drop(self.lock().clusters.insert(id, progress)),
            None => drop(self.lock().clusters.remove(&id)),
        }
        self.notifier.notify(Changed::Cluster(id));
    }

    /// Records all calls from now on.
    pub fn keep_journal(&self) {
        self.lock().journal = Some(Vec::new());
    }

    /// The calls since the journal was last read.
    pub fn journal(&self) -> Vec<Entry> {
        self.lock().journal.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records a call and returns the fault to inject.
    pub(super) fn begin(
        &self,
        call: Call,
        id: Id,
        generation: Option<i64>,
    ) -> Result<Option<InjectedFault>, Fault> {
        let mut inner = self.lock();
        if let Some(journal) = &mut inner.journal {
            journal.push(Entry { call, id, generation });
        }
        if inner.unreachable.all || inner.unreachable.ids.contains(&id) {
            return Err(Fault::Unreachable("the connection was refused".into()));
        }
        let fits = |planned: &Planned| {
            planned.call.is_none_or(|only| only == call) && planned.id.is_none_or(|only| only == id)
        };
        let Some(at) = inner.injected.iter().position(fits) else { return Ok(None) };
        let planned = &mut inner.injected[at];
        if planned.after > 0 {
            planned.after -= 1;
            return Ok(None);
        }
        planned.times = planned.times.saturating_sub(1);
        let fault = planned.fault.clone();
        if planned.times == 0 {
            inner.injected.remove(at);
        }
        inner.hung += u32::from(fault == InjectedFault::Hang);
        Ok(Some(fault))
    }

    pub(super) fn health(&self, id: DeploymentId, component: &str) -> Option<Health> {
        let key = (id, component.to_owned());
        let mut inner = self.lock();
        if let Some(looks) = inner.flaps.get_mut(&key).filter(|looks| **looks > 0) {
            *looks -= 1;
            let is_down = *looks % 2 == 1;
            return Some(if is_down { Health::Down("it restarts".into()) } else { Health::Up });
        }
        inner.health.get(&key).cloned()
    }

    /// What it says, to be read or changed.
    pub fn lock(&self) -> MutexGuard<'_, Told> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
