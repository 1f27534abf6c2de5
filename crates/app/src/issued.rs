//! Signed tokens. They are useless until they are stored, and storing them takes proof of the right to.

use podium_api::enums::SessionKind;
use podium_api::{CredentialId, SubjectId, Timestamp, UserId, hex};
use podium_db::Tx;
use podium_store::credentials::{self, NewSession, NewToken};
use podium_store::user_sessions::SessionOrigin;
use podium_store::{Doorkeeper, Scope};

use crate::App;
use crate::error::Result;
use crate::secrets::sha256_hex;
use crate::signing::Claims;

impl App {
    /// Signs a session of a user, which nobody is known to have asked for; it is useless until it is stored.
    pub fn issue_session(
        &self,
        user_id: UserId,
        expires_at: Option<Timestamp>,
        now: Timestamp,
    ) -> Issued<NewSession> {
        let kind = if expires_at.is_some() { SessionKind::Terminal } else { SessionKind::Token };
        let (client_name, address, user_agent) = Default::default();
        let origin = SessionOrigin { kind, client_name, address, user_agent };
        let session = NewSession { id: self.world.id(), user_id, origin, created_at: now, expires_at };
        let ids = (session.id.into(), user_id.into());
        self.issue(session, ids, expires_at, None, now)
    }

    /// Signs a token of an organization; it is useless until it is stored. `places` are the ids in its claims.
    pub fn issue_token(&self, token: NewToken, places: Vec<String>, now: Timestamp) -> Issued<NewToken> {
        let ids = (token.id.credential_id(), token.id.subject_id());
        self.issue(token, ids, token.expires_at, Some(places), now)
    }

    fn issue<T>(
        &self,
        token: T,
        (token_id, subject_id): (CredentialId, SubjectId),
        expires_at: Option<Timestamp>,
        permissions: Option<Vec<String>>,
        now: Timestamp,
    ) -> Issued<T> {
        let seconds = |at: Timestamp| at.millis().div_euclid(1000);
        let keys = self.keys.load();
        let mut nonce = [0; 8];
        self.world.fill(&mut nonce);
        let claims = Claims {
            iss: self.config.public_url.clone(),
            aud: self.config.public_url.clone(),
            sub: subject_id,
            jti: token_id,
            iat: seconds(now),
            exp: expires_at.map(seconds),
            api_token_id: permissions.is_some().then_some(token_id),
            permissions,
            nonce: hex(&nonce),
        };
        let value = keys.sign(&claims);
        Issued { value, token, signing_key_id: keys.current().to_owned() }
    }
}

/// A signed token that is not stored yet: a session, or a token of an organization. The scope of a caller is not enough
/// to store a session, which acts for its user in every organization:
///
/// ```compile_fail,E0308
/// # use podium_app::issued::Issued;
/// # use podium_store::{Scope, credentials::NewSession};
/// fn enter(session: &Issued<NewSession>, tx: &podium_db::Tx, scope: &Scope) {
///     let _ = session.store(tx, scope);
/// }
/// ```
#[derive(Clone)]
pub struct Issued<T> {
    pub value: String,
    /// The session or token, valid once it is stored.
    pub token: T,
    signing_key_id: String,
}

impl Issued<NewSession> {
    /// The same session, as one that began like this.
    pub(crate) fn begun(mut self, origin: SessionOrigin) -> Self {
        self.token.origin = origin;
        self
    }

    /// Stores the hash of the session: from the commit on it works.
    pub fn store(&self, tx: &Tx, system: &Doorkeeper) -> Result<()> {
        Ok(credentials::insert_session(tx, system, &self.hash(), &self.signing_key_id, &self.token)?)
    }
}

impl Issued<NewToken> {
    /// Stores the hash of the token: from the commit on it works in the organization of the scope.
    pub fn store(&self, tx: &Tx, scope: &Scope) -> Result<()> {
        Ok(credentials::insert_token(tx, scope, &self.hash(), &self.signing_key_id, &self.token)?)
    }
}

impl<T> Issued<T> {
    fn hash(&self) -> String {
        sha256_hex(self.value.as_bytes())
    }

    /// The last six characters.
    pub fn short(&self) -> String {
        self.value[self.value.len() - 6..].to_owned()
    }
}
