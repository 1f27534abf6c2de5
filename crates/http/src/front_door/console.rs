//! A browser at the console: its session, and the pages that need one.

use std::net::SocketAddr;

use http::{Method, Response, StatusCode};
use podium_api::DeploymentId;
use podium_app::front_door::{AdmittedCaller, DeploymentRef, PresentedCredential};
use podium_app::{Error, Unauthenticated};
use podium_domain::Refusal;

use super::{FrontDoor, HttpResult, InboundRequest, cookies, isolation, notice, redirect, sign_in};
use crate::body::Body;
use crate::errors::Failure;
use crate::peer::Peer;

/// Where deployments are shown: `uiUrl` leads there.
pub(super) const DEPLOYMENTS: &str = "/deployments/";

/// The result of a request with a session.
enum Met {
    /// An authenticated user.
    Known(Box<AdmittedCaller>),
    /// A browser that has to sign in first, and the response that asks it to.
    Stranger(Response<Body>),
}

impl FrontDoor {
    pub(super) fn session_cookie<'a>(&self, inbound: &'a InboundRequest) -> Option<&'a str> {
        let name = cookies::session_name(self.app.public_url().is_encrypted());
        cookies::find(&inbound.parts.headers, name)
    }

    /// Whether a connection comes from a process of an environment.
    pub(crate) async fn is_of_an_environment(&self, peer: &Peer) -> bool {
        peer.is_of_an_environment(&self.planes).await
    }

    /// Refuses cookies where they must not be used: on unencrypted connections, and from processes of environments,
    /// which can only have stolen them.
    pub(super) async fn check_cookies(&self, inbound: &InboundRequest) -> Result<(), Failure> {
        if !self.app.lets_browsers_sign_in() {
            return Err(Failure::new(StatusCode::FORBIDDEN, sign_in::NOT_PRIVATE));
        }
        if !self.is_of_an_environment(&inbound.peer).await {
            return Ok(());
        }
        let peer: SocketAddr = inbound.peer.address;
        tracing::warn!(%peer, request_id = inbound.request_id, "a process of an environment sent a browser's cookie");
        let message = "This connection comes from a process of an environment: cookies of browsers do not count on it. \
                       Use a token.";
        Err(Failure::new(StatusCode::FORBIDDEN, message))
    }

    /// Asks a browser to sign in, and to come back. A browser that came from another site's page did not send its
    /// session cookie: it is first asked to repeat the request from this origin.
    pub(super) fn ask_to_sign_in(&self, inbound: &InboundRequest, to: &str) -> HttpResult {
        let way = sign_in::leading_to(to);
        let is_told = self.app.public_url().is_private();
        if self.session_cookie(inbound).is_none() && isolation::is_cross_site(&inbound.parts.headers, is_told)
        {
            return Ok(notice::again(&way));
        }
        redirect(&way)
    }

    /// Authenticates a browser, and checks whether it may see a deployment.
    async fn meet(
        &self,
        inbound: &InboundRequest,
        deployment: Option<DeploymentRef>,
        to: &str,
    ) -> Result<Met, Failure> {
        let Some(cookie) = self.session_cookie(inbound) else {
            return Ok(Met::Stranger(self.ask_to_sign_in(inbound, to)?));
        };
        self.check_cookies(inbound).await?;
        let counted = Some(podium_api::Method::Get);
        let shown = PresentedCredential::Session(cookie);
        match self.app.admit(shown, deployment, inbound.address, counted, inbound.now).await {
            Err(Error::Unauthenticated(_)) => Ok(Met::Stranger(self.ask_to_sign_in(inbound, to)?)),
            admitted => Ok(Met::Known(Box::new(admitted?))),
        }
    }

    /// Redirects a browser to the environment's own origin, after signing in if necessary.
    pub(super) async fn redirect_to_own_origin(
        &self,
        inbound: &InboundRequest,
        namespace: &str,
    ) -> HttpResult {
        let to = with_slash(inbound.target(), namespace);
        let deployment = self.app.deployment_in(namespace).await?;
        let caller = match self.meet(inbound, deployment, &to).await? {
            Met::Stranger(answer) => return Ok(answer),
            Met::Known(caller) => caller,
        };
        let cookie = self.session_cookie(inbound).unwrap_or_default();
        let way = self.app.way_in(&caller.authority, cookie, caller.deployment(), &to, inbound.now).await?;
        redirect(&way)
    }

    /// Redirects a signed-in user to the page of a deployment.
    pub(super) async fn show_deployment(&self, inbound: &InboundRequest) -> HttpResult {
        if inbound.parts.method != Method::GET && inbound.parts.method != Method::HEAD {
            return Err(Failure::new(
                StatusCode::METHOD_NOT_ALLOWED,
                "This path supports GET and HEAD only.",
            ));
        }
        if !inbound.wants_page() || !isolation::is_navigation(&inbound.parts.headers) {
            return Err(Error::Unauthenticated(Unauthenticated::Missing).into());
        }
        let id: Option<DeploymentId> =
            inbound.path().strip_prefix(DEPLOYMENTS).and_then(|id| id.parse().ok());
        let found = match id {
            Some(id) => self.app.deployment_summary(id).await?,
            None => None,
        };
        let deployment = found.as_ref().map(|shown| shown.deployment.clone());
        if let Met::Stranger(answer) = self.meet(inbound, deployment, inbound.target()).await? {
            return Ok(answer);
        }
        let deployment = found.ok_or_else(|| Refusal::not_found("deployment"))?.deployment;
        let (organization_id, id) = (deployment.organization_id(), deployment.id());
        redirect(&format!("{}/{organization_id}/deployments/{id}", podium_console::ROOT))
    }
}

/// A path and query with the slash that Airflow's pages need where they begin.
pub(super) fn with_slash(target: &str, namespace: &str) -> String {
    let home = format!("/airflow/{namespace}");
    match target.strip_prefix(&home) {
        Some(rest) if rest.is_empty() || rest.starts_with(['?', '#']) => format!("{home}/{rest}"),
        _ => target.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_beginning_of_an_environment_has_a_slash() {
        let table = [
            ("/airflow/calm", "/airflow/calm/"),
            ("/airflow/calm?a=b", "/airflow/calm/?a=b"),
            ("/airflow/calm#x", "/airflow/calm/#x"),
            ("/airflow/calm/", "/airflow/calm/"),
            ("/airflow/calm/dags?x", "/airflow/calm/dags?x"),
            ("/airflow/calmer", "/airflow/calmer"),
        ];
        for (target, expected) in table {
            assert_eq!(with_slash(target, "calm"), expected, "{target}");
        }
    }
}
