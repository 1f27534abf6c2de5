//! API tokens: what programs call with.

use crate::enums::{TokenEntity, TokenKind, TokenScope};
use crate::path::{InOrganization, OfToken};
use crate::reply::{Many, One};
use crate::subjects::{SubjectProfile, SubjectRoles};
use crate::{DeploymentId, EntityId, Named, Timestamp, TokenId, WorkspaceId};

const GATE: &str = "organization.apiTokens.access";

endpoints! {
    tag "ApiToken";

    /// List API tokens
    List: GET "/organizations/{organizationId}/tokens" as "ListApiTokens" {
        path: InOrganization, query: ListApiTokens, reply: Many<ApiTokensPaginated>,
        permission: GATE,
    }
    /// Create an API token
    Create: POST "/organizations/{organizationId}/tokens" as "CreateApiToken" {
        path: InOrganization, body: CreateApiTokenRequest, reply: One<ApiToken>,
        permission: GATE, event: TokenCreated, also: [409], marks: [secret_reply],
    }
    /// Get an API token
    Get: GET "/organizations/{organizationId}/tokens/{tokenId}" as "GetApiToken" {
        path: OfToken, reply: One<ApiToken>,
        permission: GATE,
    }
    /// Update an API token
    Update: POST "/organizations/{organizationId}/tokens/{tokenId}" as "UpdateApiToken" {
        path: OfToken, body: UpdateApiTokenRequest, reply: One<ApiToken>,
        permission: GATE, event: TokenUpdated, also: [409],
    }
    /// Delete an API token
    Delete: DELETE "/organizations/{organizationId}/tokens/{tokenId}" as "DeleteApiToken" {
        path: OfToken,
        permission: GATE, event: TokenDeleted, also: [412],
    }
    /// Update an API token's roles
    UpdateRoles: POST "/organizations/{organizationId}/tokens/{tokenId}/roles" as "UpdateApiTokenRoles" {
        path: OfToken, body: UpdateApiTokenRolesRequest, reply: One<SubjectRoles>,
        permission: GATE, event: TokenRolesUpdated,
    }
    /// Rotate an API token
    Rotate: POST "/organizations/{organizationId}/tokens/{tokenId}/rotate" as "RotateApiToken" {
        path: OfToken, reply: One<ApiToken>,
        permission: GATE, event: TokenRotated, marks: [secret_reply],
    }
}

wire! {
    /// Which tokens to list.
    sorted["name", "description", "createdAt", "updatedAt", "tokenStartAt"] pub struct ListApiTokens {
        /// Only tokens that hold a role in this workspace.
        pub workspace_id: Option<Named<WorkspaceId>>,
        /// Only tokens that hold a role on this deployment.
        pub deployment_id: Option<Named<DeploymentId>>,
        /// Only tokens that hold a role on this DAG.
        pub dag_id: Option<String>,
        /// Only tokens that hold a role on one of these DAG tags.
        #[serde(default)]
        pub dag_tags: Vec<String>,
        /// Only tokens of scope ORGANIZATION.
        pub include_only_organization_tokens: Option<bool>,
        /// Only tokens of this kind.
        pub kind: Option<TokenKind>,
    }

    /// An API token.
    stamped(Option<SubjectProfile>) pub struct ApiToken {
        /// Its id.
        pub id: TokenId,
        /// Its name, unique in what it belongs to.
        pub name: String,
        /// Its description.
        pub description: String,
        /// Whether it belongs to the organization, a workspace or a deployment.
        pub scope: TokenScope,
        /// How it is meant to be used.
        pub kind: TokenKind,
        /// Its roles.
        pub roles: Option<Vec<ApiTokenRole>>,
        /// Its value; only where it was just made.
        #[schemars(extend("format" = "password"))]
        pub token: Option<String>,
        /// The last six characters of its value.
        pub short_token: String,
        /// From when it works.
        pub start_at: Timestamp,
        /// When it expires.
        pub end_at: Option<Timestamp>,
        /// How many days it works after it was made or rotated.
        pub expiry_period_in_days: Option<u32>,
        /// When it was last rotated.
        pub last_rotated_at: Option<Timestamp>,
        /// When it was last used, to the minute. Uses are recorded within a minute, not by the request itself.
        pub last_used_at: Option<Timestamp>,
    }

    /// A role of a token.
    #[derive(PartialEq, Eq)]
    pub struct ApiTokenRole {
        /// The kind of resource that the role is held on.
        pub entity_type: TokenEntity,
        /// The organization, workspace, deployment, DAG or tag.
        pub entity_id: String,
        /// The deployment of a DAG or tag.
        pub deployment_id: Option<DeploymentId>,
        /// The role's name.
        pub role: String,
    }

    /// A page of tokens.
    page ApiTokensPaginated {
        /// The tokens.
        tokens: Vec<ApiToken>
    }

    /// A new token.
    pub struct CreateApiTokenRequest {
        /// Its name, unique in what it belongs to.
        #[schemars(length(min = 1, max = 256))]
        pub name: String,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// Whether it belongs to the organization, a workspace or a deployment.
        pub scope: TokenScope,
        /// The workspace or deployment that it belongs to.
        pub entity_id: Option<EntityId>,
        /// Its primary role, which fits the scope.
        pub role: String,
        /// How it is meant to be used; the default is STANDARD.
        pub kind: Option<TokenKind>,
        /// How many days it works; absent means forever.
        #[schemars(range(min = 1, max = 3650))]
        pub token_expiry_period_in_days: Option<u32>,
    }

    /// New settings of a token.
    pub struct UpdateApiTokenRequest {
        /// Its name, unique in what it belongs to.
        #[schemars(length(min = 1, max = 256))]
        pub name: String,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
    }

    /// New roles of a token; if the primary role is omitted, it stays unchanged.
    pub struct UpdateApiTokenRolesRequest {
        /// The roles.
        #[schemars(length(min = 1, max = 1000))]
        pub roles: Vec<ApiTokenRole>,
    }
}
