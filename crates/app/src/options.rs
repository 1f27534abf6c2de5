//! What can be chosen for clusters and deployments.

use podium_api::options::{ClusterOptions, DeploymentOptions, GetClusterOptions, GetDeploymentOptions};
use podium_api::path::InOrganization;
use podium_api::{Many, Nothing};
use podium_domain::Scope;
use podium_domain::options::{self, DeploymentQuestion};

use crate::cx::{Call, Cx};
use crate::error::Result;

/// Reads what can be chosen for clusters; both types choose from the same.
pub async fn cluster(
    _: Cx<Scope>,
    call: Call<InOrganization, GetClusterOptions, Nothing>,
) -> Result<Many<Vec<ClusterOptions>>> {
    Ok(Many(options::cluster_options(call.query.provider)))
}

/// Reads what can be chosen for deployments.
pub async fn deployment(
    _: Cx<Scope>,
    call: Call<InOrganization, GetDeploymentOptions, Nothing>,
) -> Result<Many<DeploymentOptions>> {
    let question = DeploymentQuestion {
        deployment_type: call.query.deployment_type,
        executor: call.query.executor,
        oldest: None,
    };
    Ok(Many(options::deployment_options(question)))
}
