//! Browser sessions at the console.
//!
//! A browser holds a random value that is not a token: as a bearer token it is useless. It refers to a token: the one
//! presented at sign-in or, after a password sign-in, one created for the session that nobody ever sees. Every use
//! reads that token's rights again, so anything that revokes the token also ends the session.

use std::sync::Arc;
use std::time::Duration;

use podium_api::auth::SignInRequest;
use podium_api::enums::{SessionKind, UserStatus};
use podium_api::subjects::SubjectProfile;
use podium_api::{AuditLogId, Method, OrganizationId, SubjectId, Timestamp, UserId, hex, unhex};
use podium_db::{Conn, Tx};
use podium_store::sessions::{self, BrowserSession};
use podium_store::user_sessions::{self, UserSessionRow};
use podium_store::{Doorkeeper, credentials, device_sign_ins, front_door, subjects, users};

use crate::authority::{Authority, rights_lock, sessions_change};
use crate::error::{Error, Result, Unauthenticated};
use crate::request::{OpenSession, Request};
use crate::secrets::{sha256, sha256_hex};
use crate::{App, audit, auth};

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

/// What a browser is answered with when it has signed in or out.
const SEE_OTHER: u16 = 303;
const OK: u16 = 200;

#[derive(Debug)]
pub struct NewSession {
    /// The value of the session cookie.
    pub cookie: String,
    /// How long that can work.
    pub lasts: Duration,
}

impl App {
    /// Looks up the session of a browser.
    pub async fn open_session(&self, cookie: &str, now: Timestamp) -> Result<OpenSession> {
        let (hash, generation) = (sha256(cookie.as_bytes()), self.rights_generation());
        let (system, stored) = (system(self), hex(&hash));
        let session = db(self).read(None, move |conn| sessions::by_hash(conn, &system, &stored)).await?;
        let session = session.ok_or(Error::Unauthenticated(Unauthenticated::Revoked))?;
        if session.expires_at <= now {
            return Err(Error::Unauthenticated(Unauthenticated::Expired));
        }
        self.note_session_use(session.id, now);
        let credential_hash = unhex(&session.credential_hash).and_then(|bytes| bytes.try_into().ok());
        let credential_hash = credential_hash
            .ok_or_else(|| Error::Internal("a stored session has no valid credential hash".into()))?;
        let BrowserSession { id, expires_at, .. } = session;
        Ok(OpenSession { id, hash, credential_hash, expires_at, generation })
    }

    /// Checks that a session that was looked up before has not ended since.
    pub(crate) fn confirm_session(&self, conn: &Conn, session: Option<OpenSession>) -> Result<()> {
        let Some(session) = session else { return Ok(()) };
        let stored = sessions::by_hash(conn, &system(self), &hex(&session.hash))?;
        stored.map(drop).ok_or(Error::Unauthenticated(Unauthenticated::Revoked))
    }

    /// Checks the same outside a unit of work.
    pub(crate) async fn reconfirm_session(&self, session: Option<OpenSession>) -> Result<()> {
        let app = self.clone();
        db(self).read(None, move |conn| app.confirm_session(conn, session)).await
    }

    /// Loads the rights of a session in an organization.
    pub async fn authority_of_session(
        &self,
        session: OpenSession,
        organization_id: Option<OrganizationId>,
        now: Timestamp,
    ) -> Result<Arc<Authority>> {
        self.authority_by_hash(session.credential_hash, organization_id, now).await
    }

    /// Drops the cached rights of a session whose guard failed.
    pub fn forget_session(&self, session: OpenSession, organization_id: Option<OrganizationId>) {
        self.forget_caller_by_hash(session.credential_hash, organization_id);
    }

    pub async fn sign_in_browser(&self, request: Request, body: SignInRequest) -> Result<NewSession> {
        let request = Arc::new(request);
        let proven = auth::prove(self, &request, body).await?;
        let now = request.now;
        // The value of this token is dropped: only the session refers to it.
        let issued = self.issue_session(proven.id, Some(now + self.config.session), now);
        let issued = issued.begun(request.origin(SessionKind::Browser, ""));
        let session = BrowserSession {
            id: issued.token.id,
            credential_hash: sha256_hex(issued.value.as_bytes()),
            token_id: issued.token.id.into(),
            subject_id: proven.id.into(),
            is_own: true,
            expires_at: now + self.config.session,
        };
        let (begun, hash) = self.begin(&session, now);
        let system = system(self);
        let store = move |tx: &Tx| {
            issued.store(tx, &system)?;
            Ok(sessions::insert(tx, &system, &hash, &session, now)?)
        };
        auth::enter(self, proven, request, SEE_OTHER, store).await?;
        Ok(begun)
    }

    /// Signs a browser in with a token, which is verified and not stored.
    pub async fn sign_in_browser_by_token(&self, request: Request, token: &str) -> Result<NewSession> {
        let now = request.now;
        let authority = match self.authority(token, None, now).await {
            Err(error @ Error::Unauthenticated(_)) => {
                auth::note_stranger(&request);
                return Err(error);
            }
            authority => authority?,
        };
        self.rate_limits.count(authority.credential.subject_id, Method::Post)?;
        let end = now + self.config.session;
        let session = BrowserSession {
            id: self.world.id(),
            credential_hash: hex(&authority.token_hash()),
            token_id: authority.credential.token_id,
            subject_id: authority.credential.subject_id,
            is_own: false,
            expires_at: authority.credential.expires_at.map_or(end, |own| own.min(end)),
        };
        let (begun, hash) = self.begin(&session, now);
        let listed = UserSessionRow {
            id: session.id,
            token_id: session.token_id,
            origin: request.origin(SessionKind::Browser, ""),
            created_at: now,
            last_used_at: now,
            expires_at: Some(session.expires_at),
        };
        let system = system(self);
        let (guard, locks, audit_id) = (authority.guard(), authority.locks(false), self.world.id());
        let store = move |tx: &Tx| {
            if !tx.holds(&authority.guard())? {
                return Err(Error::Unauthenticated(Unauthenticated::Revoked));
            }
            sessions::insert(tx, &system, &hash, &session, now)?;
            if let Some(user_id) = authority.credential.user_id() {
                user_sessions::insert(tx, &system, user_id, &listed)?;
            }
            audit::write(tx, &system, &request, authority.home, &authority.profile, audit_id, SEE_OTHER)
        };
        let stored = db(self).write_locked(Some(guard), locks, store).await;
        stored.map_err(|error| {
            // The guard of a caller without an organization only checks that its token is valid.
            if error.is_stale() { Error::Unauthenticated(Unauthenticated::Revoked) } else { error }
        })?;
        Ok(begun)
    }

    fn begin(&self, session: &BrowserSession, now: Timestamp) -> (NewSession, String) {
        let cookie = self.world.secret();
        let hash = sha256_hex(cookie.as_bytes());
        let millis = (session.expires_at.millis() - now.millis()).max(0).unsigned_abs();
        (NewSession { cookie, lasts: Duration::from_millis(millis) }, hash)
    }

    /// Whether a cookie is a session that still works.
    pub async fn is_signed_in(&self, cookie: &str, now: Timestamp) -> Result<bool> {
        let found = match self.open_session(cookie, now).await {
            Ok(session) => self.authority_of_session(session, None, now).await.map(drop),
            Err(error) => Err(error),
        };
        match found {
            Err(Error::Unauthenticated(_)) => Ok(false),
            found => found.map(|()| true),
        }
    }

    /// Signs a browser out: its session ends, with every pass that came from it.
    pub async fn sign_out_browser(&self, request: Request, cookie: &str) -> Result<()> {
        let hash = sha256_hex(cookie.as_bytes());
        // Guesses must not cause database writes.
        let (system, looked_up) = (system(self), hash.clone());
        let found = db(self).read(None, move |conn| sessions::by_hash(conn, &system, &looked_up)).await?;
        let Some(session) = found else { return Ok(()) };
        let audit_id = self.world.id();
        let end = move |tx: &Tx| match end(tx, &system, &hash, request.now)? {
            Some(who) => who.record(tx, &system, &request, audit_id, OK),
            None => Ok(()),
        };
        db(self).write_locked(None, vec![rights_lock(session.subject_id.id(), true)], end).await
    }

    /// Signs a browser out from inside an environment: its pass ends, and so does the session that it came from.
    pub async fn leave(&self, request: Request, pass: &str) -> Result<()> {
        let (hash, audit_id) = (sha256_hex(pass.as_bytes()), self.world.id());
        let (system, looked_up) = (system(self), hash.clone());
        let session = db(self).read(None, move |conn| {
            let session =
                front_door::pass(conn, &system, &looked_up)?.and_then(|(access, _)| access.session_hash);
            session.map_or(Ok(None), |hash| sessions::by_hash(conn, &system, &hash))
        });
        let locks =
            session.await?.map(|session| rights_lock(session.subject_id.id(), true)).into_iter().collect();
        let leave = move |tx: &Tx| {
            let Some((access, _)) = front_door::pass(tx, &system, &hash)? else { return Ok(()) };
            let who = Signed::by_credential(tx, &system, &access.credential_hash)?;
            front_door::drop_pass(tx, &system, &hash)?;
            if let Some(session) = &access.session_hash {
                end(tx, &system, session, request.now)?;
            }
            who.map_or(Ok(()), |who| who.record(tx, &system, &request, audit_id, OK))
        };
        db(self).write_locked(None, locks, leave).await
    }
}

/// Ends every session of a subject at the console.
pub(crate) fn end_all(app: &App, tx: &Tx, subject_id: SubjectId) -> Result<()> {
    let system = system(app);
    device_sign_ins::forget_of(tx, &system, UserId::from_raw(subject_id.id()))?;
    Ok(sessions::delete_of_subject(tx, &system, subject_id)?)
}

/// Ends a session; returns whose it was, if that is still known.
pub(crate) fn end(tx: &Tx, system: &Doorkeeper, hash: &str, now: Timestamp) -> Result<Option<Signed>> {
    let Some(session) = sessions::by_hash(tx, system, hash)? else { return Ok(None) };
    let who = Signed::by_credential(tx, system, &session.credential_hash)?;
    sessions::delete(tx, system, hash)?;
    device_sign_ins::forget_of(tx, system, UserId::from_raw(session.subject_id.id()))?;
    user_sessions::delete(tx, system, session.id)?;
    if session.is_own {
        credentials::end(tx, system, session.token_id)?;
    }
    sessions_change(tx, system, session.subject_id, now)?;
    Ok(who)
}

/// A signed-in user, and the organization that records it.
pub(crate) struct Signed {
    profile: SubjectProfile,
    home: Option<OrganizationId>,
}

impl Signed {
    fn by_credential(conn: &Conn, system: &Doorkeeper, hash: &str) -> Result<Option<Self>> {
        let Some(credential) = credentials::by_hash(conn, system, hash)? else { return Ok(None) };
        let Some(profile) = subjects::get(conn, system, credential.subject_id)? else { return Ok(None) };
        let home = match (credential.organization_id, credential.user_id()) {
            (Some(organization_id), _) => Some(organization_id),
            (None, Some(user_id)) => home_of(conn, system, user_id)?,
            (None, None) => None,
        };
        Ok(Some(Self { profile, home }))
    }

    fn record(
        &self,
        tx: &Tx,
        system: &Doorkeeper,
        request: &Request,
        audit_id: AuditLogId,
        status: u16,
    ) -> Result<()> {
        audit::write(tx, system, request, self.home, &self.profile, audit_id, status)
    }
}

/// The organization that a user's own audit records go to.
pub(crate) fn home_of(conn: &Conn, system: &Doorkeeper, user_id: UserId) -> Result<Option<OrganizationId>> {
    let memberships = users::memberships(conn, system, user_id)?;
    let active = memberships.into_iter().find(|(_, status)| *status == UserStatus::Active);
    Ok(active.map(|(id, _)| id))
}
