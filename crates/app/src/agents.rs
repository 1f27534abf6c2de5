//! Remote agents: they call with tokens of their own, which give access to the agent endpoints of one deployment.

use std::net::IpAddr;

use podium_api::{AgentTokenId, DeploymentId, OrganizationId, Timestamp};
use podium_domain::Refusal;
use podium_domain::allowed_ip_address_ranges::Allowed;
use podium_store::{InScope, agent_tokens, credentials, deployments};

use crate::error::{Error, Result, Unauthenticated};
use crate::secrets::sha256_hex;
use crate::{App, allowed_addresses};

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

/// An agent that may call the agent endpoints of its deployment.
pub struct AgentCx {
    pub app: App,
    pub deployment: InScope<DeploymentId>,
    pub now: Timestamp,
}

pub struct Agent {
    pub token_id: AgentTokenId,
    organization_id: OrganizationId,
    deployment: InScope<DeploymentId>,
    /// Where its deployment and its organization let it call from.
    allowed: [Allowed; 2],
    has_remote_execution: bool,
}

impl App {
    /// Finds out which agent presents a token.
    pub async fn agent(&self, token: &str, now: Timestamp) -> Result<Agent> {
        self.verify(token, now).await?;
        let hash = sha256_hex(token.as_bytes());
        let system = system(self);
        let found = db(self).read(None, move |conn| {
            let revoked = Error::Unauthenticated(Unauthenticated::Revoked);
            let Some(credential) = credentials::by_hash(conn, &system, &hash)? else { return Err(revoked) };
            let Some(token_id) = credential.agent_token_id() else {
                let message = "This endpoint is for remote agents: call it with an agent token.";
                return Err(Refusal::Forbidden(message.into()).into());
            };
            if credential.expires_at.is_some_and(|end| end <= now) {
                return Err(Error::Unauthenticated(Unauthenticated::Expired));
            }
            let deployment_id = agent_tokens::deployment_of(conn, &system, token_id)?;
            let (Some(organization_id), Some(deployment_id)) = (credential.organization_id, deployment_id)
            else {
                return Err(revoked);
            };
            let scope = system.scope(organization_id);
            let Some((proof, deployment)) = deployments::proven(conn, &scope, deployment_id)? else {
                return Err(revoked);
            };
            let remote = deployment.spec.remote_execution;
            let own = remote.as_ref().map(|remote| remote.allowed_ip_address_ranges.clone());
            let organizations = allowed_addresses::of(conn, &scope)?;
            Ok(Agent {
                token_id,
                organization_id,
                deployment: proof,
                allowed: [organizations, Allowed::read(own.unwrap_or_default())],
                has_remote_execution: remote.is_some(),
            })
        });
        found.await
    }
}

impl Agent {
    /// Admits the agent to its own deployment, from where it may call; other deployments are unknown to it.
    pub fn admit(
        &self,
        organization_id: OrganizationId,
        deployment_id: DeploymentId,
        address: IpAddr,
    ) -> Result<InScope<DeploymentId>> {
        if (organization_id, deployment_id) != (self.organization_id, *self.deployment.get()) {
            return Err(Refusal::not_found("deployment").into());
        }
        if !self.allowed.iter().all(|list| list.admits(address)) {
            let message = format!(
                "Agents may not call from {address}: allow its range on the deployment's `remoteExecution`, \
                 and in the organization where that has any."
            );
            return Err(Refusal::Forbidden(message).into());
        }
        if !self.has_remote_execution {
            let message = "Remote execution is off for this deployment: enable `remoteExecution` first.";
            return Err(Refusal::Forbidden(message.into()).into());
        }
        Ok(self.deployment)
    }
}
