//! Deploys: code on its way to a deployment, and the uploads that carry it.

use crate::enums::{DeployStatus, DeployType, GitProvider};
use crate::path::{OfDeploy, OfDeployment};
use crate::reply::{Many, One};
use crate::subjects::SubjectProfile;
use crate::{DeployId, DeploymentId, Timestamp};

endpoints! {
    tag "Deploy";

    /// List deploys
    List: GET "/organizations/{organizationId}/deployments/{deploymentId}/deploys" as "ListDeploys" {
        path: OfDeployment, query: ListDeploys, reply: Many<DeploysPaginated>,
        permission: "deployment.deploys.get",
    }
    /// Create a deploy
    Create: POST "/organizations/{organizationId}/deployments/{deploymentId}/deploys" as "CreateDeploy" {
        path: OfDeployment, body: CreateDeployRequest, reply: One<Deploy>,
        permission: "deployment.deploys.create", event: DeployCreated, marks: [starts_operation],
    }
    /// Get a deploy
    Get: GET "/organizations/{organizationId}/deployments/{deploymentId}/deploys/{deployId}" as "GetDeploy" {
        path: OfDeploy, reply: One<Deploy>,
        permission: "deployment.deploys.get",
    }
    /// Update a deploy
    Update: POST "/organizations/{organizationId}/deployments/{deploymentId}/deploys/{deployId}"
        as "UpdateDeploy" {
        path: OfDeploy, body: UpdateDeployRequest, reply: One<Deploy>,
        permission: "deployment.deploys.update", event: DeployUpdated,
    }
    /// Finalize a deploy
    Finalize: POST "/organizations/{organizationId}/deployments/{deploymentId}/deploys/{deployId}/finalize"
        as "FinalizeDeploy" {
        path: OfDeploy, body: FinalizeDeployRequest, reply: One<Deploy>,
        permission: "deployment.deploys.update", or_creator_with: "deployment.deploys.create",
        event: DeployFinalized, marks: [starts_operation],
    }
    /// Roll back to a deploy
    Rollback: POST "/organizations/{organizationId}/deployments/{deploymentId}/deploys/{deployId}/rollback"
        as "DeployRollback" {
        path: OfDeploy, body: DeployRollbackRequest, reply: One<Deploy>,
        permission: "deployment.deploys.update", event: DeployRolledBack, marks: [starts_operation],
    }
}

wire! {
    /// Which deploys to list.
    sorted["createdAt"] pub struct ListDeploys {}

    /// A page of deploys.
    page DeploysPaginated {
        /// The deploys.
        deploys: Vec<Deploy>
    }

    /// A deploy.
    pub struct Deploy {
        /// Its id.
        pub id: DeployId,
        /// The deployment that it is for.
        pub deployment_id: DeploymentId,
        /// What it carries.
        #[serde(rename = "type")]
        pub kind: DeployType,
        /// How far it has come.
        pub status: DeployStatus,
        /// Its description.
        pub description: Option<String>,
        /// Where its image is pushed to.
        pub image_repository: String,
        /// The tag of its image, which no other deploy has; of a rollback, the tag that it brings back.
        pub image_tag: String,
        /// The runtime of its image.
        pub platform_runtime_version: Option<String>,
        /// The version of Apache Airflow in it.
        pub airflow_version: Option<String>,
        /// Whether DAGs are deployed separately from images.
        pub is_dag_deploy_enabled: bool,
        /// The URL to upload its DAGs to; only in the response that creates it.
        pub dags_upload_url: Option<String>,
        /// The DAGs that the deployment has had since it was finalized.
        pub dag_tarball_version: Option<String>,
        /// Where its bundle is mounted.
        pub bundle_mount_path: Option<String>,
        /// The URL to upload its bundle to; only in the response that creates it.
        pub bundle_upload_url: Option<String>,
        /// The bundles that the deployment has had since it was finalized.
        pub bundles: Option<Vec<Bundle>>,
        /// Where its code came from.
        pub git: Option<DeployGit>,
        /// The deploy that it brings back.
        pub rollback_from_id: Option<DeployId>,
        /// The rollback that it was current before, if it was rolled back from.
        pub rolled_back_by_id: Option<DeployId>,
        /// When it was created.
        pub created_at: Timestamp,
        /// Who created it.
        pub created_by_subject: Option<SubjectProfile>,
        /// When it was last changed.
        pub updated_at: Option<Timestamp>,
        /// Who last changed it.
        pub updated_by_subject: Option<SubjectProfile>,
    }

    /// A bundle of files that is mounted next to the DAGs.
    #[derive(PartialEq, Eq)]
    pub struct Bundle {
        /// The type of the bundle.
        pub bundle_type: String,
        /// Where the bundle is mounted.
        pub mount_path: String,
        /// The deploy that brought it.
        pub deploy_id: DeployId,
        /// The version that is to run.
        pub desired_version: Option<String>,
        /// The version that runs.
        pub current_version: Option<String>,
    }

    /// A new deploy.
    pub struct CreateDeployRequest {
        /// What it carries.
        #[serde(rename = "type")]
        pub kind: DeployType,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// What the bundle is; of a BUNDLE only.
        #[schemars(length(max = 128))]
        pub bundle_type: Option<String>,
        /// Where the bundle is mounted, as a relative path; of a BUNDLE only.
        #[schemars(length(max = 500))]
        pub bundle_mount_path: Option<String>,
        /// The runtime of the image, where it is another than the deployment's.
        #[schemars(length(max = 64))]
        pub platform_runtime_version: Option<String>,
        /// Where the code came from.
        pub git: Option<CreateDeployGitRequest>,
        /// Whether to wake the deployment if it hibernates, which takes the right to update it. It stays awake until its
        /// schedules hibernate it again.
        pub wake: Option<bool>,
    }

    /// Where the code of a new deploy came from.
    pub struct CreateDeployGitRequest {
        /// Where the code is hosted.
        pub provider: GitProvider,
        /// The commit.
        #[schemars(length(max = 500))]
        pub commit_sha: String,
        /// The account that owns the repository; of HOSTED only.
        #[schemars(length(max = 500))]
        pub account: Option<String>,
        /// The repository; of HOSTED only.
        #[schemars(length(max = 500))]
        pub repo: Option<String>,
        /// The branch.
        #[schemars(length(max = 500))]
        pub branch: Option<String>,
        /// The folder in the repository.
        #[schemars(length(max = 2000))]
        pub path: Option<String>,
        /// The URL of the repository; of GENERIC only.
        #[schemars(length(max = 2000))]
        pub remote_url: Option<String>,
        /// The URL of the commit.
        #[schemars(length(max = 2000))]
        pub commit_url: Option<String>,
        /// The commit before it.
        #[schemars(length(max = 500))]
        pub before_commit_sha: Option<String>,
        /// The author.
        #[schemars(length(max = 500))]
        pub author_name: Option<String>,
        /// The author's account.
        #[schemars(length(max = 500))]
        pub author_username: Option<String>,
        /// The URL of the author.
        #[schemars(length(max = 2000))]
        pub author_url: Option<String>,
    }

    /// What to change of a deploy.
    pub struct UpdateDeployRequest {
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
    }

    /// The archive that was uploaded for a deploy.
    pub struct FinalizeDeployRequest {
        /// The version of the uploaded DAGs; empty in an IMAGE_ONLY deploy keeps the DAGs.
        #[schemars(length(max = 64))]
        pub dag_tarball_version: Option<String>,
        /// The version of the uploaded bundle; empty removes the bundle at the mount path.
        #[schemars(length(max = 64))]
        pub bundle_tarball_version: Option<String>,
        /// Whether the deploy fails if a file of its DAGs cannot be imported, unless the live version has that error, too; it
        /// does in any case where the deployment is set so.
        pub strict: Option<bool>,
    }

    /// A rollback.
    pub struct DeployRollbackRequest {
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
    }

    /// Where the code of a deploy came from.
    #[derive(PartialEq, Eq)]
    pub struct DeployGit {
        /// Where the code is hosted.
        pub provider: GitProvider,
        /// The commit.
        pub commit_sha: String,
        /// The account that owns the repository.
        pub account: Option<String>,
        /// The repository.
        pub repo: Option<String>,
        /// The branch.
        pub branch: Option<String>,
        /// The folder in the repository.
        pub path: Option<String>,
        /// The URL of the repository.
        pub remote_url: Option<String>,
        /// The URL of the commit.
        pub commit_url: Option<String>,
        /// The commit before it.
        pub before_commit_sha: Option<String>,
        /// The author.
        pub author_name: Option<String>,
        /// The author's account.
        pub author_username: Option<String>,
        /// The URL of the author.
        pub author_url: Option<String>,
    }
}
