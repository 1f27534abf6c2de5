//! The options for clusters and deployments.

use podium_api::options::{self as api, ClusterOptions, DeploymentOptions};
use podium_api::{DeploymentId, Many, Named};
use podium_db::Conn;
use podium_domain::Refusal;
use podium_domain::options;
use podium_store::Scope;
use podium_store::deployments::{self, DeploymentRow};

use crate::cx::{Call, Cx};
use crate::error::Result;

/// Reads what can be chosen for clusters; both types choose from the same.
pub async fn cluster(_: Cx<Scope>, call: Call<api::ForClusters>) -> Result<Many<Vec<ClusterOptions>>> {
    Ok(Many(options::cluster_options(call.query.provider)))
}

/// Reads what can be chosen for deployments, or for one of them. Forms let people change their minds about type, executor
/// and provider, so these narrow nothing.
pub async fn deployment(cx: Cx<Scope>, call: Call<api::ForDeployments>) -> Result<Many<DeploymentOptions>> {
    let oldest = match call.query.deployment_id.filter(Named::is_given) {
        Some(id) => {
            let deployment = cx.read(move |cx, conn| find(conn, cx, &id)).await?;
            deployment.spec.runtime_version.parse().ok()
        }
        None => None,
    };
    Ok(Many(options::deployment_options(oldest)))
}

/// A deployment that the caller may see.
fn find(conn: &Conn, cx: &Cx<Scope>, named: &Named<DeploymentId>) -> Result<DeploymentRow> {
    let found = match named.id() {
        Some(id) => deployments::get(conn, cx.scope(), id)?,
        None => None,
    };
    let seen = found.filter(|row| cx.grants().sees_deployment(row.id, row.workspace_id));
    seen.ok_or_else(|| Refusal::not_found("deployment").into())
}
