//! Deploys as callers see them.

use podium_api::Timestamp;
use podium_api::deploys::{Bundle, Deploy};
use podium_domain::deployments::RunningBundle;
use podium_domain::deploys as rules;
use podium_store::Scope;
use podium_store::deployments::DeploymentRow;
use podium_store::deploys::DeployRow;

use crate::cx::Cx;

/// What deploys of one deployment have in common.
pub(super) struct Place<'a> {
    image_repository: String,
    running: &'a [RunningBundle],
    now: Timestamp,
}

impl<'a> Place<'a> {
    pub(super) fn of(cx: &Cx<Scope>, deployment: &'a DeploymentRow) -> Self {
        Self {
            image_repository: rules::image_repository(&cx.app().config.public_url, &deployment.namespace),
            running: &deployment.observed.bundles,
            now: cx.now(),
        }
    }

    /// The deploy, without the URLs that only its maker gets to see.
    pub(super) fn show(&self, row: DeployRow) -> Deploy {
        let DeployRow { details, stamp, .. } = row;
        let outcome = details.outcome;
        let runtime = match &outcome {
            Some(outcome) => outcome.runtime_version.clone(),
            None => details.asked_runtime.unwrap_or(details.runtime_version),
        };
        // The tag of a rollback is not an image.
        let restored = outcome.as_ref().filter(|_| details.rollback_from_id.is_some());
        Deploy {
            id: row.id,
            deployment_id: row.deployment_id,
            kind: row.kind,
            status: rules::status(row.status, stamp.created_at, self.now),
            description: Some(details.description),
            image_repository: self.image_repository.clone(),
            image_tag: restored.map_or(row.image_tag, |outcome| outcome.image_tag.clone()),
            airflow_version: Some(runtime.clone()),
            platform_runtime_version: Some(runtime),
            is_dag_deploy_enabled: outcome
                .as_ref()
                .map_or(details.is_dag_deploy_enabled, |outcome| outcome.is_dag_deploy_enabled),
            dags_upload_url: None,
            dag_tarball_version: outcome.as_ref().and_then(|outcome| outcome.dag_version.clone()),
            bundle_mount_path: details.bundle_mount_path,
            bundle_upload_url: None,
            bundles: Some(outcome.map_or_else(Vec::new, |outcome| self.bundles(outcome.bundles))),
            git: details.git,
            rollback_from_id: details.rollback_from_id,
            rolled_back_by_id: row.rolled_back_by,
            created_at: stamp.created_at,
            created_by_subject: Some(stamp.created_by),
            updated_at: Some(stamp.updated_at),
            updated_by_subject: Some(stamp.updated_by),
        }
    }

    fn bundles(&self, bundles: Vec<podium_domain::deployments::Bundle>) -> Vec<Bundle> {
        let show = |bundle: podium_domain::deployments::Bundle| {
            let runs = self.running.iter().find(|running| running.place() == bundle.place());
            Bundle {
                bundle_type: bundle.bundle_type,
                mount_path: bundle.mount_path,
                deploy_id: bundle.deploy_id,
                desired_version: Some(bundle.version),
                current_version: runs.map(|running| running.version.clone()),
            }
        };
        bundles.into_iter().map(show).collect()
    }
}
