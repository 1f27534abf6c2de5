//! The operator of the machine that a server runs on, who needs no account: whoever may use the server's own socket acts as
//! the oldest owner of the first organization.
//!
//! For that the server keeps a short session of that owner in its memory. Its calls are authorized and recorded like any
//! other, and the audit log marks them.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use podium_api::{CredentialId, OrganizationId, Timestamp};
use podium_store::System;

use crate::App;
use crate::error::{Error, Result};

/// How the audit log marks what the operator does.
const MARK: &str = "OPERATOR_SOCKET";
/// How long a session lasts, and how much of that must be left for it to be used.
const LASTS: Duration = Duration::from_hours(1);
const LEFT: Duration = Duration::from_mins(10);

/// The right to act as the operator. Only whoever opens the database can make one.
#[derive(Clone)]
pub struct Operator {
    app: App,
    system: System,
}

#[derive(Default)]
pub(crate) struct OperatorSessions(Mutex<Vec<OperatorSession>>);

#[derive(Clone)]
struct OperatorSession {
    id: CredentialId,
    token: String,
    organization_id: OrganizationId,
    expires_at: Timestamp,
}

impl OperatorSessions {
    /// How the audit log marks what is done with a session: not at all, unless it is one of the operator.
    pub(crate) fn mark(&self, id: CredentialId) -> Option<&'static str> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|session| session.id == id).then_some(MARK)
    }

    fn latest(&self) -> Option<OperatorSession> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).last().cloned()
    }

    fn add(&self, session: OperatorSession, now: Timestamp) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|session| session.expires_at > now);
        all.push(session);
    }
}

impl Operator {
    pub fn new(app: App, system: &System) -> Self {
        Self { app, system: *system }
    }

    /// A token to act with; none if the first organization has no owner who holds the role directly.
    pub async fn token(&self) -> Result<Option<String>> {
        let now = self.app.world.now();
        if let Some(session) = self.app.operator_sessions.latest()
            && self.is_usable(&session, now).await?
        {
            return Ok(Some(session.token));
        }
        let expires_at = now + LASTS;
        let Some((organization_id, issued)) =
            self.app.new_owner_session(&self.system, Some(expires_at)).await?
        else {
            return Ok(None);
        };
        let (id, token) = issued;
        self.app
            .operator_sessions
            .add(OperatorSession { id, token: token.clone(), organization_id, expires_at }, now);
        Ok(Some(token))
    }

    /// Whether a session still has an owner's rights: it may have been ended, and its user may no longer be one.
    async fn is_usable(&self, session: &OperatorSession, now: Timestamp) -> Result<bool> {
        if session.expires_at < now + LEFT {
            return Ok(false);
        }
        match self.app.authority(&session.token, Some(session.organization_id), now).await {
            Ok(authority) => Ok(authority.member.as_ref().is_some_and(|member| member.grants().is_owner())),
            Err(Error::Unauthenticated(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
