//! Files of declarations: what an organization consists of, with names in the place of ids.
//!
//! Clients read and write such files (`podium apply`, `podium export`); the server never sees one. A field that is absent is
//! left as it is. A text of the form `${env:NAME}` stands for the environment variable `NAME` of whoever applies the file.

mod clusters;
mod deployments;
mod environment_objects;

use schemars::generate::SchemaSettings;

use crate::enums::{CloudProvider, CustomRoleScope, OrganizationRole, TokenKind};

pub use clusters::{Cluster, NodePool, Tag};
pub use deployments::{
    Deployment, EnvironmentVariable, HibernationSchedule, HibernationSpec, RemoteExecution, ScalingSpec,
    Scheduler, WorkerQueue,
};
pub use environment_objects::{
    Connection, ConnectionOverrides, EnvironmentObject, Link, MetricsExport, MetricsExportOverrides,
    Variable, VariableOverrides,
};

wire! {
    /// What an organization consists of. Fields that the file does not name stay as they are.
    #[derive(Default)]
    declared pub struct Declarations {
        /// The schema of the file, for editors.
        #[serde(rename = "$schema")]
        pub schema: Option<String>,
        /// The set that owns what the file declares. `podium apply --prune` deletes what the set owns and the file no longer
        /// declares.
        pub set: Option<String>,
        /// Workspaces.
        #[serde(default)]
        pub workspaces: Vec<Workspace>,
        /// Clusters.
        #[serde(default)]
        pub clusters: Vec<Cluster>,
        /// Custom roles.
        #[serde(default)]
        pub roles: Vec<Role>,
        /// Users; one who does not belong to the organization is invited.
        #[serde(default)]
        pub users: Vec<User>,
        /// Teams.
        #[serde(default)]
        pub teams: Vec<Team>,
        /// Deployments.
        #[serde(default)]
        pub deployments: Vec<Deployment>,
        /// Connections, variables and metrics exports.
        #[serde(default)]
        pub environment_objects: Vec<EnvironmentObject>,
        /// API tokens.
        #[serde(default)]
        pub tokens: Vec<Token>,
    }
}

impl Declarations {
    /// The JSON Schema of a file.
    pub fn json_schema() -> serde_json::Value {
        let generator = SchemaSettings::draft2020_12().into_generator();
        let mut schema = generator.into_root_schema_for::<Self>().to_value();
        schema["title"] = "Podium declarations".into();
        crate::openapi::tidy(&mut schema);
        schema
    }
}

wire! {
    /// A workspace.
    declared pub struct Workspace {
        /// Its name, unique in the organization.
        pub name: String,
        /// Its description.
        pub description: Option<String>,
        /// Whether new deployments accept deploys only from API tokens.
        pub cicd_enforced_default: Option<bool>,
        /// The cluster of new deployments, by name; excludes provider and region.
        pub default_cluster: Option<String>,
        /// The cloud provider of new deployments; goes with `defaultRegion`.
        pub default_cloud_provider: Option<CloudProvider>,
        /// The region of new deployments; goes with `defaultCloudProvider`.
        pub default_region: Option<String>,
    }

    /// A custom role.
    declared pub struct Role {
        /// Its name, unique in the organization.
        pub name: String,
        /// Its description.
        pub description: Option<String>,
        /// What it is held on; never changes.
        pub scope_type: Option<CustomRoleScope>,
        /// The permissions that it gives.
        pub permissions: Option<Vec<String>>,
        /// The workspaces in which it can be assigned, by name; an empty list means all.
        pub restricted_workspaces: Option<Vec<String>>,
    }

    /// A role on something: on a workspace if only that is named, otherwise on a deployment of it, or on a DAG of that.
    declared pub struct Grant {
        /// The workspace, by name.
        pub workspace: String,
        /// The deployment, by name.
        pub deployment: Option<String>,
        /// The DAG, by id; excludes `dagTag`.
        pub dag: Option<String>,
        /// The tag of DAGs.
        pub dag_tag: Option<String>,
        /// The role's name, such as WORKSPACE_AUTHOR.
        pub role: String,
    }

    /// A user of the organization.
    declared pub struct User {
        /// The e-mail address.
        pub email: String,
        /// The role in the organization; the default is ORGANIZATION_MEMBER.
        pub organization_role: Option<OrganizationRole>,
        /// All other roles.
        pub roles: Option<Vec<Grant>>,
    }

    /// A team.
    declared pub struct Team {
        /// Its name, unique in the organization.
        pub name: String,
        /// Its description.
        pub description: Option<String>,
        /// Its role in the organization; the default is ORGANIZATION_MEMBER.
        pub organization_role: Option<OrganizationRole>,
        /// Its members, by e-mail address; all of them.
        pub members: Option<Vec<String>>,
        /// All other roles.
        pub roles: Option<Vec<Grant>>,
    }

    /// An API token. Its value is printed when it is created, and never again.
    declared pub struct Token {
        /// Its name, unique in what it belongs to.
        pub name: String,
        /// The workspace that it belongs to, by name; without one it belongs to the organization.
        pub workspace: Option<String>,
        /// The deployment of the workspace that it belongs to, by name.
        pub deployment: Option<String>,
        /// Its description.
        pub description: Option<String>,
        /// Its role in what it belongs to; a new token needs one.
        pub role: Option<String>,
        /// All other roles.
        pub roles: Option<Vec<Grant>>,
        /// How it is meant to be used; never changes.
        pub kind: Option<TokenKind>,
        /// How many days it works after it was made or rotated; never changes.
        pub expiry_period_in_days: Option<u32>,
    }
}
