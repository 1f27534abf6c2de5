//! Signing in with a browser: a form, and a session cookie that is not a token. Works without scripts.

use http::header::SET_COOKIE;
use http::{Response, StatusCode};
use podium_api::Endpoint;
use podium_api::auth::{SignIn, SignInRequest};
use podium_app::front_door::Environments;
use podium_app::{Error, Unauthenticated};
use podium_console::Params;

use super::cookies::SameSite;
use super::{FrontDoor, HttpResult, InboundRequest, cookies, isolation, notice, redirect};
use crate::body::{Body, RequestBody};
use crate::errors::Failure;
use crate::incoming::read_public;

pub(super) const PATH: &str = "/sign-in";
/// Name and password take at most 15 KiB with every byte escaped; the rest is for the path to return to.
const LARGEST_FORM: usize = 32 * 1024;
/// What the page says of a wrong password, with the labels of its fields.
const WRONG_PASSWORD: &str = "The e-mail address or password is wrong.";
/// Why browsers cannot sign in, and what to do about it.
pub(super) const NOT_PRIVATE: &str = "Browsers cannot sign in here: this address is reached without encryption, so others \
    on the way could read the session. The operator can serve TLS (`--tls-cert` and `--tls-key`, or a proxy that does, with \
    `--public-url https://…`), or accept the risk with `--allow-insecure-sign-in`. Programs use tokens, as ever.";

/// The URL of the page, with the target to go to afterwards.
pub(super) fn leading_to(target: &str) -> String {
    format!(
        "{PATH}?to={}",
        target.replace('%', "%25").replace('&', "%26").replace('+', "%2B").replace('#', "%23")
    )
}

impl FrontDoor {
    /// The form; a browser with a session is redirected to its target.
    pub(super) async fn offer(&self, inbound: &InboundRequest) -> HttpResult {
        let query = Params::read(inbound.parts.uri.query().unwrap_or_default());
        let to = query.opt("to");
        if !self.app.lets_browsers_sign_in() {
            return Err(Failure::new(StatusCode::FORBIDDEN, NOT_PRIVATE));
        }
        if let Some(to) = to.filter(|to| is_path(to))
            && let Some(cookie) = self.session_cookie(inbound)
            && self.check_cookies(inbound).await.is_ok()
            && self.app.is_signed_in(cookie, inbound.now).await?
        {
            return redirect(to);
        }
        Ok(self.form(to.unwrap_or_default(), ""))
    }

    /// Signs in with what the form says.
    pub(super) async fn receive(&self, inbound: InboundRequest, body: RequestBody) -> HttpResult {
        if !self.app.lets_browsers_sign_in() {
            return Err(Failure::new(StatusCode::FORBIDDEN, NOT_PRIVATE));
        }
        isolation::check_form(&inbound.parts.headers, &self.app.public_url().origin(), PATH)?;
        let connection = inbound.peer.connection.as_ref();
        let bytes = read_public(body, LARGEST_FORM, self.form_timeout, connection).await?;
        let form = Params::read(&String::from_utf8_lossy(&bytes));
        let (request, to) = (inbound.request(SignIn::DESCRIPTION), form.get("to"));
        let begun = match form.filled("token") {
            None => {
                let (username, password) = (form.get("username").trim(), form.get("password"));
                let body = SignInRequest { username: username.to_owned(), password: password.to_owned() };
                self.app.sign_in_browser(request, body).await
            }
            Some(token) => self.app.sign_in_browser_by_token(request, token).await,
        };
        let begun = match begun {
            Ok(begun) => begun,
            Err(error @ (Error::Unauthenticated(_) | Error::TooMany { .. } | Error::Refused(_))) => {
                let is_password = matches!(error, Error::Unauthenticated(Unauthenticated::Password));
                let failure = Failure::from(error);
                let problem = if is_password { WRONG_PASSWORD } else { failure.message() };
                let mut page = self.form(to, problem);
                *page.status_mut() = failure.status;
                return Ok(page);
            }
            Err(error) => return Err(error.into()),
        };
        let mut response = redirect(if is_path(to) { to } else { "/" })?;
        let is_encrypted = self.app.public_url().is_encrypted();
        let name = cookies::session_name(is_encrypted);
        let cookie = cookies::set(name, &begun.cookie, begun.lasts, SameSite::Strict, is_encrypted);
        response.headers_mut().extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
        Ok(response)
    }

    fn form(&self, to: &str, problem: &str) -> Response<Body> {
        let to = if is_path(to) { to } else { "/" };
        notice::form(&podium_console::door::SignIn { to, problem }, &self.form_targets())
    }

    /// The allowed form targets: browsers check every redirect, including those to environments.
    fn form_targets(&self) -> String {
        let public = self.app.public_url();
        match &self.app.config.environments {
            Environments::Domain(domain) => {
                format!("'self' {}://*.{domain}{}", public.scheme(), public.port())
            }
            Environments::Ports(_) => {
                format!("'self' {}://{}:*", public.scheme(), public.environments_host())
            }
        }
    }
}

/// Whether a text is a path of this origin, and of nothing else.
fn is_path(to: &str) -> bool {
    to.starts_with('/')
        && !to.starts_with("//")
        && !to.contains('\\')
        && to.bytes().all(|byte| (0x21..0x7f).contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goes_on_to_paths_of_this_origin_only() {
        for to in ["/", "/airflow/calm/dags?x=1", "/deployments/x"] {
            assert!(is_path(to), "{to}");
        }
        for to in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "javascript:x",
            "/a\r\nb",
            "/a b",
        ] {
            assert!(!is_path(to), "{to}");
        }
        assert_eq!(leading_to("/airflow/calm/?a=b%20c&d=e"), "/sign-in?to=/airflow/calm/?a=b%2520c%26d=e");
    }
}
