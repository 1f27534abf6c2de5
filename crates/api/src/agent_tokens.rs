//! Agent tokens: what the remote workers of a deployment call with.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::operation::{Nothing, Operation, Permitted};
use crate::page::{Page, SortKeys};
use crate::path::{OfAgentToken, OfDeployment};
use crate::reply::{Many, One};
use crate::tokens::{ApiToken, ApiTokensPaginated};

const TAG: &str = "AgentToken";
const ALL: &str = "/organizations/{organizationId}/deployments/{deploymentId}/agent-tokens";
const ONE: &str = "/organizations/{organizationId}/deployments/{deploymentId}/agent-tokens/{agentTokenId}";

/// Lists the agent tokens of a deployment.
pub const LIST: Operation<Permitted, OfDeployment, ListAgentTokens, Nothing, Many<ApiTokensPaginated>> =
    Operation::get("ListAgentTokens", ALL, "deployment.agentTokens.get").about(TAG, "List agent tokens");
/// Creates an agent token; its value is in the reply, and nowhere else.
pub const CREATE: Operation<Permitted, OfDeployment, Nothing, CreateAgentTokenRequest, One<ApiToken>> =
    Operation::post("CreateAgentToken", ALL, "deployment.agentTokens.create")
        .about(TAG, "Create an agent token")
        .also(&[409])
        .secret_reply();
/// Reads an agent token.
pub const GET: Operation<Permitted, OfAgentToken, Nothing, Nothing, One<ApiToken>> =
    Operation::get("GetAgentToken", ONE, "deployment.agentTokens.get").about(TAG, "Get an agent token");
/// Deletes an agent token: it stops working at once.
pub const DELETE: Operation<Permitted, OfAgentToken, Nothing, Nothing, Nothing> =
    Operation::delete("DeleteAgentToken", ONE, "deployment.agentTokens.delete")
        .about(TAG, "Delete an agent token");

/// How agent tokens can be sorted.
#[derive(Debug)]
pub struct AgentTokenSorts;

impl SortKeys for AgentTokenSorts {
    const KEYS: &'static [&'static str] =
        &["name", "description", "createdAt", "updatedAt", "createdById", "updatedById", "tokenStartAt"];
}

/// Which agent tokens to list.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListAgentTokens {
    /// The page.
    #[serde(flatten)]
    pub page: Page<AgentTokenSorts>,
}

/// A new agent token.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateAgentTokenRequest {
    /// Its name, unique on the deployment.
    #[schemars(length(min = 1, max = 256))]
    pub name: String,
    /// What it is for.
    #[schemars(length(max = 500))]
    pub description: Option<String>,
    /// How long it works; for ever where it is left out.
    #[schemars(range(min = 1, max = 3650))]
    pub token_expiry_period_in_days: Option<u32>,
}
