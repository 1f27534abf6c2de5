//! The options for clusters and deployments.

use podium_api::Many;
use podium_api::options::{self as api, ClusterOptions, DeploymentOptions, GetDeploymentOptions};
use podium_db::Conn;
use podium_domain::Refusal;
use podium_domain::options::{self, DeploymentQuestion};
use podium_store::Scope;
use podium_store::deployments::{self, DeploymentRow};

use crate::cx::{Call, Cx};
use crate::error::Result;

/// Reads what can be chosen for clusters; both types choose from the same.
pub async fn cluster(_: Cx<Scope>, call: Call<api::ForClusters>) -> Result<Many<Vec<ClusterOptions>>> {
    Ok(Many(options::cluster_options(call.query.provider)))
}

/// Reads what can be chosen for deployments, or for one of them.
pub async fn deployment(cx: Cx<Scope>, call: Call<api::ForDeployments>) -> Result<Many<DeploymentOptions>> {
    let GetDeploymentOptions { deployment_id, deployment_type, executor, cloud_provider: _ } = call.query;
    let mut question = DeploymentQuestion { deployment_type, executor, oldest: None };
    if let Some(id) = deployment_id.filter(|id| !id.is_empty()) {
        let deployment = cx.read(move |cx, conn| find(conn, cx, &id)).await?;
        question.deployment_type = deployment_type.or(Some(deployment.spec.kind));
        question.oldest = deployment.spec.runtime_version.parse().ok();
    }
    Ok(Many(options::deployment_options(question)))
}

/// A deployment that the caller may see.
fn find(conn: &Conn, cx: &Cx<Scope>, id: &str) -> Result<DeploymentRow> {
    let found = match id.parse() {
        Ok(id) => deployments::get(conn, cx.scope(), id)?,
        Err(_) => None,
    };
    let seen = found.filter(|row| cx.grants().sees_deployment(row.id, row.workspace_id));
    seen.ok_or_else(|| Refusal::not_found("deployment").into())
}
