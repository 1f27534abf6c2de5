//! Reports of deploys: written when their rollout ends, in the transaction that records the end.

use podium_api::Timestamp;
use podium_api::deploy_reports::RolloutReport;
use podium_domain::deployments::plan::{Observation, Rollout};
use podium_domain::deploys::{is_running, reports};
use podium_store::deploy_reports;
use podium_store::deployments::DeploymentRow;

use crate::deployments::Deployments;
use crate::reconciler::{Effect, StepResult};

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
}
