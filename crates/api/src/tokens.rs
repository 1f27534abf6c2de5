//! API tokens: what programs call with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::enums::{TokenEntity, TokenKind, TokenScope};
use crate::page::{Page, SortKeys};
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
        permission: GATE, also: [409], marks: [secret_reply],
    }
    /// Get an API token
    Get: GET "/organizations/{organizationId}/tokens/{tokenId}" as "GetApiToken" {
        path: OfToken, reply: One<ApiToken>,
        permission: GATE,
    }
    /// Update an API token
    Update: POST "/organizations/{organizationId}/tokens/{tokenId}" as "UpdateApiToken" {
        path: OfToken, body: UpdateApiTokenRequest, reply: One<ApiToken>,
        permission: GATE, also: [409],
    }
    /// Delete an API token
    Delete: DELETE "/organizations/{organizationId}/tokens/{tokenId}" as "DeleteApiToken" {
        path: OfToken,
        permission: GATE, also: [412],
    }
    /// Update an API token's roles
    UpdateRoles: POST "/organizations/{organizationId}/tokens/{tokenId}/roles" as "UpdateApiTokenRoles" {
        path: OfToken, body: UpdateApiTokenRolesRequest, reply: One<SubjectRoles>,
        permission: GATE,
    }
    /// Rotate an API token
    Rotate: POST "/organizations/{organizationId}/tokens/{tokenId}/rotate" as "RotateApiToken" {
        path: OfToken, reply: One<ApiToken>,
        permission: GATE, marks: [secret_reply],
    }
}

/// How tokens can be sorted.
#[derive(Debug)]
pub struct ApiTokenSorts;

impl SortKeys for ApiTokenSorts {
    const KEYS: &'static [&'static str] = &["name", "description", "createdAt", "updatedAt", "tokenStartAt"];
}

/// Which tokens to list.
#[skip_serializing_none]
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListApiTokens {
    /// Only those that hold a role in this workspace.
    pub workspace_id: Option<Named<WorkspaceId>>,
    /// Only those that hold a role on this deployment.
    pub deployment_id: Option<Named<DeploymentId>>,
    /// Only those that hold a role on this DAG.
    pub dag_id: Option<String>,
    /// Only those that hold a role on one of these DAG tags.
    #[serde(default)]
    pub dag_tags: Vec<String>,
    /// Only those of scope ORGANIZATION.
    pub include_only_organization_tokens: Option<bool>,
    /// Only those of this kind.
    pub kind: Option<TokenKind>,
    /// The page.
    #[serde(flatten)]
    pub page: Page<ApiTokenSorts>,
}

/// An API token.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiToken {
    /// Its id.
    pub id: TokenId,
    /// Its name, unique in what it belongs to.
    pub name: String,
    /// Its description.
    pub description: String,
    /// What it belongs to.
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
    /// When it was created.
    pub created_at: Timestamp,
    /// Who created it.
    pub created_by: Option<SubjectProfile>,
    /// When it was last changed.
    pub updated_at: Timestamp,
    /// Who last changed it.
    pub updated_by: Option<SubjectProfile>,
}

/// A role of a token.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiTokenRole {
    /// What it is held on.
    pub entity_type: TokenEntity,
    /// The organization, workspace, deployment, DAG or tag.
    pub entity_id: String,
    /// The deployment of a DAG or tag.
    pub deployment_id: Option<DeploymentId>,
    /// The role's name.
    pub role: String,
}

/// A page of tokens.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApiTokensPaginated {
    /// The tokens.
    pub tokens: Vec<ApiToken>,
    /// The effective limit.
    pub limit: u32,
    /// How many items were skipped.
    pub offset: u64,
    /// Total number of items.
    pub total_count: u64,
}

/// A new token.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateApiTokenRequest {
    /// Its name, unique in what it belongs to.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Its description.
    #[schemars(length(max = 500))]
    pub description: Option<String>,
    /// What it belongs to.
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
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateApiTokenRequest {
    /// Its name, unique in what it belongs to.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// Its description.
    #[schemars(length(max = 500))]
    pub description: Option<String>,
}

/// New roles of a token; if the primary role is omitted, it stays unchanged.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct UpdateApiTokenRolesRequest {
    /// The roles.
    #[schemars(length(min = 1, max = 1000))]
    pub roles: Vec<ApiTokenRole>,
}
