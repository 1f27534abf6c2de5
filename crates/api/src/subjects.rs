//! Who did it, and what a subject may do: shapes that several resources share.

use crate::enums::{SubjectType, WorkspaceRoleName};
use crate::{DeploymentId, SubjectId, WorkspaceId};

wire! {
    /// A user or an API token, briefly.
    #[derive(PartialEq, Eq)]
    #[schemars(rename = "BasicSubjectProfile")]
    pub struct SubjectProfile {
        /// The id of the user or token.
        pub id: SubjectId,
        /// Whether it is a user or an API token.
        pub subject_type: Option<SubjectType>,
        /// The user's name for signing in, an e-mail address.
        pub username: Option<String>,
        /// The user's name.
        pub full_name: Option<String>,
        /// The user's picture.
        pub avatar_url: Option<String>,
        /// The token's name.
        pub api_token_name: Option<String>,
    }

    /// A role in a workspace.
    #[derive(PartialEq, Eq)]
    pub struct WorkspaceRole {
        /// The role.
        pub role: WorkspaceRoleName,
        /// The workspace.
        pub workspace_id: WorkspaceId,
    }

    /// A role on a deployment: a built-in name or a custom role's.
    #[derive(PartialEq, Eq)]
    pub struct DeploymentRole {
        /// The deployment.
        pub deployment_id: DeploymentId,
        /// The role's name.
        pub role: String,
    }

    /// A role on one DAG of a deployment, or on every DAG with a tag.
    #[derive(PartialEq, Eq)]
    pub struct DagRole {
        /// The DAG; excludes `dagTag`.
        pub dag_id: Option<String>,
        /// The tag; required when there is no `dagId`.
        pub dag_tag: Option<String>,
        /// The deployment that the DAG is part of.
        pub deployment_id: DeploymentId,
        /// The role's name.
        pub role: String,
    }

    /// Every role of a user or team.
    #[derive(PartialEq, Eq)]
    pub struct SubjectRoles {
        /// The role in the organization.
        pub organization_role: Option<String>,
        /// Roles in workspaces.
        pub workspace_roles: Option<Vec<WorkspaceRole>>,
        /// Roles on deployments.
        pub deployment_roles: Option<Vec<DeploymentRole>>,
        /// Roles on DAGs.
        pub dag_roles: Option<Vec<DagRole>>,
    }
}
