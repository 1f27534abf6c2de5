//! Users: people, and what they are in an organization.

use crate::enums::{OrganizationRole, UserStatus};
use crate::path::{InOrganization, OfUser};
use crate::reply::{Many, One};
use crate::subjects::{DagRole, DeploymentRole, SubjectRoles, WorkspaceRole};
use crate::{DeploymentId, InviteId, Named, OrganizationId, Patch, TeamId, Timestamp, UserId, WorkspaceId};

endpoints! {
    tag "User";

    /// List users
    List: GET "/organizations/{organizationId}/users" as "ListUsers" {
        path: InOrganization, query: ListUsers, reply: Many<UsersPaginated>,
        permission: "organization.users.get",
    }
    /// Get a user
    Get: GET "/organizations/{organizationId}/users/{userId}" as "GetUser" {
        path: OfUser, reply: One<User>,
        permission: "organization.users.get",
    }
    /// Update a user's roles
    UpdateRoles: POST "/organizations/{organizationId}/users/{userId}/roles" as "UpdateUserRoles" {
        path: OfUser, body: UpdateUserRolesRequest, reply: One<SubjectRoles>,
        permission: "organization.userRoles.access", event: UserRolesUpdated,
    }
    /// List a user's teams
    ListTeams: GET "/organizations/{organizationId}/users/{userId}/teams" as "ListUserTeams" {
        path: OfUser, query: ListUserTeams, reply: Many<UserTeamsPaginated>,
        permission: "organization.teams.get",
    }
    /// Get yourself
    GetSelf: GET "/users/self" as "GetSelfUser" {
        query: GetSelfUser, reply: One<SelfUser>,
        open_to: SignedIn, also: [403, 404],
    }
}

wire! {
    /// Which users to list.
    sorted["id", "username", "fullName", "createdAt", "updatedAt"] pub struct ListUsers {
        /// Only users that hold a role in this workspace.
        pub workspace_id: Option<Named<WorkspaceId>>,
        /// Only users that hold a role on this deployment.
        pub deployment_id: Option<Named<DeploymentId>>,
        /// Only users that hold a role on this DAG.
        pub dag_id: Option<String>,
        /// Only users that hold a role on one of these DAG tags.
        #[serde(default)]
        pub dag_tags: Vec<String>,
    }

    /// Which teams of a user to list.
    sorted["name", "description", "createdAt", "updatedAt"] pub struct ListUserTeams {}

    /// How to read the caller.
    pub struct GetSelfUser {
        /// Make the account of an identity that an external provider has verified.
        pub create_if_not_exist: Option<bool>,
    }

    /// A user of an organization.
    pub struct User {
        /// The user's id.
        pub id: UserId,
        /// The name for signing in, an e-mail address.
        pub username: String,
        /// The user's name.
        pub full_name: String,
        /// The user's picture.
        pub avatar_url: String,
        /// The state in this organization.
        pub status: UserStatus,
        /// The role in the organization.
        pub organization_role: Option<OrganizationRole>,
        /// Roles in workspaces.
        pub workspace_roles: Option<Vec<WorkspaceRole>>,
        /// Roles on deployments.
        pub deployment_roles: Option<Vec<DeploymentRole>>,
        /// Roles on DAGs.
        pub dag_roles: Option<Vec<DagRole>>,
        /// When the user came to this organization.
        pub created_at: Timestamp,
        /// When the user was last changed.
        pub updated_at: Timestamp,
    }

    /// A page of users.
    page UsersPaginated {
        /// The users.
        users: Vec<User>
    }

    /// New roles of a user; an absent or `null` list keeps the stored one, an empty list clears it.
    #[derive(Default)]
    #[serde(default)]
    pub struct UpdateUserRolesRequest {
        /// The role in the organization. If it is `null` and the only field of the body, the user leaves the organization.
        #[serde(skip_serializing_if = "Patch::is_keep")]
        pub organization_role: Patch<String>,
        /// Roles in workspaces.
        #[serde(skip_serializing_if = "Patch::is_keep")]
        pub workspace_roles: Patch<Vec<WorkspaceRole>>,
        /// Roles on deployments.
        #[serde(skip_serializing_if = "Patch::is_keep")]
        pub deployment_roles: Patch<Vec<DeploymentRole>>,
        /// Roles on DAGs.
        #[serde(skip_serializing_if = "Patch::is_keep")]
        pub dag_roles: Patch<Vec<DagRole>>,
    }

    /// A team that a user is a member of.
    pub struct UserTeamMembership {
        /// The team's id.
        pub id: TeamId,
        /// The team's name.
        pub name: String,
        /// What the team is for.
        pub description: Option<String>,
        /// Whether an identity provider manages it.
        pub is_idp_managed: bool,
        /// The team's role in the organization.
        pub organization_role: OrganizationRole,
        /// The team's roles in workspaces.
        pub workspace_roles: Option<Vec<WorkspaceRole>>,
        /// The team's roles on deployments.
        pub deployment_roles: Option<Vec<DeploymentRole>>,
        /// The team's roles on DAGs.
        pub dag_roles: Option<Vec<DagRole>>,
        /// How many roles the team holds in all.
        pub roles_count: Option<u32>,
    }

    /// A page of a user's teams.
    page UserTeamsPaginated {
        /// The teams.
        teams: Vec<UserTeamMembership>
    }

    /// The caller.
    pub struct SelfUser {
        /// The user's id.
        pub id: UserId,
        /// The name for signing in, an e-mail address.
        pub username: String,
        /// The user's name.
        pub full_name: String,
        /// The user's picture.
        pub avatar_url: String,
        /// The best of the user's states in organizations.
        pub status: UserStatus,
        /// The organization that the user belongs to; the oldest of several.
        pub organization_id: Option<OrganizationId>,
        /// Every role, with what it is held on.
        pub roles: Option<Vec<SelfUserRole>>,
        /// Invites that wait to be accepted.
        pub invites: Option<Vec<SelfUserInvite>>,
        /// Switches for features.
        pub feature_flags: Option<Vec<SelfUserFeatureFlag>>,
        /// Whether an identity provider manages the user.
        pub is_idp_managed: Option<bool>,
        /// When the user was created.
        pub created_at: Timestamp,
        /// When the user was last changed.
        pub updated_at: Timestamp,
    }

    /// A role of the caller.
    pub struct SelfUserRole {
        /// The role's name.
        pub role: String,
        /// The resource that the role is held on.
        pub scope: SelfUserRoleScope,
    }

    /// What a role of the caller is held on.
    pub struct SelfUserRoleScope {
        /// `ORGANIZATION`, `WORKSPACE`, `DEPLOYMENT` or `DAG`.
        #[serde(rename = "type")]
        pub kind: String,
        /// The organization, workspace, deployment or DAG.
        pub entity_id: String,
        /// The deployment of a DAG role.
        pub deployment_id: Option<DeploymentId>,
        /// The tag of a DAG role.
        pub dag_tag: Option<String>,
    }

    /// An invite of the caller.
    pub struct SelfUserInvite {
        /// The invite.
        pub invite_id: InviteId,
        /// The organization.
        pub organization_id: OrganizationId,
        /// When it expires.
        pub expires_at: Timestamp,
    }

    /// A switch for a feature.
    pub struct SelfUserFeatureFlag {
        /// Its name.
        pub key: String,
        /// Whether it is on.
        pub value: bool,
    }
}
