//! Reports of deploys: written when their rollout ends, in the transaction that records the end.

use podium_api::Timestamp;
use podium_api::deploy_reports::RolloutReport;
use podium_domain::deployments::plan::{Observation, Observed, Rollout};
use podium_domain::deploys::reports;
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
        let has_ended = matches!(observation, Observation::Present(Observed { rollout: Rollout::Done, .. }));
        let Some(mut effect) = result.effect else { return result };
        let (true, Creating | Deploying) = (has_ended, row.status) else {
            return StepResult { effect: Some(effect), ..result };
        };
        let mut report = self.report(row, now).await;
        let effect: Effect = Box::new(move |tx| {
            effect(tx)?;
            report.as_mut().map_or(Ok(()), |report| report(tx))
        });
        StepResult { effect: Some(effect), ..result }
    }

    /// Writes the report of the deploy that a deployment wants, if there is one.
    pub(crate) async fn report(&self, row: &DeploymentRow, now: Timestamp) -> Option<Effect> {
        let deploy_id = row.spec.release.deploy_id?;
        let found = self.plane.rollout_report(row.id).await.unwrap_or_else(|fault| {
            tracing::warn!(id = %row.id, %fault, "the report of a deploy is incomplete");
            None
        });
        let found = found.filter(|(generation, _)| *generation == row.generation);
        let report = found.map_or_else(RolloutReport::default, |(_, report)| reports::bounded(report));
        let (system, of) = (self.system, (row.organization_id, row.id, deploy_id));
        Some(Box::new(move |tx| deploy_reports::insert(tx, &system, of, &report, now)))
    }
}
