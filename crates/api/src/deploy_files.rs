//! Files of deploys: what the archive with the DAGs contains.

use crate::DeployId;
use crate::path::OfDeploy;
use crate::reply::Many;

/// The most files that are listed.
pub const MOST_FILES: usize = 10_000;

endpoints! {
    tag "Deploy";

    /// List the files of a deploy
    List: GET "/organizations/{organizationId}/deployments/{deploymentId}/deploys/{deployId}/files"
        as "ListDeployFiles" {
        path: OfDeploy, reply: Many<DeployFiles>,
        permission: "deployment.deploys.get", also: [409, 410],
    }
}

wire! {
    /// The files of the DAGs that the deployment has had since a deploy; none if there were no DAGs, or before it is
    /// finalized.
    pub struct DeployFiles {
        /// The deploy.
        pub deploy_id: DeployId,
        /// The regular files in the order of their paths, without directories and symbolic links; at most 10,000.
        pub files: Vec<DeployFile>,
        /// How many files there are.
        pub total_count: u64,
    }

    /// A file of a deploy.
    #[derive(PartialEq, Eq)]
    pub struct DeployFile {
        /// The path in the archive, such as `dags/hello.py`.
        pub path: String,
        /// The size in bytes.
        pub size: u64,
        /// The SHA-256 of the content, in lower-case hexadecimal.
        pub sha256: String,
    }
}
