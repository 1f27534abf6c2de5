//! Agent tokens: what the remote workers of a deployment call with.

use crate::path::{OfAgentToken, OfDeployment};
use crate::reply::{Many, One};
use crate::tokens::{ApiToken, ApiTokensPaginated};

endpoints! {
    tag "AgentToken";

    /// List agent tokens
    List: GET "/organizations/{organizationId}/deployments/{deploymentId}/agent-tokens" as "ListAgentTokens" {
        path: OfDeployment, query: ListAgentTokens, reply: Many<ApiTokensPaginated>,
        permission: "deployment.agentTokens.get",
    }
    /// Create an agent token
    Create: POST "/organizations/{organizationId}/deployments/{deploymentId}/agent-tokens"
        as "CreateAgentToken" {
        path: OfDeployment, body: CreateAgentTokenRequest, reply: One<ApiToken>,
        permission: "deployment.agentTokens.create", event: AgentTokenCreated,
        also: [409], marks: [secret_reply],
    }
    /// Get an agent token
    Get: GET "/organizations/{organizationId}/deployments/{deploymentId}/agent-tokens/{agentTokenId}"
        as "GetAgentToken" {
        path: OfAgentToken, reply: One<ApiToken>,
        permission: "deployment.agentTokens.get",
    }
    /// Delete an agent token
    Delete: DELETE "/organizations/{organizationId}/deployments/{deploymentId}/agent-tokens/{agentTokenId}"
        as "DeleteAgentToken" {
        path: OfAgentToken,
        permission: "deployment.agentTokens.delete", event: AgentTokenDeleted,
    }
}

wire! {
    /// Which agent tokens to list.
    sorted["name", "description", "createdAt", "updatedAt", "createdById", "updatedById", "tokenStartAt"]
    pub struct ListAgentTokens {}

    /// A new agent token.
    pub struct CreateAgentTokenRequest {
        /// Its name, unique on the deployment.
        #[schemars(length(min = 1, max = 256))]
        pub name: String,
        /// Its description.
        #[schemars(length(max = 500))]
        pub description: Option<String>,
        /// How long it works; for ever where it is left out.
        #[schemars(range(min = 1, max = 3650))]
        pub token_expiry_period_in_days: Option<u32>,
    }
}
