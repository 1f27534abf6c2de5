//! Signing in with a browser: a form, and a cookie that holds the session. Works without a script.

use http::header::SET_COOKIE;
use http::request::Parts;
use http::{HeaderValue, Method, Response, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use podium_api::auth::{SIGN_IN, SignInRequest};
use podium_api::{Nothing, OPERATIONS, Spec, Timestamp};
use podium_app::front_door::Environments;
use podium_app::visit::Visit;
use podium_app::{Call, Error, Request, auth};

use super::{Answer, FrontDoor, Knock, cookies, headers, isolation, notice, redirect};
use crate::body::{Body, Unread};
use crate::errors::Failure;
use crate::incoming::query_pairs;
use crate::pages;

/// Where the page is.
pub(crate) const PATH: &str = "/sign-in";
const PAGE: &str = include_str!("../pages/sign-in.html");
const LARGEST_FORM: usize = 64 * 1024;

/// What a form held.
struct Form {
    to: String,
    username: String,
    password: String,
    token: String,
}

/// A session, and until when it works.
struct Session {
    token: String,
    end: Option<Timestamp>,
}

/// The page, for whoever wants to be somewhere else afterwards.
pub(super) fn leading_to(target: &str) -> String {
    format!(
        "{PATH}?to={}",
        target.replace('%', "%25").replace('&', "%26").replace('+', "%2B").replace('#', "%23")
    )
}

impl FrontDoor {
    /// Answers a request for the page, or a form from it.
    pub(crate) async fn sign_in(&self, knock: Knock, body: Unread) -> Response<Body> {
        let request_id = knock.request_id.clone();
        let answer = match knock.parts.method {
            Method::GET | Method::HEAD => {
                let query = query_pairs(knock.parts.uri.query().unwrap_or_default());
                let to = query.iter().find(|(name, _)| name == "to").map(|(_, to)| to.as_str());
                Ok(self.form(to.unwrap_or_default(), ""))
            }
            Method::POST => self.receive(knock, body).await,
            _ => Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, "This path takes GET and POST only.")),
        };
        answer.unwrap_or_else(|failure| notice::refusal(failure, true, &request_id))
    }

    async fn receive(&self, knock: Knock, body: Unread) -> Answer {
        isolation::check_form(&knock.parts.headers, &self.app.public_url().origin())?;
        let (parts, address, request_id, now) = (knock.parts, knock.address, knock.request_id, knock.now);
        let read = Limited::new(body, LARGEST_FORM).collect().await;
        let bytes = read
            .map_err(|_| Failure::new(StatusCode::BAD_REQUEST, "The form broke off, or is too large."))?
            .to_bytes();
        let form = Form::read(&String::from_utf8_lossy(&bytes));
        let session = if form.token.is_empty() {
            self.by_password(&form, request(&parts, address, request_id, now)).await
        } else {
            self.by_token(&form.token, now).await
        };
        let session = match session {
            Ok(session) => session,
            Err(error @ (Error::Unauthenticated(_) | Error::TooMany { .. } | Error::Refused(_))) => {
                let failure = Failure::from(error);
                let mut page = self.form(&form.to, failure.message());
                *page.status_mut() = failure.status;
                return Ok(page);
            }
            Err(error) => return Err(error.into()),
        };
        let is_encrypted = self.app.public_url().is_encrypted();
        let seconds = session.end.map(|end| (end.millis() - now.millis()).max(0).unsigned_abs() / 1000);
        let name = cookies::session_name(is_encrypted);
        let to = if is_path(&form.to) { form.to.as_str() } else { "/" };
        let mut response = redirect(to)?;
        let cookie = cookies::set(name, &session.token, seconds, is_encrypted);
        response.headers_mut().extend(cookie.map(|cookie| (SET_COOKIE, cookie)));
        Ok(response)
    }

    async fn by_password(&self, form: &Form, request: Request) -> Result<Session, Error> {
        let visit = Visit { app: self.app.clone(), request, bearer: None };
        let body = SignInRequest { username: form.username.clone(), password: form.password.clone() };
        let session = auth::sign_in(visit, Call { path: (), query: Nothing, body }).await?.0;
        Ok(Session { token: session.token, end: Some(session.expires_at) })
    }

    async fn by_token(&self, token: &str, now: Timestamp) -> Result<Session, Error> {
        let authority = self.app.authority(token, None, now).await?;
        Ok(Session { token: token.to_owned(), end: authority.credential.expires_at })
    }

    fn form(&self, to: &str, problem: &str) -> Response<Body> {
        let to = if is_path(to) { to } else { "/" };
        let text = PAGE.replace("{{problem}}", &pages::escape(problem)).replace("{{to}}", &pages::escape(to));
        let mut response = pages::html(text);
        pages::protect(response.headers_mut(), &self.form_targets());
        headers::never_keep(response.headers_mut());
        // Without it a browser would not say which page a form comes from.
        response.headers_mut().insert(http::header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
        response
    }

    /// Where the form may lead: browsers follow it through every redirect, to the environments too.
    fn form_targets(&self) -> String {
        let public = self.app.public_url();
        match &self.app.config.environments {
            Environments::Domain(domain) => format!("'self' {}://*.{domain}{}", public.scheme, public.port),
            Environments::Ports(_) => format!("'self' {}://{}:*", public.scheme, public.host),
        }
    }
}

impl Form {
    fn read(text: &str) -> Self {
        let pairs = query_pairs(text);
        let value = |name: &str| {
            pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone()).unwrap_or_default()
        };
        Self {
            to: value("to"),
            username: value("username").trim().to_owned(),
            password: value("password"),
            token: value("token").trim().to_owned(),
        }
    }
}

fn request(parts: &Parts, address: std::net::IpAddr, id: String, now: Timestamp) -> Request {
    Request {
        operation: operation(),
        id,
        path: parts.uri.path().to_owned(),
        address,
        user_agent: String::new(),
        if_match: None,
        last_event_id: None,
        idempotency: None,
        audited_body: None,
        now,
    }
}

/// The operation that the form stands for.
fn operation() -> &'static Spec {
    OPERATIONS.iter().find(|spec| spec.id == SIGN_IN.spec.id).expect("signing in is an operation")
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
