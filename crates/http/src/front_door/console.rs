//! A browser at the console: its session, and what it is shown with one.

use std::net::SocketAddr;

use http::{Method, Response, StatusCode};
use podium_api::DeploymentId;
use podium_app::front_door::{Addressed, Shown, Visitor};
use podium_app::{Error, Unauthenticated};
use podium_domain::Refusal;

use super::{Answer, FrontDoor, Knock, cookies, headers, isolation, notice, redirect, sign_in};
use crate::body::Body;
use crate::errors::Failure;
use crate::pages;
use crate::peer::Peer;

/// Where deployments are shown: `uiUrl` leads there.
pub(crate) const DEPLOYMENTS: &str = "/deployments/";
const DEPLOYMENT_PAGE: &str = include_str!("../pages/deployment.html");

/// What a request with a session came to.
enum Met {
    /// Somebody who is known.
    Known(Box<Visitor>),
    /// Somebody who has to sign in first, and how it is asked to.
    Stranger(Response<Body>),
}

impl FrontDoor {
    /// The browser's session, if it sent one.
    pub(super) fn session_cookie<'a>(&self, knock: &'a Knock) -> Option<&'a str> {
        let name = cookies::session_name(self.app.public_url().is_encrypted());
        cookies::find(&knock.parts.headers, name)
    }

    /// Whether a connection comes from a process of an environment, where those can be told apart.
    pub(crate) async fn is_of_an_environment(&self, peer: &Peer) -> bool {
        let Some(users) = self.plane.environment_users() else { return false };
        match peer.user().await {
            Some(user) => users.contains(&user),
            // Whose it is cannot be told, and it can only be somebody's of this machine.
            None => peer.is_here(),
        }
    }

    /// Refuses cookies where they are not to be used: where others could read along, and to processes of environments,
    /// which have nothing but what they found or were sent.
    pub(super) async fn check_cookies(&self, knock: &Knock) -> Result<(), Failure> {
        if !self.app.lets_browsers_sign_in() {
            return Err(Failure::new(StatusCode::FORBIDDEN, sign_in::NOT_PRIVATE));
        }
        if !self.is_of_an_environment(&knock.peer).await {
            return Ok(());
        }
        let peer: SocketAddr = knock.peer.address;
        tracing::warn!(%peer, request_id = knock.request_id, "a process of an environment sent a browser's cookie");
        let message = "This connection comes from a process of an environment: cookies of browsers do not count on it. \
                       Use a token.";
        Err(Failure::new(StatusCode::FORBIDDEN, message))
    }

    /// Asks a browser to sign in, and to come back. One that another site's page has sent here did not send its session
    /// along, if it has one: it is asked to come again by itself first.
    fn ask_to_sign_in(&self, knock: &Knock, to: &str) -> Answer {
        let way = sign_in::leading_to(to);
        let is_told = self.app.public_url().is_private();
        if self.session_cookie(knock).is_none() && isolation::is_from_elsewhere(&knock.parts.headers, is_told)
        {
            return Ok(notice::again(&way));
        }
        redirect(&way)
    }

    /// Finds out who a browser is, and whether it may see a deployment.
    async fn meet(&self, knock: &Knock, deployment: Option<Addressed>, to: &str) -> Result<Met, Failure> {
        let Some(cookie) = self.session_cookie(knock) else {
            return Ok(Met::Stranger(self.ask_to_sign_in(knock, to)?));
        };
        self.check_cookies(knock).await?;
        let counted = Some(podium_api::Method::Get);
        let shown = Shown::Session(cookie);
        match self.app.admit(shown, deployment, knock.address, counted, knock.now).await {
            Err(Error::Unauthenticated(_)) => Ok(Met::Stranger(self.ask_to_sign_in(knock, to)?)),
            admitted => Ok(Met::Known(Box::new(admitted?))),
        }
    }

    /// Sends a browser to the environment's own origin, by way of signing in where it has not.
    pub(super) async fn lead_to_own_origin(&self, knock: &Knock, namespace: &str) -> Answer {
        let to = with_slash(knock.target(), namespace);
        let deployment = self.app.deployment_in(namespace).await?;
        let visitor = match self.meet(knock, deployment, &to).await? {
            Met::Stranger(answer) => return Ok(answer),
            Met::Known(visitor) => visitor,
        };
        let cookie = self.session_cookie(knock).unwrap_or_default();
        let way = self.app.way_in(&visitor.authority, cookie, &visitor.deployment, &to, knock.now).await?;
        redirect(&way)
    }

    /// Shows a deployment to somebody who is signed in.
    pub(crate) async fn deployment_page(&self, knock: Knock) -> Response<Body> {
        let (request_id, wants_page) = (knock.request_id.clone(), knock.wants_page());
        let answer = self.show_deployment(&knock).await;
        answer.unwrap_or_else(|failure| notice::refusal(failure, wants_page, &request_id))
    }

    async fn show_deployment(&self, knock: &Knock) -> Answer {
        if knock.parts.method != Method::GET && knock.parts.method != Method::HEAD {
            return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, "This path takes GET and HEAD only."));
        }
        if !knock.wants_page() || !isolation::is_navigation(&knock.parts.headers) {
            return Err(Error::Unauthenticated(Unauthenticated::Missing).into());
        }
        let id: Option<DeploymentId> = knock.path().strip_prefix(DEPLOYMENTS).and_then(|id| id.parse().ok());
        let found = match id {
            Some(id) => self.app.deployment_to_show(id).await?,
            None => None,
        };
        let deployment = found.as_ref().map(|shown| shown.deployment.clone());
        if let Met::Stranger(answer) = self.meet(knock, deployment, knock.target()).await? {
            return Ok(answer);
        }
        let shown = found.ok_or_else(|| Refusal::not_found("deployment"))?;
        let text = DEPLOYMENT_PAGE
            .replace("{{airflow}}", &pages::escape(&format!("/airflow/{}/", shown.deployment.namespace)))
            .replace("{{namespace}}", &pages::escape(&shown.deployment.namespace))
            .replace("{{status}}", shown.status.as_str())
            .replace("{{reason}}", &pages::escape(shown.status_reason.as_str()))
            .replace("{{name}}", &pages::escape(&shown.name));
        let mut response = pages::html(text);
        pages::protect(response.headers_mut(), "'none'");
        headers::never_keep(response.headers_mut());
        Ok(response)
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
