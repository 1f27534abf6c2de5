//! Reports of deploys.

use podium_api::Many;
use podium_api::deploy_reports::{self as api, DeployReport, RolloutReport};
use podium_domain::deploys as rules;
use podium_store::{Scope, deploy_reports};

use crate::cx::{Call, Cx};
use crate::deploys::find;
use crate::error::Result;

/// Reads the report of a deploy, as far as its rollout has come.
pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<Many<DeployReport>> {
    cx.read(move |cx, conn| {
        let (deployment, deploy) = find(conn, cx.scope(), &call.path)?;
        let stored = deploy_reports::get(conn, cx.scope(), deployment.id, deploy.id)?;
        let status = rules::status(deploy.status, deploy.stamp.created_at, cx.now());
        let is_wanted = deployment.spec.release.deploy_id == Some(deploy.id);
        let state = rules::report_state(status, stored.is_some(), is_wanted);
        let finished_at = stored.as_ref().map(|(_, at)| *at);
        let RolloutReport { files, dags, import_errors, import_error_count, is_parsed, steps } =
            stored.map(|(report, _)| report).unwrap_or_default();
        let reason = deploy.details.failure;
        Ok(Many(DeployReport {
            deploy_id: deploy.id,
            state,
            reason,
            finished_at,
            rolled_back_by_id: deploy.rolled_back_by,
            files,
            dags,
            import_errors,
            import_error_count,
            is_parsed,
            steps,
        }))
    })
    .await
}
