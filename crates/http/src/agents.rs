//! Calls of remote agents. Checks run in the usual order: token (401), rate limit (429), deployment (404), address
//! (403), body, agent and deployment once more, errors in the body (400), the function.

use std::sync::Arc;

use podium_api::endpoint::ByAgents;
use podium_api::{DeploymentId, Endpoint, OrganizationId};
use podium_app::agents::AgentCx;
use podium_app::{Call, Error};
use podium_domain::Refusal;

use crate::admission::Admission;
use crate::bind::{Bound, Handler, Run};

impl Admission for ByAgents {
    type Context = AgentCx;

    fn before<E, F>(bound: Bound, function: F) -> Handler
    where
        E: Endpoint<Admission = Self>,
        F: Run<AgentCx, E>,
    {
        let bound = Arc::new(bound);
        Box::new(move |mut incoming| {
            let (bound, function) = (Arc::clone(&bound), function.clone());
            Box::pin(async move {
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
                let decoded = incoming.decode::<E>(&bound.checks, &bound.env.settings).await;
                // The body may have taken long: the caller is authorized again.
                let agent = app.agent(&token, app.world.now()).await?;
                agent.admit(organization_id, deployment_id, incoming.address)?;
                let (query, body) = decoded.input?;
                let call = Call { path: incoming.path::<E>(), query, body };
                let cx = AgentCx { app, deployment_id, now };
                Ok(function.run(cx, call).await?.into_response(None))
            })
        })
    }
}
