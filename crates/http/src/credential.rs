//! What proves who a caller is: a token, or the session of a browser at the console.

use std::sync::Arc;

use podium_api::{Method, OrganizationId, Timestamp};
use podium_app::authority::Authority;
use podium_app::request::OpenSession;
use podium_app::{App, Error};

/// What proves who a caller is.
pub(crate) enum Credential {
    /// A token of the `Authorization` header.
    Token(String),
    /// The session of a person who looks at a page of the console.
    Session(OpenSession),
}

impl Credential {
    /// The caller and its rights in an organization.
    pub(crate) async fn authority(
        &self,
        app: &App,
        organization_id: Option<OrganizationId>,
        now: Timestamp,
    ) -> Result<Arc<Authority>, Error> {
        match self {
            Self::Token(token) => app.authority(token, organization_id, now).await,
            Self::Session(session) => app.authority_of_session(*session, organization_id, now).await,
        }
    }

    /// Counts a call for the rate limit. A visit of a page has been counted, whatever calls it makes.
    pub(crate) fn count(&self, app: &App, caller: &Authority, method: Method) -> Result<(), Error> {
        match self {
            Self::Token(_) => app.rate_limits.count(caller.credential.subject_id, method),
            Self::Session(_) => Ok(()),
        }
    }

    /// Drops the cached rights of the caller, which are outdated.
    pub(crate) fn forget(&self, app: &App, organization_id: Option<OrganizationId>) {
        match self {
            Self::Token(token) => app.forget_caller(token, organization_id),
            Self::Session(session) => app.forget_session(*session, organization_id),
        }
    }
}
