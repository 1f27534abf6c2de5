//! Teams: users who hold roles together.

use crate::enums::OrganizationRole;
use crate::path::{InOrganization, OfTeam, OfTeamMember};
use crate::reply::{Many, One};
use crate::subjects::{DagRole, DeploymentRole, SubjectProfile, SubjectRoles, WorkspaceRole};
use crate::{DeploymentId, Named, OrganizationId, TeamId, Timestamp, UserId, WorkspaceId};

endpoints! {
    tag "Team";

    /// List teams
    List: GET "/organizations/{organizationId}/teams" as "ListTeams" {
        path: InOrganization, query: ListTeams, reply: Many<TeamsPaginated>,
        permission: "organization.teams.get",
    }
    /// Create a team
    Create: POST "/organizations/{organizationId}/teams" as "CreateTeam" {
        path: InOrganization, body: CreateTeamRequest, reply: One<Team>,
        permission: "organization.teams.create", event: TeamCreated, also: [409],
    }
    /// Get a team
    Get: GET "/organizations/{organizationId}/teams/{teamId}" as "GetTeam" {
        path: OfTeam, reply: One<Team>,
        permission: "organization.teams.get",
    }
    /// Update a team
    Update: POST "/organizations/{organizationId}/teams/{teamId}" as "UpdateTeam" {
        path: OfTeam, body: UpdateTeamRequest, reply: One<Team>,
        permission: "organization.teams.update", event: TeamUpdated, also: [409],
    }
    /// Delete a team
    Delete: DELETE "/organizations/{organizationId}/teams/{teamId}" as "DeleteTeam" {
        path: OfTeam,
        permission: "organization.teams.delete", event: TeamDeleted, also: [412],
    }
    /// List a team's members
    ListMembers: GET "/organizations/{organizationId}/teams/{teamId}/members" as "ListTeamMembers" {
        path: OfTeam, query: ListTeamMembers, reply: Many<TeamMembersPaginated>,
        permission: "organization.teams.get",
    }
    /// Add members to a team
    AddMembers: POST "/organizations/{organizationId}/teams/{teamId}/members" as "AddTeamMembers" {
        path: OfTeam, body: AddTeamMembersRequest,
        permission: "organization.teams.update", event: TeamMembersAdded,
    }
    /// Remove a member from a team
    RemoveMember: DELETE "/organizations/{organizationId}/teams/{teamId}/members/{memberId}"
        as "RemoveTeamMember" {
        path: OfTeamMember,
        permission: "organization.teams.update", event: TeamMemberRemoved, also: [412],
    }
    /// Update a team's roles
    UpdateRoles: POST "/organizations/{organizationId}/teams/{teamId}/roles" as "UpdateTeamRoles" {
        path: OfTeam, body: UpdateTeamRolesRequest, reply: One<SubjectRoles>,
        permission: "organization.teamRoles.access", event: TeamRolesUpdated,
    }
}

wire! {
    /// Which teams to list.
    sorted["name", "description", "createdAt", "updatedAt"] pub struct ListTeams {
        /// Only teams with one of these names.
        #[serde(default)]
        pub names: Vec<String>,
        /// Only teams that hold a role in this workspace.
        pub workspace_id: Option<Named<WorkspaceId>>,
        /// Only teams that hold a role on this deployment.
        pub deployment_id: Option<Named<DeploymentId>>,
    }

    /// Which members to list.
    clamped sorted["userId", "fullName", "username", "createdAt"] pub struct ListTeamMembers {}

    /// A team.
    stamped(Option<SubjectProfile>) pub struct Team {
        /// Its id.
        pub id: TeamId,
        /// Its name, unique in the organization.
        pub name: String,
        /// Its description.
        pub description: Option<String>,
        /// Its organization.
        pub organization_id: OrganizationId,
        /// Whether an identity provider manages it.
        pub is_idp_managed: bool,
        /// Its role in the organization.
        pub organization_role: OrganizationRole,
        /// Its roles in workspaces.
        pub workspace_roles: Option<Vec<WorkspaceRole>>,
        /// Its roles on deployments.
        pub deployment_roles: Option<Vec<DeploymentRole>>,
        /// Its roles on DAGs.
        pub dag_roles: Option<Vec<DagRole>>,
        /// How many roles it holds in all.
        pub roles_count: Option<u32>,
    }

    /// A page of teams.
    page TeamsPaginated {
        /// The teams.
        teams: Vec<Team>
    }

    /// A member of a team.
    pub struct TeamMember {
        /// The user.
        pub user_id: UserId,
        /// The user's name for signing in.
        pub username: String,
        /// The user's name.
        pub full_name: Option<String>,
        /// The user's picture.
        pub avatar_url: Option<String>,
        /// When the user joined the team.
        pub created_at: Option<Timestamp>,
    }

    /// A page of members.
    page TeamMembersPaginated {
        /// The members.
        team_members: Vec<TeamMember>
    }

    /// A new team.
    pub struct CreateTeamRequest {
        /// Its name, unique in the organization.
        #[schemars(length(min = 1, max = 128))]
        pub name: String,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// Its first members.
        #[schemars(length(max = 1000))]
        pub member_ids: Option<Vec<UserId>>,
        /// Its role in the organization; the default is ORGANIZATION_MEMBER.
        pub organization_role: Option<OrganizationRole>,
    }

    /// New settings of a team.
    pub struct UpdateTeamRequest {
        /// Its name, unique in the organization.
        #[schemars(length(min = 1, max = 128))]
        pub name: String,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
    }

    /// Users to add to a team.
    pub struct AddTeamMembersRequest {
        /// The ids of the users.
        #[schemars(length(min = 1, max = 1000))]
        pub member_ids: Vec<UserId>,
    }

    /// New roles of a team; an absent list keeps the stored one, an empty list clears it.
    pub struct UpdateTeamRolesRequest {
        /// The role in the organization.
        pub organization_role: String,
        /// Roles in workspaces.
        #[schemars(length(max = 1000))]
        pub workspace_roles: Option<Vec<WorkspaceRole>>,
        /// Roles on deployments.
        #[schemars(length(max = 1000))]
        pub deployment_roles: Option<Vec<DeploymentRole>>,
        /// Roles on DAGs.
        #[schemars(length(max = 1000))]
        pub dag_roles: Option<Vec<DagRole>>,
    }
}
