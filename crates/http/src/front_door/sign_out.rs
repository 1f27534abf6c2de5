//! Signing out with a browser: a form, so that no link or image can trigger it.

use http::header::SET_COOKIE;
use podium_api::Endpoint;
use podium_api::auth::SignOut;

use super::{FrontDoor, HttpResult, InboundRequest, cookies, isolation, notice, sign_in};

pub(super) const PATH: &str = "/sign-out";

impl FrontDoor {
    /// Ends the session when the form is sent.
    pub(super) async fn end_session(&self, inbound: &InboundRequest) -> HttpResult {
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
