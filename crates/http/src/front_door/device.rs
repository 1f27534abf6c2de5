//! The page where a signed-in person approves or denies the sign-in of a terminal. Works without scripts.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use podium_api::Timestamp;
use podium_api::device_sign_ins::Decide;
use podium_api::enums::DeviceSignInDecision;
use podium_app::Error;
use podium_app::audit::shown_name;
use podium_app::authority::Authority;
use podium_app::request::OpenSession;
use podium_console::door::{DeviceCode, DeviceDecision};
use podium_console::{ApiCall, Params};
use podium_domain::device_sign_ins::{shown, typed};
use serde_json::json;

use super::{FrontDoor, HttpResult, InboundRequest, isolation, notice, sign_in};
use crate::body::{Body, RequestBody};
use crate::errors::Failure;
use crate::incoming::read_whole;

pub(super) const PATH: &str = podium_app::device_sign_ins::PAGE;
const LARGEST_FORM: usize = 4 * 1024;
/// What the token of the form is signed for.
const FORM: &str = "device sign-in form";
const NO_SUCH_CODE: &str =
    "No terminal is waiting with this code: it was mistyped, has expired, or was used.";
const OTHER_FORM: &str =
    "This form was made for another session or another code: open its page again, and send it from there.";
const NO_PERSON: &str = "You are signed in with an API token, which is no person: sign in as the user that the terminal is \
    to act for, or give the token to podium login --token-file.";

struct Visitor {
    cookie: String,
    session: OpenSession,
    authority: Arc<Authority>,
}

impl FrontDoor {
    /// Shows who asks for what; without a code, a form to type it into.
    pub(super) async fn ask_for_decision(&self, inbound: &InboundRequest) -> HttpResult {
        let visitor = match self.visitor(inbound, podium_api::Method::Get).await? {
            Ok(visitor) => visitor,
            Err(sign_in) => return Ok(sign_in),
        };
        let origin = self.app.public_url().origin();
        isolation::check(&inbound.parts.headers, &inbound.parts.method, false, &origin)?;
        let query = Params::read(inbound.parts.uri.query().unwrap_or_default());
        let code = query.get("code");
        if code.is_empty() {
            return Ok(code_page(&visitor, StatusCode::OK, ""));
        }
        let found = self.app.waiting_device_sign_in(&visitor.authority, inbound.address, code, inbound.now);
        let waiting = match found.await {
            Ok(waiting) => waiting,
            Err(error @ Error::Refused(_)) => {
                return Ok(code_page(&visitor, Failure::from(error).status, NO_SUCH_CODE));
            }
            Err(error) => return Err(error.into()),
        };
        let code = typed("code", code).map_err(|error| Failure::fields(vec![error]))?;
        let page = DeviceDecision {
            code: &shown(&code),
            machine: &waiting.client_name,
            program: &waiting.user_agent,
            address: &waiting.address,
            asked: &asked(waiting.created_at, inbound.now),
            person: visitor.name(),
            hours: &lasting(self.app.config.session),
            form_token: &self.app.secrets.sign(FORM, &visitor.signed(&code)),
        };
        Ok(notice::form(&page, "'self'"))
    }

    /// Takes what the form says.
    pub(super) async fn take_decision(&self, inbound: &InboundRequest, body: RequestBody) -> HttpResult {
        isolation::check_form(&inbound.parts.headers, &self.app.public_url().origin(), PATH)?;
        let visitor = match self.visitor(inbound, podium_api::Method::Post).await? {
            Ok(visitor) => visitor,
            Err(sign_in) => return Ok(sign_in),
        };
        let bytes = read_whole(body, LARGEST_FORM, self.form_timeout).await?;
        let form = Params::read(&String::from_utf8_lossy(&bytes));
        let code = typed("code", form.get("code")).map_err(|error| Failure::fields(vec![error]))?;
        // Only what this session's page has shown can be approved.
        if !self.app.secrets.verify(FORM, &visitor.signed(&code), form.get("form-token")) {
            return Err(Failure::new(StatusCode::FORBIDDEN, OTHER_FORM));
        }
        let body = json!({ "userCode": code, "decision": form.get("decision") });
        let call = ApiCall { body, ..ApiCall::to::<Decide>(&()) };
        self.session_calls(inbound, visitor.session, &visitor.cookie).answer(call).await?;
        let (title, message) = if form.get("decision") == DeviceSignInDecision::Approve.as_str() {
            ("The terminal will be signed in", "You can close this page and go back to your terminal.")
        } else {
            ("The sign-in was denied", "The terminal gets nothing. You can close this page.")
        };
        Ok(notice::page(title, message, ("Go to the console", podium_console::ROOT)))
    }

    /// The person behind the session, or the response that asks the browser to sign in.
    async fn visitor(
        &self,
        inbound: &InboundRequest,
        counted: podium_api::Method,
    ) -> Result<Result<Visitor, Response<Body>>, Failure> {
        let to = if counted == podium_api::Method::Get { inbound.target() } else { PATH };
        if !self.app.lets_browsers_sign_in() {
            return Err(Failure::new(StatusCode::FORBIDDEN, sign_in::NOT_PRIVATE));
        }
        let Some(cookie) = self.session_cookie(inbound).map(str::to_owned) else {
            return Ok(Err(self.ask_to_sign_in(inbound, to)?));
        };
        self.check_cookies(inbound).await?;
        let Some((session, authority)) = self.behind(&cookie, counted, inbound.now).await? else {
            return Ok(Err(self.ask_to_sign_in(inbound, to)?));
        };
        if authority.is_api_token() {
            return Err(Failure::new(StatusCode::FORBIDDEN, NO_PERSON));
        }
        Ok(Ok(Visitor { cookie, session, authority }))
    }
}

impl Visitor {
    fn name(&self) -> &str {
        shown_name(&self.authority.profile)
    }

    /// What the token of a form is made for: this session and this code.
    fn signed(&self, code: &str) -> String {
        format!("{}\0{code}", self.cookie)
    }
}

fn code_page(visitor: &Visitor, status: StatusCode, problem: &str) -> Response<Body> {
    let mut response = notice::form(&DeviceCode { person: visitor.name(), problem }, "'self'");
    *response.status_mut() = status;
    response
}

/// When a terminal asked, and how long ago that is.
fn asked(at: Timestamp, now: Timestamp) -> String {
    let minutes = (now.millis() - at.millis()).max(0) / 60_000;
    match minutes {
        0 => format!("{at} (just now)"),
        1 => format!("{at} (a minute ago)"),
        minutes => format!("{at} ({minutes} minutes ago)"),
    }
}

fn lasting(session: Duration) -> String {
    match session.as_secs() / 60 {
        60 => "an hour".into(),
        minutes if minutes % 60 == 0 => format!("{} hours", minutes / 60),
        minutes => format!("{minutes} minutes"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_for_people() {
        let at = Timestamp::from_millis(1_700_000_000_000);
        for (seconds, ends) in [(0, "(just now)"), (61, "(a minute ago)"), (300, "(5 minutes ago)")] {
            let told = asked(at, at + Duration::from_secs(seconds));
            assert!(told.ends_with(ends), "{told}");
        }
        assert_eq!(lasting(Duration::from_hours(8)), "8 hours");
        assert_eq!(lasting(Duration::from_hours(1)), "an hour");
        assert_eq!(lasting(Duration::from_mins(90)), "90 minutes");
    }
}
