//! Teams: users who hold roles together.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::enums::OrganizationRole;
use crate::page::{Page, SortKeys};
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
        permission: "organization.teams.create", also: [409],
    }
    /// Get a team
    Get: GET "/organizations/{organizationId}/teams/{teamId}" as "GetTeam" {
        path: OfTeam, reply: One<Team>,
        permission: "organization.teams.get",
    }
    /// Update a team
    Update: POST "/organizations/{organizationId}/teams/{teamId}" as "UpdateTeam" {
        path: OfTeam, body: UpdateTeamRequest, reply: One<Team>,
        permission: "organization.teams.update", also: [409],
    }
    /// Delete a team
    Delete: DELETE "/organizations/{organizationId}/teams/{teamId}" as "DeleteTeam" {
        path: OfTeam,
        permission: "organization.teams.delete", also: [412],
    }
    /// List a team's members
    ListMembers: GET "/organizations/{organizationId}/teams/{teamId}/members" as "ListTeamMembers" {
        path: OfTeam, query: ListTeamMembers, reply: Many<TeamMembersPaginated>,
        permission: "organization.teams.get",
    }
    /// Add members to a team
    AddMembers: POST "/organizations/{organizationId}/teams/{teamId}/members" as "AddTeamMembers" {
        path: OfTeam, body: AddTeamMembersRequest,
        permission: "organization.teams.update",
    }
    /// Remove a member from a team
    RemoveMember: DELETE "/organizations/{organizationId}/teams/{teamId}/members/{memberId}"
        as "RemoveTeamMember" {
        path: OfTeamMember,
        permission: "organization.teams.update", also: [412],
    }
    /// Update a team's roles
    UpdateRoles: POST "/organizations/{organizationId}/teams/{teamId}/roles" as "UpdateTeamRoles" {
        path: OfTeam, body: UpdateTeamRolesRequest, reply: One<SubjectRoles>,
        permission: "organization.teamRoles.access",
    }
}

/// How teams can be sorted.
#[derive(Debug)]
pub struct TeamSorts;

impl SortKeys for TeamSorts {
    const KEYS: &'static [&'static str] = &["name", "description", "createdAt", "updatedAt"];
}

/// How members can be sorted.
#[derive(Debug)]
pub struct TeamMemberSorts;

impl SortKeys for TeamMemberSorts {
    const KEYS: &'static [&'static str] = &["userId", "fullName", "username", "createdAt"];
    const LIMIT_IS_BOUNDED: bool = false;
}

/// Which teams to list.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListTeams {
    /// Only those with one of these names.
    #[serde(default)]
    pub names: Vec<String>,
    /// Only those that hold a role in this workspace.
    pub workspace_id: Option<Named<WorkspaceId>>,
    /// Only those that hold a role on this deployment.
    pub deployment_id: Option<Named<DeploymentId>>,
    /// The page.
    #[serde(flatten)]
    pub page: Page<TeamSorts>,
}

/// Which members to list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct ListTeamMembers {
    /// The page.
    #[serde(flatten)]
    pub page: Page<TeamMemberSorts>,
}

/// A team.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Team {
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
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: Option<SubjectProfile>,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Who last changed it.
    pub updated_by: Option<SubjectProfile>,
}

/// A page of teams.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TeamsPaginated {
    /// The teams.
    pub teams: Vec<Team>,
    /// The effective limit.
    pub limit: u32,
    /// How many items were skipped.
    pub offset: u64,
    /// Total number of items.
    pub total_count: u64,
}

/// A member of a team.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TeamMembersPaginated {
    /// The members.
    pub team_members: Vec<TeamMember>,
    /// The effective limit.
    pub limit: u32,
    /// How many items were skipped.
    pub offset: u64,
    /// Total number of items.
    pub total_count: u64,
}

/// A new team.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateTeamRequest {
    /// Its name, unique in the organization.
    #[schemars(length(min = 1, max = 128))]
    pub name: String,
    /// Its description.
    #[schemars(length(max = 500))]
    pub description: Option<String>,
}

/// Users to add to a team.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddTeamMembersRequest {
    /// The ids of the users.
    #[schemars(length(min = 1, max = 1000))]
    pub member_ids: Vec<UserId>,
}

/// New roles of a team; an absent list keeps the stored one, an empty list clears it.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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
