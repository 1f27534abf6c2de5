//! Where clusters and environments are, in terms of data planes.

use podium_api::enums::PlaneKind;
use podium_api::{ClusterId, DeploymentId};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ClusterLocation {
    pub id: ClusterId,
    /// The plane that made or connected it; none did if it is new, or could not be made.
    pub plane: Option<PlaneKind>,
}

/// Where an environment is, as long as anything of it may be left: also after its deployment is gone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Location {
    pub id: DeploymentId,
    /// Its unique name in the plane; empty if it is not known any more.
    pub namespace: String,
    /// The cluster that it runs on; none on the server's own infrastructure.
    pub cluster: Option<ClusterLocation>,
}

impl Location {
    /// The location of an environment of which nothing but its id is known: on the server's own infrastructure.
    pub fn unknown(id: DeploymentId) -> Self {
        Self { id, namespace: String::new(), cluster: None }
    }

    /// The plane of its cluster; `None` on the server's own infrastructure.
    pub fn plane(&self) -> Option<PlaneKind> {
        self.cluster.and_then(|cluster| cluster.plane)
    }
}
