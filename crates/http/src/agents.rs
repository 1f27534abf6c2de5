//! Calls of remote agents. Checks run in the usual order: token (401), rate limit (429), deployment (404), address
//! (403), body, agent and deployment once more, errors in the body (400), the function.

use podium_api::endpoint::ByAgents;
use podium_api::{DeploymentId, OrganizationId};
use podium_app::Error;
use podium_app::agents::AgentCx;
use podium_domain::Refusal;

use crate::admission::Admission;
use crate::bind::{Bound, Handler, HttpResult, Start};
use crate::incoming::Incoming;

impl Admission for ByAgents {
    type Context = AgentCx;

    fn before(bound: Bound, start: Start<AgentCx>) -> Handler {
        Handler::Agents(AgentHandler { bound, start })
    }
}

/// Handles requests of remote agents.
pub(crate) struct AgentHandler {
    bound: Bound,
    start: Start<AgentCx>,
}

impl AgentHandler {
    pub(crate) async fn handle(&self, mut incoming: Incoming) -> HttpResult {
        let Bound { endpoint, checks, env } = &self.bound;
        let token = incoming.bearer()?.to_owned();
        let (app, now) = (incoming.app.clone(), incoming.now);
        let agent = app.agent(&token, now).await?;
        app.rate_limits.count(agent.token_id.into(), endpoint.method)?;
        let [organization_id, deployment_id, ..] = incoming.ids[..] else {
            return Err(Error::from(Refusal::not_found("deployment")).into());
        };
        let organization_id = OrganizationId::from_raw(organization_id);
        let deployment_id = DeploymentId::from_raw(deployment_id);
        agent.admit(organization_id, deployment_id, incoming.address)?;
        let checked = incoming.check(checks.get(), &env.settings, endpoint.access).await;
        // The body may have taken long: the caller is authorized again.
        let agent = app.agent(&token, app.world.now()).await?;
        let deployment = agent.admit(organization_id, deployment_id, incoming.address)?;
        let cx = AgentCx { app, deployment, now };
        let running = (self.start)(Ok(cx), &incoming.ids, checked.input?)?;
        Ok(running.await?.into_response(None))
    }
}
