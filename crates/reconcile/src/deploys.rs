//! How deploys end: their reports are written when their rollout ends, in the transaction that records the end. A
//! release that cannot go live is reverted: its deploy fails, and the deployment wants again what serves. One that is
//! never finalized fails after a day, and its uploads are deleted.

use podium_api::deploy_reports::RolloutReport;
use podium_api::{DeployId, Timestamp};
use podium_app::App;
use podium_db::Change;
use podium_domain::deployments::Running;
use podium_domain::deployments::plan::{Observation, Rollout};
use podium_domain::deploys::{is_running, reports, want_what_serves};
use podium_domain::operations::Seen;
use podium_domain::{Reason, UserText};
use podium_store::deployments::{self, DeploymentRow};
use podium_store::operations::OperationRow;
use podium_store::{changes, deploy_reports, deploys};

use crate::deployments::Deployments;
use crate::operations::Advanced;
use crate::reconciler::{Effect, Failure, Next, StepResult, reconciles};

impl Deployments {
    /// Adds the report of the deploy to the step that ends its rollout.
    pub(crate) async fn with_report(
        &self,
        row: &DeploymentRow,
        observation: &Observation,
        result: StepResult,
        now: Timestamp,
    ) -> StepResult {
        use podium_api::enums::DeploymentStatus::{Creating, Deploying};
        // A release that was stopped before it went live has not been rolled out.
        let has_ended = match observation {
            Observation::Present(observed) => {
                observed.rollout == Rollout::Done
                    && !observed.is_hibernating
                    && is_running(&row.spec, &observed.running)
            }
            Observation::Absent | Observation::Unreachable(_) => false,
        };
        let Some(mut effect) = result.effect else { return result };
        let report = match row.status {
            _ if !has_ended => None,
            Creating | Deploying => self.report(row, now).await,
            // It was stopped on the way, and has ended its rollout since.
            _ => match self.findings(row).await {
                Some(_) => self.report(row, now).await,
                None => None,
            },
        };
        let Some(mut report) = report else { return StepResult { effect: Some(effect), ..result } };
        let effect: Effect = Box::new(move |tx| {
            effect(tx)?;
            report(tx)
        });
        StepResult { effect: Some(effect), ..result }
    }

    /// Writes the report of the deploy that a deployment wants, if there is one.
    pub(crate) async fn report(&self, row: &DeploymentRow, now: Timestamp) -> Option<Effect> {
        let deploy_id = row.spec.release.deploy_id?;
        let report = self.findings(row).await.map_or_else(RolloutReport::default, reports::bounded);
        let (system, of) = (self.system, (row.organization_id, row.id, deploy_id));
        Some(Box::new(move |tx| deploy_reports::insert(tx, &system, of, &report, now)))
    }

    /// What the data plane has found in the rollout of this desired state.
    async fn findings(&self, row: &DeploymentRow) -> Option<RolloutReport> {
        let at = row.location();
        let found = self.planes.of(&at).rollout_report(&at).await.unwrap_or_else(|fault| {
            tracing::warn!(id = %row.id, %fault, "the report of a deploy is incomplete");
            None
        });
        found.filter(|(generation, _)| *generation == row.generation).map(|(_, report)| report)
    }

    /// Reverts to what runs; `None` if that is wanted already.
    pub(crate) async fn revert(
        &self,
        row: &DeploymentRow,
        (running, why): (&Running, &Reason),
        operation: Option<&OperationRow>,
        now: Timestamp,
    ) -> Result<Option<StepResult>, Failure> {
        let (system, id) = (self.system, row.id);
        let deployed =
            self.app.db(&self.system).read(None, move |conn| deploys::deployed(conn, &system, id)).await?;
        let failed = row.spec.release.deploy_id;
        let others = deployed.iter().filter(|deploy| Some(deploy.id) != failed);
        let others = others.map(|deploy| (deploy.id, &deploy.details));
        let Some(spec) = want_what_serves(&row.spec, running, others) else { return Ok(None) };
        tracing::warn!(%id, namespace = row.namespace, deploy = ?failed, %why, "a deploy failed, and is reverted");
        let (generation, organization_id) = (row.generation, row.organization_id);
        let reason = UserText::filled(
            "The deploy did not go live, and what ran before is restored: {}",
            &[why.user_text()],
        );
        let ended = Advanced::of(operation, &Seen::Failed(why.user_text()), now);
        let (why, place) = (why.user_text().to_string(), (id, row.workspace_id));
        let mut report = self.report(row, now).await;
        let change = deployments::change((id, row.workspace_id, organization_id), row.stamp.version);
        let effect: Effect = Box::new(move |tx| {
            if !deployments::revert(tx, &system, id, generation, &spec, &reason)? {
                // Something else is wanted by now.
                return Ok(());
            }
            changes::append_any(tx, &system, now, change.clone())?;
            if let Some(ended) = &ended {
                ended.write(tx, &system)?;
            }
            if let Some(report) = &mut report {
                report(tx)?;
            }
            let Some(deploy) = failed.map(|failed| deploys::lock(tx, &system, failed)).transpose()?.flatten()
            else {
                return Ok(());
            };
            let mut details = deploy.details.clone();
            details.failure = Some(why.clone());
            if deploys::fail_rollout(tx, &system, deploy.id, &details)? {
                deploys::unmark_rolled_back(tx, &system.scope(organization_id), id, deploy.id)?;
                let (deployment_id, version) = (Some(id.to_string()), deploy.stamp.version);
                let change = Change { deployment_id, ..Change::new(deploys::KIND, &deploy.id, version) };
                let scope = system.scope(organization_id);
                changes::append(tx, &scope, now, change)?;
                deploys::append_failed(tx, &scope, deploy.id, place, now)?;
            }
            Ok(())
        });
        let next = Next::At { at: now, reason: "What ran before is restored.".into() };
        Ok(Some(StepResult { next, progressed: true, effect: Some(effect) }))
    }
}

pub(crate) struct Deploys {
    app: App,
}

impl Deploys {
    pub(crate) fn new(app: &App) -> Self {
        Self { app: app.clone() }
    }

    async fn reconcile(&self, id: DeployId) -> Result<StepResult, Failure> {
        let waits = self.app.expire_deploy(id, self.app.world.now()).await;
        let waits = waits.map_err(|error| Failure(error.to_string()))?;
        Ok(match waits {
            Some(at) => StepResult::at(at, "It has not been finalized yet."),
            None => StepResult::settled(),
        })
    }
}

reconciles!(deploys::KIND, DeployId => Deploys);
