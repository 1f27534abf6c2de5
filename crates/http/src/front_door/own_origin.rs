//! An environment's own origin: what is there, and how a browser gets its pass.

use http::header::{HOST, SET_COOKIE};
use http::{Method, Response, StatusCode};
use podium_api::Endpoint;
use podium_api::auth::SignOut;
use podium_app::front_door::{DeploymentRef, Environments, PresentedCredential};
use podium_app::{Error, Unauthenticated};
use podium_console::Params;
use podium_domain::Refusal;

use super::console::with_slash;
use super::console_pages::asset_response;
use super::cookies::SameSite;
use super::{
    FrontDoor, HttpResult, InboundRequest, ListenerKind, Place, cookies, isolation, notice, redirect,
    sign_in, split,
};
use crate::body::{Body, RequestBody};
use crate::errors::Failure;
use crate::incoming::bearer;

/// Where a code is exchanged for a pass.
const ENTER: &str = "/.podium/enter";
/// Where Airflow's pages send people to sign in and out.
const SIGN_IN: [&str; 2] = ["/api/v2/auth/login", "/login/"];
const SIGN_OUT: [&str; 2] = ["/api/v2/auth/logout", "/logout/"];

/// Which environment's origin a request came to.
#[derive(Clone, Debug)]
pub(crate) enum OwnOrigin {
    /// One below the domain of environments.
    Named(String),
    Port(u16),
}

impl FrontDoor {
    /// Whether a request arrived at an environment's own origin, by its listener or its host.
    pub(crate) fn own_origin(
        &self,
        listener: ListenerKind,
        inbound: &http::request::Parts,
    ) -> Option<OwnOrigin> {
        if let ListenerKind::Port(port) = listener {
            return Some(OwnOrigin::Port(port));
        }
        let host = match inbound.uri.authority() {
            Some(authority) => authority.as_str(),
            None => inbound.headers.get(HOST)?.to_str().ok()?,
        };
        self.app.namespace_in_host(host).map(|namespace| OwnOrigin::Named(namespace.to_owned()))
    }

    /// Handles a request there.
    pub(crate) async fn at_own_origin(
        &self,
        inbound: InboundRequest,
        body: RequestBody,
        own: OwnOrigin,
    ) -> Response<Body> {
        let (request_id, wants_page) = (inbound.request_id.clone(), inbound.wants_page());
        let answer = self.inside(inbound, body, own).await;
        answer.unwrap_or_else(|failure| notice::refusal(failure, wants_page, &request_id))
    }

    async fn inside(&self, inbound: InboundRequest, body: RequestBody, own: OwnOrigin) -> HttpResult {
        // What the pages here load; it is nobody's, and the same on every host.
        if let Some(asset) = podium_console::asset(inbound.path()) {
            return Ok(asset_response(asset));
        }
        let public = self.app.public_url();
        // A host without an environment answers as one with an environment does: what exists is told to nobody who was not
        // admitted.
        let (namespace, deployment, origin) = match own {
            OwnOrigin::Port(port) => {
                let deployment = self.app.deployment_on_port(port).await?.ok_or_else(nothing_here)?;
                (deployment.namespace().to_owned(), Some(deployment), self.app.origin_on_port(port))
            }
            OwnOrigin::Named(namespace) => {
                let Environments::Domain(domain) = &self.app.config.environments else {
                    return Err(nothing_here());
                };
                if !is_namespace(&namespace) {
                    return Err(nothing_here());
                }
                let origin = format!("{}://{namespace}.{domain}{}", public.scheme(), public.port());
                let deployment = self.app.deployment_in(&namespace).await?;
                (namespace, deployment, origin)
            }
        };
        if inbound.path() == ENTER {
            return self.enter(&inbound, &namespace, deployment.as_ref()).await;
        }
        if inbound.path() == "/" {
            return redirect(&format!("/airflow/{namespace}/"));
        }
        // Paths of other environments do not exist here: a pass is for one environment.
        let rest = match split(inbound.path()) {
            Some((named, rest)) if named == namespace => rest.to_owned(),
            Some(_) => return Err(Error::from(Refusal::not_found("deployment")).into()),
            None => return Err(nothing_here()),
        };
        // Airflow's pages find nothing of their own at a path without the slash.
        if rest.is_empty() && !inbound.is_unsafe() {
            return redirect(&with_slash(inbound.target(), &namespace));
        }
        let place = Place::Own { origin };
        if let Some(token) = bearer(&inbound.parts.headers) {
            let token = token?.to_owned();
            return self
                .forward((inbound, body), place, PresentedCredential::Token(&token), deployment, &rest)
                .await;
        }
        let name = cookies::pass_name(&namespace, self.app.public_url().is_encrypted());
        let pass = cookies::find(&inbound.parts.headers, &name).map(str::to_owned);
        if pass.is_some() {
            self.check_cookies(&inbound).await?;
        }
        match pass {
            Some(pass) => self.with_pass((inbound, body), place, &pass, deployment, &rest).await,
            None if self.may_be_led(&inbound) => self.lead_to_console(&inbound),
            None => Err(Error::Unauthenticated(Unauthenticated::Missing).into()),
        }
    }

    async fn with_pass(
        &self,
        (inbound, body): (InboundRequest, RequestBody),
        place: Place,
        pass: &str,
        deployment: Option<DeploymentRef>,
        rest: &str,
    ) -> HttpResult {
        let may_be_led = self.may_be_led(&inbound);
        let way = if may_be_led { Some(self.lead_to_console(&inbound)?) } else { None };
        let shown = PresentedCredential::Pass(pass);
        if let Some(deployment) =
            deployment.as_ref().filter(|_| SIGN_IN.contains(&rest) || SIGN_OUT.contains(&rest))
        {
            let Place::Own { origin } = &place else { return Err(nothing_here()) };
            let admitted =
                self.app.admit(shown, Some(deployment.clone()), inbound.address, None, inbound.now).await;
            return match admitted {
                Err(Error::Unauthenticated(_)) if way.is_some() => way.ok_or_else(nothing_here),
                Err(error) => Err(error.into()),
                Ok(_) if SIGN_IN.contains(&rest) => {
                    redirect(&format!("/airflow/{}/", deployment.namespace()))
                }
                Ok(_) => {
                    isolation::check(&inbound.parts.headers, &inbound.parts.method, true, origin)?;
                    self.leave(&inbound, pass, deployment).await
                }
            };
        }
        match self.forward((inbound, body), place, shown, deployment, rest).await {
            Err(failure) if failure.status == StatusCode::UNAUTHORIZED => way.ok_or(failure),
            answer => answer,
        }
    }

    /// Whether a browser can be redirected to sign in.
    fn may_be_led(&self, inbound: &InboundRequest) -> bool {
        inbound.wants_page() && isolation::is_navigation(&inbound.parts.headers)
    }

    fn lead_to_console(&self, inbound: &InboundRequest) -> HttpResult {
        redirect(&format!("{}{}", self.app.config.public_url, inbound.target()))
    }

    /// Exchanges a code for a pass, and redirects to the browser's target.
    async fn enter(
        &self,
        inbound: &InboundRequest,
        namespace: &str,
        deployment: Option<&DeploymentRef>,
    ) -> HttpResult {
        let home = format!("/airflow/{namespace}/");
        if inbound.parts.method == Method::HEAD {
            // HEAD does not use the code up.
            return Ok(notice::page(
                "Open an environment",
                "This link opens an environment and works once.",
                ("Continue", &home),
            ));
        }
        if inbound.parts.method != Method::GET {
            return Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, "This path supports GET only."));
        }
        self.check_cookies(inbound).await?;
        let query = Params::read(inbound.parts.uri.query().unwrap_or_default());
        let entered = self.app.enter(query.get("code"), deployment, inbound.now).await?;
        let to = query.opt("to").filter(|to| is_below(to, &home)).unwrap_or(&home);
        let mut response = redirect(&with_slash(to, namespace))?;
        let is_encrypted = self.app.public_url().is_encrypted();
        let name = cookies::pass_name(namespace, is_encrypted);
        // The console, another site, redirects here: browsers would not send a strict cookie.
        let cookie = cookies::set(&name, &entered.pass, entered.lasts, SameSite::Lax, is_encrypted);
        response.headers_mut().extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
        Ok(response)
    }

    /// Signs a browser out: Airflow's own "log out" leads here.
    async fn leave(&self, inbound: &InboundRequest, pass: &str, deployment: &DeploymentRef) -> HttpResult {
        self.app.leave(inbound.request(SignOut::DESCRIPTION), pass).await?;
        let is_encrypted = self.app.public_url().is_encrypted();
        let name = cookies::pass_name(deployment.namespace(), is_encrypted);
        let way = sign_in::leading_to(&format!("/airflow/{}/", deployment.namespace()));
        let way = format!("{}{way}", self.app.config.public_url);
        let message = "Your session has ended, and this browser no longer has access to this environment.";
        let mut response = notice::page("You are signed out", message, ("Sign in again", &way));
        let gone = cookies::clear(&name, is_encrypted);
        response.headers_mut().extend(gone.map(|cookie| (SET_COOKIE, cookie)));
        Ok(response)
    }
}

/// Whether an environment may be called that.
fn is_namespace(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    !text.is_empty() && text.bytes().all(is_plain)
}

/// Whether a text is a path of the environment, and of nothing else.
fn is_below(to: &str, home: &str) -> bool {
    let path = to.split(['?', '#']).next().unwrap_or_default();
    (path.starts_with(home) || Some(path) == home.strip_suffix('/'))
        && !to.contains('\\')
        && to.bytes().all(|byte| (0x21..0x7f).contains(&byte))
}

fn nothing_here() -> Failure {
    Failure::new(StatusCode::NOT_FOUND, "The environment has no resource at this path.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_on_to_paths_of_the_environment_only() {
        for to in ["/airflow/calm/", "/airflow/calm", "/airflow/calm/dags/x?a=b#c"] {
            assert!(is_below(to, "/airflow/calm/"), "{to}");
        }
        for to in [
            "",
            "/",
            "//evil.example",
            "https://evil.example/airflow/calm/",
            "/airflow/calm2/",
            "/airflow/other/",
            "/airflow/calm/\r\nx: y",
            "/airflow/calm/\\evil",
            "\\\\evil.example",
            "/airflow/calm/ x",
        ] {
            assert!(!is_below(to, "/airflow/calm/"), "{to}");
        }
    }
}
