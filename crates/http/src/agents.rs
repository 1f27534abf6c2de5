//! Calls of remote agents. The order of judgement is that of all calls: token (401), rate (429), deployment (404),
//! address (403), body, agent and deployment once more, what is wrong with the body (400), the function.

use std::future::Future;
use std::sync::Arc;

use podium_api::operation::{ByAgents, Input};
use podium_api::path::PathParams;
use podium_api::{DeploymentId, Operation, OrganizationId, Reply, Spec};
use podium_app::agents::AgentVisit;
use podium_app::{Call, Error};
use podium_domain::Refusal;

use crate::bind::{Endpoint, Env};
use crate::incoming::Checks;
use crate::respond::Written;

/// Binds an operation that remote agents call.
pub(crate) fn bind_agents<P, Q, B, R, F, Fut>(
    operation: &Operation<ByAgents, P, Q, B, R>,
    spec: &'static Spec,
    checks: Checks,
    env: Arc<Env>,
    function: F,
) -> Endpoint
where
    P: PathParams,
    Q: Input,
    B: Input,
    R: Reply,
    F: Fn(AgentVisit, Call<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<R, Error>> + Send + 'static,
{
    debug_assert_eq!(operation.spec.id, spec.id);
    let checks = Arc::new(checks);
    Box::new(move |mut incoming| {
        let (checks, env, function) = (Arc::clone(&checks), Arc::clone(&env), function.clone());
        Box::pin(async move {
            let token = incoming.bearer()?.to_owned();
            let (app, now) = (incoming.app.clone(), incoming.now);
            let agent = app.agent(&token, now).await?;
            app.rate_limits.count(agent.token_id.into(), spec.method)?;
            let [organization_id, deployment_id, ..] = incoming.ids[..] else {
                return Err(Error::from(Refusal::not_found("deployment")).into());
            };
            let organization_id = OrganizationId::from_raw(organization_id);
            let deployment_id = DeploymentId::from_raw(deployment_id);
            agent.admit(organization_id, deployment_id, incoming.address)?;
            let decoded = incoming.decode(&checks, &env.settings).await;
            // Its body may have taken long: it is judged again by what is true now.
            let agent = app.agent(&token, app.world.now()).await?;
            agent.admit(organization_id, deployment_id, incoming.address)?;
            let (query, body) = decoded.input?;
            let call = Call { path: P::from_ids(&incoming.ids), query, body };
            let reply = function(AgentVisit { app, deployment_id, now }, call).await?;
            Ok(Written::new(&reply)?.into_response(None))
        })
    })
}
