//! Everything that a data plane needs to run a deployment, with secrets in the clear, so that it has to look nothing
//! up.

use std::time::Duration;

use podium_api::{ClusterId, DeploymentId, OrganizationId, WorkspaceId};
use podium_domain::deployments::{Bundle, Running, RunningBundle, Spec};

use crate::Secret;

#[derive(Clone, Debug, PartialEq)]
pub struct Environment {
    pub id: DeploymentId,
    pub organization_id: OrganizationId,
    pub workspace_id: WorkspaceId,
    /// The cluster that it runs on; none on the server's own infrastructure.
    pub cluster_id: Option<ClusterId>,
    pub name: String,
    /// Its unique name in the plane.
    pub namespace: String,
    /// Advanced by every change of what is wanted.
    pub generation: i64,
    /// Whether it is to be scaled to zero.
    pub is_hibernating: bool,
    /// What is wanted of the deployment, for where it runs now. Its variables are below, as far as they are set.
    pub spec: Spec,
    pub variables: Vec<Setting>,
    /// The settings that it gets from environment objects.
    pub objects: Objects,
}

/// Settings from environment objects: the environment's own and those linked to it, with overrides merged.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects {
    /// Environment variables, except those that the deployment itself sets.
    pub variables: Vec<Setting>,
    /// Connections, each as the JSON that Airflow reads.
    pub connections: Vec<Setting>,
    pub airflow_variables: Vec<Setting>,
    /// Where metrics go, each as a JSON document.
    pub metrics_exports: Vec<Setting>,
}

/// A value under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub key: String,
    pub value: Secret,
    /// Whether logs must mask it.
    pub is_secret: bool,
}

impl Environment {
    /// How long a change waits for running tasks before it restarts the processes that run them, if the deployment sets
    /// it.
    pub fn drain_grace(&self) -> Option<Duration> {
        self.spec.drain_grace_seconds.map(|seconds| Duration::from_secs(seconds.into()))
    }

    /// What runs once the environment is up.
    pub fn running(&self) -> Running {
        let bundle = |bundle: &Bundle| RunningBundle {
            mount_path: bundle.mount_path.clone(),
            version: bundle.version.clone(),
        };
        Running {
            image_tag: Some(self.spec.release.image_tag.clone()),
            runtime_version: Some(self.spec.runtime_version.clone()),
            dag_version: self.spec.release.dag_version.clone(),
            bundles: self.spec.release.bundles.iter().map(bundle).collect(),
        }
    }
}
