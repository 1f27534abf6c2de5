//! Calls of remote agents. The order of judgement is that of all calls: token (401), rate (429), deployment (404),
//! address (403), body, agent and deployment once more, what is wrong with the body (400), the function.

use podium_api::endpoint::ByAgents;
use podium_api::{DeploymentId, OrganizationId};
use podium_app::Error;
use podium_app::agents::AgentVisit;
use podium_domain::Refusal;

use crate::admission::Admission;
use crate::bind::{Answer, Bound, Handler, Start};
use crate::incoming::Incoming;

impl Admission for ByAgents {
    type Context = AgentVisit;

    fn before(bound: Bound, start: Start<AgentVisit>) -> Handler {
        Handler::Agents(ForAgents { bound, start })
    }
}

/// Answers remote agents.
pub(crate) struct ForAgents {
    bound: Bound,
    start: Start<AgentVisit>,
}

impl ForAgents {
    pub(crate) async fn handle(&self, mut incoming: Incoming) -> Answer {
        let Self { bound, start } = self;
        let token = incoming.bearer()?.to_owned();
        let (app, now) = (incoming.app.clone(), incoming.now);
        let agent = app.agent(&token, now).await?;
        app.rate_limits.count(agent.token_id.into(), bound.endpoint.method)?;
        let [organization_id, deployment_id, ..] = incoming.ids[..] else {
            return Err(Error::from(Refusal::not_found("deployment")).into());
        };
        let organization_id = OrganizationId::from_raw(organization_id);
        let deployment_id = DeploymentId::from_raw(deployment_id);
        agent.admit(organization_id, deployment_id, incoming.address)?;
        let read = incoming.read(&bound.checks, &bound.env.settings).await;
        // Its body may have taken long: it is judged again by what is true now.
        let agent = app.agent(&token, app.world.now()).await?;
        agent.admit(organization_id, deployment_id, incoming.address)?;
        let visit = AgentVisit { app, deployment_id, now };
        let running = start(Ok(visit), &incoming.ids, read.input?)?;
        Ok(running.await?.into_response(None))
    }
}
