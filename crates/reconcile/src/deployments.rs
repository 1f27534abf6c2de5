//! Reconciles deployments: applied to the data plane, watched, hibernated and woken, and cleaned up.

use std::sync::Arc;

use podium_api::enums::DeploymentStatus;
use podium_api::{DeploymentId, Id, Timestamp};
use podium_app::App;
use podium_dataplane::{DataPlane, Fault};
use podium_domain::Reason;
use podium_domain::deployments::plan::{
    Cause, Desired, Observation, Step, Verdict, not_applied, nothing_to_revert_to, when_unreachable,
};
use podium_domain::deployments::{hibernation, plan};
use podium_store::deployments::{self, DeploymentRow, ObservedStatus};
use podium_store::{System, changes, nodes};

use crate::environment::environment;
use crate::reconciler::{Backoff, Effect, Failure, Next, Reconciler, StepFuture, StepResult};

/// The reconciler of deployments.
pub(crate) struct Deployments {
    pub(crate) app: App,
    pub(crate) system: System,
    pub(crate) plane: Arc<dyn DataPlane>,
}

impl Deployments {
    pub(crate) fn new(app: &App, system: System, plane: &Arc<dyn DataPlane>) -> Self {
        Self { app: app.clone(), system, plane: Arc::clone(plane) }
    }

    async fn reconcile(&self, id: DeploymentId) -> Result<StepResult, Failure> {
        if let Some(done) = self.place(id).await? {
            return Ok(done);
        }
        let (system, mut is_applied) = (self.system, false);
        loop {
            let row = self.app.db.read(None, move |conn| deployments::state(conn, &system, id)).await?;
            let Some(row) = row else { return self.clean_up(id).await };
            let now = self.app.world.now();
            let rest = hibernation::state(&row.spec.hibernation, row.spec.is_development_mode, now);
            let desired = Desired {
                generation: row.generation,
                is_hibernating: rest.is_hibernating,
                status: row.status,
            };
            let next_event = rest.next.map(|(at, _)| at).filter(|at| *at > now);
            let observation = self.observe(id).await;
            let verdict = match plan(Some(&desired), &observation) {
                Step::Apply(_) if is_applied => {
                    return Ok(StepResult::waiting("The data plane has not picked it up yet.", None));
                }
                Step::Apply(cause) => match self.apply(&row, &desired, cause).await {
                    None => {
                        is_applied = true;
                        continue;
                    }
                    Some(verdict) => verdict,
                },
                Step::RaiseGeneration(generation) => {
                    return Ok(raise_generation(system, id, generation, now));
                }
                Step::Revert(why) => {
                    let Observation::Present(observed) = &observation else {
                        return Err(Failure("the plan reverts what is not there".into()));
                    };
                    match self.revert(&row, &observed.running, &why, now).await? {
                        Some(reverted) => return Ok(reverted),
                        None => nothing_to_revert_to(&desired, &why, observed.running.clone()),
                    }
                }
                Step::Record(verdict) => {
                    let next = match next_event {
                        Some(at) => Next::At { at, reason: "The next hibernation event.".into() },
                        None => Next::Settled,
                    };
                    let verdict = self.with_machine_context(verdict);
                    let result = StepResult { progressed: true, ..record(system, &row, verdict, next, now) };
                    return Ok(self.with_report(&row, &observation, result, now).await);
                }
                Step::Watch(verdict) => verdict,
                Step::Remove | Step::Forget => {
                    return Err(Failure("the plan removes a deployment that exists".into()));
                }
            };
            let next = watch(&verdict, &observation, next_event, now);
            let verdict = self.with_machine_context(verdict);
            let result = record(system, &row, verdict, next, now);
            return Ok(self.with_report(&row, &observation, result, now).await);
        }
    }

    /// Cleans up after a deleted deployment.
    async fn clean_up(&self, id: DeploymentId) -> Result<StepResult, Failure> {
        let mut is_removed = false;
        loop {
            let observation = self.observe(id).await;
            match plan(None, &observation) {
                Step::Forget => break,
                _ if is_removed => {
                    let reason = match &observation {
                        Observation::Unreachable(why) => {
                            return Err(Failure(format!("the data plane: {why}")));
                        }
                        _ => "It is being removed.",
                    };
                    return Ok(StepResult::waiting(
                        reason,
                        look_again_at(&observation, self.app.world.now()),
                    ));
                }
                _ => self.plane.remove(id).await?,
            }
            is_removed = true;
        }
        self.app.remove_files_of_deployment(id).await.map_err(|error| Failure(error.to_string()))?;
        self.app.logs.remove(id).await.map_err(|error| Failure(format!("the log store: {error}")))?;
        let system = self.system;
        let unplace: Effect = Box::new(move |tx| nodes::unplace(tx, &system, id));
        Ok(StepResult { effect: self.app.node().map(|_| unplace), ..StepResult::settled() })
    }

    /// Adds the node's name and a full disk to the reason.
    fn with_machine_context(&self, verdict: Verdict) -> Verdict {
        let verdict = self.with_node_name(verdict);
        match self.app.disk_is_full() {
            Some(why) => Verdict { reason: verdict.reason.after(why.user_text().clone()), ..verdict },
            None => verdict,
        }
    }

    async fn observe(&self, id: DeploymentId) -> Observation {
        match self.plane.observe(id).await {
            Ok(None) => Observation::Absent,
            Ok(Some(observed)) => Observation::Present(observed),
            Err(fault) => Observation::Unreachable(fault.into_reason()),
        }
    }

    /// Applies a deployment; returns what to record if that failed.
    async fn apply(&self, row: &DeploymentRow, desired: &Desired, cause: Cause) -> Option<Verdict> {
        let applied = match environment(&self.app, self.system, row, desired.is_hibernating).await {
            Ok(environment) => self.plane.apply(&environment).await,
            Err(why) => Err(Fault::Failed(why)),
        };
        match applied {
            Ok(()) => None,
            Err(Fault::Unreachable(why)) => Some(when_unreachable(desired, &why)),
            Err(fault) => Some(not_applied(desired, cause, fault.reason())),
        }
    }
}

impl Reconciler for Deployments {
    fn kind(&self) -> &'static str {
        deployments::KIND
    }

    fn step(&self, id: Id) -> StepFuture<'_> {
        Box::pin(self.reconcile(DeploymentId::from_raw(id)))
    }
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

/// Records the observation, if it differs from what is stored.
pub(crate) fn record(
    system: System,
    row: &DeploymentRow,
    verdict: Verdict,
    next: Next,
    now: Timestamp,
) -> StepResult {
    let Verdict { status, reason, running } = verdict;
    let running = running.unwrap_or_else(|| row.observed.clone());
    let progressed = status != row.status || running != row.observed;
    log_change(row, status, &reason);
    let reason = reason.user_text().clone();
    let is_news = progressed || reason != row.status_reason || row.observed_generation != row.generation;
    let (id, generation) = (row.id, row.generation);
    let change = deployments::change((id, row.workspace_id, row.organization_id), row.stamp.version);
    let effect: Effect = Box::new(move |tx| {
        let seen = ObservedStatus { generation, status, reason: &reason, running: &running };
        if deployments::record(tx, &system, id, &seen)? {
            changes::append_any(tx, &system, now, change.clone())?;
        }
        Ok(())
    });
    StepResult { next, progressed, effect: is_news.then_some(effect) }
}

/// Logs a change of a deployment's status.
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

fn raise_generation(system: System, id: DeploymentId, generation: i64, now: Timestamp) -> StepResult {
    let reason = "The data plane has a later generation than the database.".to_owned();
    tracing::warn!(%id, generation, "{reason} It is applied anew.");
    let effect: Effect =
        Box::new(move |tx| deployments::raise_generation(tx, &system, id, generation).map(drop));
    StepResult { next: Next::At { at: now, reason }, progressed: true, effect: Some(effect) }
}
