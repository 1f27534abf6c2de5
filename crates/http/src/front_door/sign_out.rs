//! Signing out with a browser: a form, so that no link or image can trigger it.

use http::header::SET_COOKIE;
use http::{Method, Response, StatusCode};
use podium_api::Endpoint;
use podium_api::auth::SignOut;

use super::{FrontDoor, HttpResult, InboundRequest, cookies, isolation, notice, sign_in};
use crate::body::Body;
use crate::errors::Failure;

/// Where the page is.
pub(crate) const PATH: &str = "/sign-out";

impl FrontDoor {
    /// Handles a request for the page, or its form.
    pub(crate) async fn sign_out(&self, inbound: InboundRequest) -> Response<Body> {
        let request_id = inbound.request_id.clone();
        let answer = match inbound.parts.method {
            Method::GET | Method::HEAD => Ok(notice::form(&podium_console::door::SignOut, "'self'")),
            Method::POST => self.end_session(&inbound).await,
            _ => Err(Failure::new(StatusCode::METHOD_NOT_ALLOWED, "This path supports GET and POST only.")),
        };
        answer.unwrap_or_else(|failure| notice::refusal(failure, true, &request_id))
    }

    async fn end_session(&self, inbound: &InboundRequest) -> HttpResult {
        isolation::check_form(&inbound.parts.headers, &self.app.public_url().origin(), PATH)?;
        if let Some(cookie) = self.session_cookie(inbound) {
            self.check_cookies(inbound).await?;
            self.app.sign_out_browser(inbound.request(SignOut::DESCRIPTION), cookie).await?;
        }
        let message = "Your session has ended, here and in every environment that you opened with it.";
        let mut response = notice::page("You are signed out", message, ("Sign in again", sign_in::PATH));
        let is_encrypted = self.app.public_url().is_encrypted();
        let gone = cookies::clear(cookies::session_name(is_encrypted), is_encrypted);
        response.headers_mut().extend(gone.map(|cookie| (SET_COOKIE, cookie)));
        Ok(response)
    }
}
