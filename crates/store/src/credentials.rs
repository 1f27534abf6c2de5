//! Credentials: the hash of every valid token's value.

use podium_api::{
    AgentTokenId, CredentialId, DeploymentId, OrganizationId, SessionId, SubjectId, Timestamp, TokenId,
    UserId, WorkspaceId,
};
use podium_db::{Conn, Guard, Result, Tx, params, statements};

use crate::record::record;
use crate::user_sessions::{self, SessionOrigin, UserSessionRow};
use crate::{Doorkeeper, Housekeeper, Scope};

record! {
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Credential as columns! {
        pub kind: CredentialKind = word "kind",
        /// Its id: the `jti` of the token.
        pub token_id: CredentialId = id "token_id",
        /// Whose it is: a user, or the API token itself.
        pub subject_id: SubjectId = id "subject_id",
        /// The organization of an API token.
        pub organization_id: Option<OrganizationId> = id_opt "organization_id",
        pub expires_at: Option<Timestamp> = time_opt "expires_at",
    }
}

statements! {
    BY_HASH = concat!("SELECT ", columns!(), " FROM credentials WHERE hash = $1");
    INSERT = "INSERT INTO credentials (hash, kind, token_id, subject_id, organization_id, signing_key_id, expires_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7)";
    DELETE_TOKEN = "DELETE FROM credentials WHERE token_id = $1 AND organization_id = $2";
    END = "DELETE FROM credentials WHERE token_id = $1";
    DELETE_OTHERS = "DELETE FROM credentials WHERE subject_id = $1 AND kind = 'SESSION' AND token_id <> $2 \
        AND expires_at IS NOT NULL";
    FORGET_SESSION = "DELETE FROM user_sessions WHERE token_id = $1";
    FORGET_OTHERS = "DELETE FROM user_sessions WHERE user_id = $1 AND token_id <> $2 AND expires_at IS NOT NULL";
    PRUNE = "DELETE FROM credentials WHERE hash IN (SELECT hash FROM credentials WHERE expires_at < $1 LIMIT $2)";
    STILL_VALID = "SELECT o.authorization_epoch FROM organizations o JOIN credentials c ON c.hash = $1 WHERE o.id = $2";
    STILL_VALID_AT = "SELECT o.authorization_epoch FROM organizations o JOIN credentials c ON c.hash = $1 \
        JOIN deployments d ON d.id = $3 AND d.organization_id = o.id AND d.workspace_id = $4 WHERE o.id = $2";
    STILL_KNOWN = "SELECT COUNT(*) FROM credentials WHERE hash = $1";
}

/// What kind of token a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CredentialKind {
    Session,
    ApiToken,
    AgentToken,
}

impl CredentialKind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Session => "SESSION",
            Self::ApiToken => "API_TOKEN",
            Self::AgentToken => "AGENT_TOKEN",
        }
    }
}

impl std::str::FromStr for CredentialKind {
    type Err = ();

    fn from_str(text: &str) -> std::result::Result<Self, ()> {
        match text {
            "SESSION" => Ok(Self::Session),
            "API_TOKEN" => Ok(Self::ApiToken),
            "AGENT_TOKEN" => Ok(Self::AgentToken),
            _ => Err(()),
        }
    }
}

impl Credential {
    pub fn user_id(&self) -> Option<UserId> {
        (self.kind == CredentialKind::Session).then(|| UserId::from_raw(self.subject_id.id()))
    }

    pub fn api_token_id(&self) -> Option<TokenId> {
        (self.kind == CredentialKind::ApiToken).then(|| TokenId::from_raw(self.token_id.id()))
    }

    pub fn agent_token_id(&self) -> Option<AgentTokenId> {
        (self.kind == CredentialKind::AgentToken).then(|| AgentTokenId::from_raw(self.token_id.id()))
    }
}

/// A new session: it acts for its user in every organization.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// Its id: the `jti` of the token.
    pub id: SessionId,
    pub user_id: UserId,
    pub origin: SessionOrigin,
    pub created_at: Timestamp,
    pub expires_at: Option<Timestamp>,
}

/// A new token of an organization: it acts for itself, in that organization only.
#[derive(Clone, Copy, Debug)]
pub struct NewToken {
    pub id: TokenOf,
    pub expires_at: Option<Timestamp>,
}

/// A token that belongs to an organization.
#[derive(Clone, Copy, Debug)]
pub enum TokenOf {
    Api(TokenId),
    Agent(AgentTokenId),
}

impl TokenOf {
    /// Its id: the `jti` of the token.
    pub fn credential_id(self) -> CredentialId {
        match self {
            Self::Api(id) => id.into(),
            Self::Agent(id) => id.into(),
        }
    }

    pub fn subject_id(self) -> SubjectId {
        match self {
            Self::Api(id) => id.into(),
            Self::Agent(id) => id.into(),
        }
    }
}

/// Finds a token by the hash of its value.
pub fn by_hash(conn: &Conn, _: &Doorkeeper, hash: &str) -> Result<Option<Credential>> {
    conn.query_opt(&BY_HASH, params![hash], Credential::read)
}

/// Adds the value of an API token or an agent token of the organization.
pub fn insert_token(
    tx: &Tx,
    scope: &Scope,
    hash: &str,
    signing_key_id: &str,
    token: &NewToken,
) -> Result<()> {
    let kind = match token.id {
        TokenOf::Api(_) => CredentialKind::ApiToken,
        TokenOf::Agent(_) => CredentialKind::AgentToken,
    };
    let credential = Credential {
        kind,
        token_id: token.id.credential_id(),
        subject_id: token.id.subject_id(),
        organization_id: Some(scope.organization_id()),
        expires_at: token.expires_at,
    };
    insert(tx, hash, signing_key_id, &credential)
}

/// Adds a session, and its row in the list of its user. It works in every organization of its user, so the scope of a caller is not enough:
///
/// ```compile_fail,E0308
/// # use podium_store::{Scope, credentials};
/// fn enter(tx: &podium_db::Tx, scope: &Scope, session: &credentials::NewSession) {
///     let _ = credentials::insert_session(tx, scope, "hash", "key", session);
/// }
/// ```
pub fn insert_session(
    tx: &Tx,
    system: &Doorkeeper,
    hash: &str,
    signing_key_id: &str,
    session: &NewSession,
) -> Result<()> {
    let credential = Credential {
        kind: CredentialKind::Session,
        token_id: session.id.into(),
        subject_id: session.user_id.into(),
        organization_id: None,
        expires_at: session.expires_at,
    };
    insert(tx, hash, signing_key_id, &credential)?;
    let listed = UserSessionRow {
        id: session.id,
        token_id: session.id.into(),
        origin: session.origin.clone(),
        created_at: session.created_at,
        last_used_at: session.created_at,
        expires_at: session.expires_at,
    };
    user_sessions::insert(tx, system, session.user_id, &listed)
}

fn insert(tx: &Tx, hash: &str, signing_key_id: &str, credential: &Credential) -> Result<()> {
    let values = params![
        hash,
        credential.kind.as_str(),
        credential.token_id.as_str(),
        credential.subject_id.as_str(),
        credential.organization_id.as_ref().map(OrganizationId::as_str),
        signing_key_id,
        credential.expires_at.map(Timestamp::millis),
    ];
    tx.run(&INSERT, values)
}

/// Deletes the value of an API token or an agent token, which revokes it. Returns whether it was valid.
pub fn delete(tx: &Tx, scope: &Scope, token_id: CredentialId) -> Result<bool> {
    Ok(tx.execute(&DELETE_TOKEN, params![token_id.as_str(), scope.organization()])? > 0)
}

/// Deletes the value of any token: its holder has signed out. Returns whether it was valid.
pub fn end(tx: &Tx, _: &Doorkeeper, token_id: CredentialId) -> Result<bool> {
    tx.execute(&FORGET_SESSION, params![token_id.as_str()])?;
    Ok(tx.execute(&END, params![token_id.as_str()])? > 0)
}

/// Removes a user's other sessions; a token that never expires, such as the one of the first start, stays.
pub fn delete_other_sessions(
    tx: &Tx,
    _: &Doorkeeper,
    user_id: UserId,
    kept_token_id: CredentialId,
) -> Result<()> {
    for statement in [&FORGET_OTHERS, &DELETE_OTHERS] {
        tx.execute(statement, params![user_id.as_str(), kept_token_id.as_str()])?;
    }
    Ok(())
}

/// Drops some tokens that expired before a time; returns how many.
pub fn prune(tx: &Tx, _: &Housekeeper, before: Timestamp, limit: u32) -> Result<u64> {
    tx.execute(&PRUNE, params![before.millis(), limit])
}

/// Holds while the token is alive and rights in the organization are as they were at `epoch`.
pub fn guard(_: &Doorkeeper, hash: &str, organization_id: OrganizationId, epoch: i64) -> Guard {
    Guard::new(&STILL_VALID, vec![hash.into(), organization_id.as_str().into()], epoch)
}

/// The same, while a deployment is in this workspace, too.
pub fn guard_at(guard: &Guard, (id, workspace_id): (DeploymentId, WorkspaceId)) -> Option<Guard> {
    guard.narrowed(&STILL_VALID, &STILL_VALID_AT, [id.as_str().into(), workspace_id.as_str().into()])
}

/// Holds while the token is alive.
pub fn guard_alive(_: &Doorkeeper, hash: &str) -> Guard {
    Guard::new(&STILL_KNOWN, vec![hash.into()], 1)
}
