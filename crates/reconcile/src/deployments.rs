//! Reconciles deployments: applied to the data plane, watched, hibernated and woken, and cleaned up.

use podium_api::enums::DeploymentStatus;
use podium_api::{DeploymentId, Timestamp};
use podium_app::App;
use podium_dataplane::{Fault, Location, Machine, Planes};
use podium_domain::deployments::plan::{
    Cause, Desired, Observation, Step, Verdict, not_applied, nothing_to_revert_to, when_unreachable,
};
use podium_domain::deployments::rollout::{RolloutProgress, RolloutStep};
use podium_domain::deployments::{hibernation, plan};
use podium_domain::operations::Seen;
use podium_domain::{Reason, UserText};
use podium_store::deployments::{self, DeploymentRow, ObservedStatus};
use podium_store::operations::{self, OperationRow};
use podium_store::{Steward, changes, deploys, nodes};

use crate::clean_up::is_clean_up;
use crate::environment::environment;
use crate::operations::{Advanced, Phase};
use crate::reconciler::{Backoff, Effect, Failure, Next, PrepareStopFuture, StepResult, reconciles};
use crate::removal;

pub(crate) struct Deployments {
    pub(crate) app: App,
    pub(crate) system: Steward,
    pub(crate) planes: Planes,
}

impl Deployments {
    pub(crate) fn new(app: &App, system: Steward, planes: &Planes) -> Self {
        Self { app: app.clone(), system, planes: planes.clone() }
    }

    async fn reconcile(&self, id: DeploymentId) -> Result<StepResult, Failure> {
        let system = self.system;
        let at =
            self.app.db(&system).read(None, move |conn| deployments::location_of(conn, &system, id)).await?;
        let machine = self.planes.of(&at).machine();
        if machine.is_some()
            && let Some(done) = self.place(id).await?
        {
            return Ok(done);
        }
        let mut is_applied = false;
        loop {
            let read = self.app.db(&self.system).read(None, move |conn| {
                // First the operation: one that is newer than the desired state would be taken for done.
                let operation = operations::under_way(conn, &system, id.id())?;
                Ok::<_, podium_db::Error>((deployments::state(conn, &system, id)?, operation))
            });
            let (row, operation) = read.await?;
            let operation = operation.as_ref();
            let Some(row) = row else {
                // It may have been deleted after the operation was read: that of the removal says how to remove it.
                let read = self
                    .app
                    .db(&system)
                    .read(None, move |conn| operations::under_way(conn, &system, id.id()));
                return self.clean_up(&at, read.await?.as_ref()).await;
            };
            let now = self.app.world.now();
            let rest = hibernation::state(&row.spec.hibernation, row.spec.is_development_mode, now);
            let desired = Desired {
                generation: row.generation,
                is_hibernating: rest.is_hibernating,
                status: row.status,
            };
            let next_event = rest.next.map(|(at, _)| at).filter(|at| *at > now);
            let observation = self.observe(&at).await;
            self.end_forced_drain(&at, &observation, operation).await?;
            let (verdict, phase) = match plan(Some(&desired), &observation) {
                Step::Apply(_) if is_applied => {
                    return Ok(StepResult::waiting("The data plane has not picked it up yet.", None));
                }
                Step::Apply(cause) => {
                    if !self.begin_scheduled(&row, cause, operation, now).await? {
                        continue;
                    }
                    match self.apply(&row, &desired, cause).await {
                        None => {
                            is_applied = true;
                            continue;
                        }
                        Some(verdict) => (verdict, Phase::Waiting),
                    }
                }
                Step::RaiseGeneration(generation) => {
                    return Ok(raise_generation(system, id, generation, now));
                }
                Step::Revert(why) => {
                    let Observation::Present(observed) = &observation else {
                        return Err(Failure("the plan reverts what is not there".into()));
                    };
                    match self.revert(&row, (&observed.running, &why), operation, now).await? {
                        Some(reverted) => return Ok(reverted),
                        None => {
                            (nothing_to_revert_to(&desired, &why, observed.running.clone()), Phase::Failed)
                        }
                    }
                }
                Step::Record(verdict) => {
                    let history = self.clean_up_history(&row, &desired, operation, now).await?;
                    let Some(history) = history else { continue };
                    let next = history.next(next_event, now);
                    let verdict = self.with_machine_context(machine, verdict);
                    let recorded = record(system, &row, (verdict, history.phase()), operation, next, now);
                    let result = StepResult { progressed: true, ..recorded };
                    return Ok(self.with_report(&row, &observation, result, now).await);
                }
                Step::Watch(verdict) if operation.is_some_and(is_clean_up) => {
                    let history = self.clean_up_history(&row, &desired, operation, now).await?;
                    let Some(history) = history else { continue };
                    let next = watch(&verdict, &observation, next_event, now);
                    let verdict = self.with_machine_context(machine, verdict);
                    return Ok(record(system, &row, (verdict, history.phase()), operation, next, now));
                }
                Step::Watch(verdict) => (verdict, Phase::of(&observation)),
                Step::Remove | Step::Forget => {
                    return Err(Failure("the plan removes a deployment that exists".into()));
                }
            };
            let next = watch(&verdict, &observation, next_event, now);
            let verdict = self.with_machine_context(machine, verdict);
            let result = record(system, &row, (verdict, phase), operation, next, now);
            return Ok(self.with_report(&row, &observation, result, now).await);
        }
    }

    /// Cleans up after a deleted deployment.
    async fn clean_up(&self, at: &Location, operation: Option<&OperationRow>) -> Result<StepResult, Failure> {
        let (system, id, mut is_removed) = (self.system, at.id, false);
        loop {
            let observation = self.observe(at).await;
            self.end_forced_drain(at, &observation, operation).await?;
            match plan(None, &observation) {
                Step::Forget => break,
                _ if is_removed => {
                    let reason = match &observation {
                        Observation::Unreachable(why) => {
                            return Err(Failure(format!("the data plane: {why}")));
                        }
                        _ => "It is being removed.",
                    };
                    let now = self.app.world.now();
                    let draining = progress_of(&observation).filter(|progress| is_drain(progress));
                    let seen = match draining {
                        Some(progress) => Seen::Underway(Some(progress), &UserText::EMPTY),
                        None => Seen::Removing,
                    };
                    let removing = Advanced::of(operation, &seen, now);
                    let effect = removing.map(|removing| removing.effect(system));
                    let waiting = StepResult::waiting(reason, look_again_at(&observation, now));
                    return Ok(StepResult { effect, ..waiting });
                }
                _ => removal::remove(&self.planes, at, operation).await?,
            }
            is_removed = true;
        }
        self.app.remove_files_of_deployment(id).await.map_err(|error| Failure(error.to_string()))?;
        self.app
            .log_store(&self.system)
            .remove(id)
            .await
            .map_err(|error| Failure(format!("the log store: {error}")))?;
        let done = Advanced::of(operation, &Seen::Done, self.app.world.now());
        let is_placed = self.app.node().is_some();
        let has_effect = done.is_some() || is_placed;
        let effect: Effect = Box::new(move |tx| {
            if let Some(done) = &done {
                done.write(tx, &system)?;
            }
            if is_placed { nodes::unplace(tx, &system, id) } else { Ok(()) }
        });
        Ok(StepResult { effect: has_effect.then_some(effect), ..StepResult::settled() })
    }

    /// Adds the node's name and a full disk to the reason, where environments run on a machine of ours.
    fn with_machine_context(&self, machine: Option<&dyn Machine>, verdict: Verdict) -> Verdict {
        if machine.is_none() {
            return verdict;
        }
        let verdict = self.with_node_name(verdict);
        match self.app.disk_is_full() {
            Some(why) => Verdict { reason: verdict.reason.after(why.user_text().clone()), ..verdict },
            None => verdict,
        }
    }

    async fn observe(&self, at: &Location) -> Observation {
        match self.planes.of(at).observe(at).await {
            Ok(None) => Observation::Absent,
            Ok(Some(observed)) => Observation::Present(observed),
            Err(fault) => Observation::Unreachable(fault.into_reason()),
        }
    }

    /// Ends the wait for running tasks if somebody has asked for that.
    async fn end_forced_drain(
        &self,
        at: &Location,
        observation: &Observation,
        operation: Option<&OperationRow>,
    ) -> Result<(), Failure> {
        let is_forced = operation.is_some_and(|operation| operation.course.details.forced_at.is_some());
        match observation {
            Observation::Present(observed) if is_forced && progress_of(observation).is_some_and(is_drain) => {
                Ok(self.planes.of(at).end_drain(at, observed.generation).await?)
            }
            _ => Ok(()),
        }
    }

    /// Whether an environment waits for running tasks; has the plane end that if somebody has asked for it. `None` if it is
    /// gone or cannot be reached.
    pub(crate) async fn drains(
        &self,
        at: &Location,
        operation: Option<&OperationRow>,
    ) -> Result<Option<bool>, Failure> {
        let observation = self.observe(at).await;
        self.end_forced_drain(at, &observation, operation).await?;
        let is_present = matches!(observation, Observation::Present(_));
        Ok(is_present.then(|| progress_of(&observation).is_some_and(is_drain)))
    }

    /// Applies a deployment; returns what to record if that failed.
    async fn apply(&self, row: &DeploymentRow, desired: &Desired, cause: Cause) -> Option<Verdict> {
        let applied = match environment(&self.app, self.system, row, desired.is_hibernating).await {
            Ok(environment) => self.planes.of(&row.location()).apply(&environment).await,
            Err(why) => Err(Fault::Failed(why)),
        };
        match applied {
            Ok(()) => None,
            Err(Fault::Unreachable(why)) => Some(when_unreachable(desired, &why)),
            Err(fault) => Some(not_applied(desired, cause, fault.reason())),
        }
    }
}

reconciles!(deployments::KIND, DeploymentId => Deployments {
    fn prepare_stop(&self) -> PrepareStopFuture<'_> {
        Box::pin(removal::hand_over(self))
    }
});

fn progress_of(observation: &Observation) -> Option<&RolloutProgress> {
    let Observation::Present(observed) = observation else { return None };
    observed.progress.as_ref()
}

fn is_drain(progress: &RolloutProgress) -> bool {
    progress.step == RolloutStep::Drain
}

/// When to reconcile again while a deployment is not settled.
fn watch(
    verdict: &Verdict,
    observation: &Observation,
    next_event: Option<Timestamp>,
    now: Timestamp,
) -> Next {
    let reason = match verdict.reason.to_string() {
        reason if reason.is_empty() => "The rollout is under way.".to_owned(),
        reason => reason,
    };
    let is_trouble = matches!(observation, Observation::Unreachable(_)) || verdict.running.is_none();
    match look_again_at(observation, now) {
        Some(at) if !is_trouble => Next::At { at: next_event.map_or(at, |event| event.min(at)), reason },
        _ => {
            use DeploymentStatus::{Unhealthy, Unknown};
            let is_broken = is_trouble || matches!(verdict.status, Unhealthy | Unknown);
            let backoff = if is_broken { Backoff::Long } else { Backoff::Short };
            Next::Retry { reason, backoff, no_later_than: next_event }
        }
    }
}

/// When the data plane expects to be done, if that is in the future.
fn look_again_at(observation: &Observation, now: Timestamp) -> Option<Timestamp> {
    let Observation::Present(observed) = observation else { return None };
    observed.look_again_at.filter(|at| *at > now)
}

/// Records the observation, and how the operation has proceeded, where either differs from what is stored.
pub(crate) fn record(
    system: Steward,
    row: &DeploymentRow,
    (verdict, phase): (Verdict, Phase<'_>),
    operation: Option<&OperationRow>,
    next: Next,
    now: Timestamp,
) -> StepResult {
    let Verdict { status, reason, running } = verdict;
    let running = running.unwrap_or_else(|| row.observed.clone());
    let progressed = status != row.status || running != row.observed;
    log_change(row, status, &reason);
    let reason = reason.user_text().clone();
    let seen = match phase {
        Phase::Waiting => Seen::Waiting(&reason),
        Phase::Underway(progress) => Seen::Underway(progress, &reason),
        Phase::Done => Seen::Done,
        Phase::DoneWith(summary) => Seen::DoneWith(summary),
        Phase::Failed => Seen::Failed(&reason),
        Phase::FailedFor(why) => Seen::Failed(why.user_text()),
    };
    let advanced = Advanced::of(operation, &seen, now);
    let is_advanced = advanced.is_some();
    let is_news = progressed || reason != row.status_reason || row.observed_generation != row.generation;
    let (id, generation) = (row.id, row.generation);
    let (workspace_id, scope) = (row.workspace_id, system.scope(row.organization_id));
    let (name, status_before, release) = (row.name.clone(), row.status, row.spec.release.deploy_id);
    let change = deployments::change((id, row.workspace_id, row.organization_id), row.stamp.version);
    let effect: Effect = Box::new(move |tx| {
        let seen = ObservedStatus { generation, status, reason: &reason, running: &running };
        if is_news && deployments::record(tx, &system, id, &seen)? {
            changes::append_any(tx, &system, now, change.clone())?;
            if status != status_before {
                let now_is = (status, &reason);
                deployments::append_status(tx, &scope, now, (id, workspace_id), &name, now_is, None)?;
            }
            if let Some(deploy_id) = release.filter(|_| status == DeploymentStatus::Healthy) {
                deploys::note_running(tx, &scope, deploy_id, (id, workspace_id), now)?;
            }
        }
        advanced.as_ref().map_or(Ok(()), |advanced| advanced.write(tx, &system))
    });
    StepResult { next, progressed, effect: (is_news || is_advanced).then_some(effect) }
}

fn log_change(row: &DeploymentRow, status: DeploymentStatus, reason: &Reason) {
    use DeploymentStatus::{Unhealthy, Unknown};
    if status == row.status {
        return;
    }
    let (id, namespace, was) = (row.id, &row.namespace, row.status.as_str());
    let status = (status.as_str(), matches!(status, Unhealthy | Unknown));
    match status {
        (status, true) => tracing::warn!(%id, namespace, was, status, %reason, "a deployment is not healthy"),
        (status, false) => {
            tracing::info!(%id, namespace, was, status, %reason, "the status of a deployment changed");
        }
    }
}

fn raise_generation(system: Steward, id: DeploymentId, generation: i64, now: Timestamp) -> StepResult {
    let reason = "The data plane has a later generation than the database.".to_owned();
    tracing::warn!(%id, generation, "{reason} It is applied anew.");
    let effect: Effect =
        Box::new(move |tx| deployments::raise_generation(tx, &system, id, generation).map(drop));
    StepResult { next: Next::At { at: now, reason }, progressed: true, effect: Some(effect) }
}
