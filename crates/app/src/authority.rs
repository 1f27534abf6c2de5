//! The caller and its rights: loaded once, cached, and never used after they have changed.
//!
//! On SQLite every change of rights is made by this process, which advances a generation before the change is
//! acknowledged; entries loaded under another generation are not used. On PostgreSQL other replicas change rights too,
//! so a cached entry carries a [`Guard`] that the database checks in the request's own round trip. The guard fails
//! when anybody's rights in the organization change; then the caller is read again in the request's own transaction,
//! and only a change of its own rights makes the request start over.

mod renewal;
mod watch;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use podium_api::enums::UserStatus;
use podium_api::subjects::SubjectProfile;
use podium_api::{DeploymentId, Id, OrganizationId, SessionId, SubjectId, Timestamp, WorkspaceId, hex};
use podium_db::{AdvisoryLock, Change, Conn, Guard, Tx, joined};
use podium_domain::allowed_ip_address_ranges::Allowed;
use podium_domain::{Grants, Refusal, Target};
use podium_store::credentials::{self, Credential, CredentialKind};
use podium_store::{
    Doorkeeper, Membership, Scope, changes, deployments, grants, organizations, subjects, users,
};
use quick_cache::sync::Cache;
use tokio::sync::watch::Sender;

pub use self::watch::Watch;
use crate::error::{Error, Result, Unauthenticated};
use crate::request::OpenSession;
use crate::signing::TokenError;
use crate::{App, allowed_addresses, secrets};

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

/// The kind of a change of rights in the change log.
pub const AUTHORITY: &str = "authority";
const REMEMBERED: usize = 50_000;

/// The caller, and its rights in the organization of the request.
pub struct Authority {
    /// The token that was presented.
    pub credential: Credential,
    /// The user or API token, as others see it.
    pub profile: SubjectProfile,
    /// The organization that the caller's own audit records go to.
    pub home: Option<OrganizationId>,
    /// The caller's membership of the organization of the request; `None` if it is not a member.
    pub member: Option<Member>,
    key: Key,
    system: Doorkeeper,
    guard: Arc<Guard>,
    generation: u64,
    used_minute: AtomicI64,
}

#[derive(PartialEq)]
pub struct Member {
    /// Proof of its membership and of its rights there.
    pub membership: Membership,
    allowed: Allowed,
}

impl Authority {
    /// How many changes of rights were known before it was read: what was read with other rights is not for it.
    pub const fn generation(&self) -> u64 {
        self.generation
    }

    /// The guard: what must still hold when the database is queried.
    pub fn guard(&self) -> Arc<Guard> {
        Arc::clone(&self.guard)
    }

    /// The same where the caller was judged by the workspace of a deployment, which may be remembered.
    pub(crate) fn guard_at(&self, target: Target) -> Arc<Guard> {
        match target {
            Target::Deployment { id, workspace_id } => {
                credentials::guard_at(&self.guard, (id, workspace_id)).map_or_else(|| self.guard(), Arc::new)
            }
            Target::Organization | Target::Workspace(_) => self.guard(),
        }
    }

    /// Reads the caller again; fails like the guard if anything about it has changed.
    pub fn confirm(&self, conn: &Conn) -> Result<()> {
        let now = read_authority(conn, self.system, self.key, self.generation)?;
        let is_same = now.is_some_and(|now| {
            now.credential == self.credential
                && now.profile == self.profile
                && now.home == self.home
                && now.member == self.member
        });
        if is_same { Ok(()) } else { Err(Error::STALE) }
    }

    /// Refuses a token, or the browser's session that it was used in, that has expired in the meantime.
    pub(crate) fn has_not_ended(&self, session: Option<OpenSession>, now: Timestamp) -> Result<()> {
        if self.end(session).is_some_and(|end| end <= now) {
            return Err(Error::Unauthenticated(Unauthenticated::Expired));
        }
        Ok(())
    }

    /// When what is done with this token in a browser's session has to end.
    pub(crate) fn end(&self, session: Option<OpenSession>) -> Option<Timestamp> {
        [self.credential.expires_at, session.map(|session| session.expires_at)].into_iter().flatten().min()
    }

    /// The locks of this caller's transactions, so that its rights do not change before the commit; `exclusive`
    /// if the transaction itself changes rights.
    pub(crate) fn locks(&self, exclusive: bool) -> Vec<AdvisoryLock> {
        let organization =
            self.member.as_ref().map(|member| rights_lock(member.organization_id().id(), exclusive));
        let is_user = self.credential.kind == CredentialKind::Session;
        let exclusive = exclusive && organization.is_none();
        let sessions = is_user.then(|| rights_lock(self.credential.subject_id.id(), exclusive));
        organization.into_iter().chain(sessions).collect()
    }

    pub(crate) fn token_hash(&self) -> [u8; 32] {
        self.key.0
    }

    pub fn is_api_token(&self) -> bool {
        self.credential.kind == CredentialKind::ApiToken
    }
}

impl Member {
    pub const fn organization_id(&self) -> OrganizationId {
        self.membership.organization_id()
    }

    pub const fn grants(&self) -> &Grants {
        self.membership.grants()
    }

    /// Refuses callers from outside the organization's allowed ranges.
    pub fn admit_address(&self, address: IpAddr) -> Result<()> {
        if self.allowed.admits(address) {
            return Ok(());
        }
        let message =
            format!("Requests from {address} are not allowed: ask an owner to allow your address range.");
        Err(Refusal::Forbidden(message).into())
    }
}

/// The hash of a token, and the organization of the request.
type Key = ([u8; 32], Option<OrganizationId>);

pub struct Authorities {
    known: Cache<Key, Arc<Authority>>,
    /// The workspaces of deployments, where guards are checked: who is judged by one has it checked with the rest.
    places: Cache<DeploymentId, (OrganizationId, WorkspaceId)>,
    generation: AtomicU64,
    /// Notified after the generation has advanced.
    notifier: Sender<()>,
}

impl Default for Authorities {
    fn default() -> Self {
        let (known, places) = (Cache::new(REMEMBERED), Cache::new(REMEMBERED));
        Self { known, places, generation: AtomicU64::new(0), notifier: Sender::new(()) }
    }
}

impl Authorities {
    /// Drops entries that committed changes made stale. Runs before the changes are acknowledged.
    pub fn committed(&self, changes: &[Change]) {
        if changes.iter().any(|change| change.kind == AUTHORITY) {
            self.forget();
        }
    }

    /// Drops all entries.
    pub fn forget(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
        self.notifier.send_replace(());
    }
}

impl App {
    /// Authenticates a token, and loads its rights in an organization.
    pub async fn authority(
        &self,
        token: &str,
        organization_id: Option<OrganizationId>,
        now: Timestamp,
    ) -> Result<Arc<Authority>> {
        self.authority_of((secrets::sha256(token.as_bytes()), organization_id), Some(token), now).await
    }

    /// The same for a session or pass, where only the hash of the token is known.
    pub(crate) async fn authority_by_hash(
        &self,
        hash: [u8; 32],
        organization_id: Option<OrganizationId>,
        now: Timestamp,
    ) -> Result<Arc<Authority>> {
        self.authority_of((hash, organization_id), None, now).await
    }

    async fn authority_of(&self, key: Key, token: Option<&str>, now: Timestamp) -> Result<Arc<Authority>> {
        let organization_id = key.1;
        let authorities = &self.authorities;
        let generation = self.rights_generation();
        let known = authorities.known.get(&key).filter(|known| known.generation == generation);
        let authority = match known {
            Some(known) => known,
            None => {
                let loaded = Arc::new(self.load(token, key, generation, now).await?);
                if loaded.member.is_some() || organization_id.is_none() {
                    authorities.known.insert(key, Arc::clone(&loaded));
                }
                loaded
            }
        };
        authority.has_not_ended(None, now)?;
        self.note_use(&authority, token.is_some(), now);
        crate::caller::note(authority.credential.subject_id);
        Ok(authority)
    }

    /// The workspace in which a deployment was last found, where somebody makes sure that it still is there: the guard of
    /// a context that was proven by it.
    pub fn likely_workspace_of(&self, authority: &Authority, id: DeploymentId) -> Option<WorkspaceId> {
        let member = authority.member.as_ref().filter(|_| !joined::is_joined())?;
        let (organization_id, workspace_id) = self.authorities.places.get(&id)?;
        (organization_id == member.organization_id()).then_some(workspace_id)
    }

    /// The workspace of a deployment in the organization of the request.
    pub async fn workspace_of(
        &self,
        authority: &Authority,
        guarded: bool,
        id: DeploymentId,
    ) -> Result<Option<WorkspaceId>> {
        let Some(member) = &authority.member else { return Ok(None) };
        let scope = member.membership.scope();
        if let Some(workspace_id) = self.rendered_deployments.workspace_of(db(self), &scope, id.id()) {
            return Ok(Some(workspace_id));
        }
        let guard = guarded.then(|| authority.guard());
        let found: Result<_> =
            db(self).read(guard, move |conn| Ok(deployments::workspace_of(conn, &scope, id)?)).await;
        let workspace_id = found?;
        if let Some(workspace_id) = workspace_id
            && db(self).is_shared()
            && !joined::is_joined()
        {
            self.authorities.places.insert(id, (scope.organization_id(), workspace_id));
        }
        Ok(workspace_id)
    }

    /// Reads a short page as a caller whose rights are compared in the snapshot that is read: by its guard, or by reading
    /// them again.
    pub(crate) async fn page_as<T: Send + 'static>(
        &self,
        authority: &Arc<Authority>,
        rechecks: bool,
        mut unit: impl FnMut(&Conn) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let (guard, authority) = ((!rechecks).then(|| authority.guard()), Arc::clone(authority));
        let page = db(self).page(guard, move |conn| {
            if rechecks {
                authority.confirm(conn)?;
            }
            unit(conn)
        });
        page.await
    }

    /// The generation of what the database holds, where responses may be remembered by it.
    pub fn generation(&self) -> Option<u64> {
        db(self).generation()
    }

    /// Drops a caller whose guard failed.
    pub fn forget_caller(&self, token: &str, organization_id: Option<OrganizationId>) {
        self.forget_caller_by_hash(secrets::sha256(token.as_bytes()), organization_id);
    }

    /// The same, by the hash of its token.
    pub(crate) fn forget_caller_by_hash(&self, hash: [u8; 32], organization_id: Option<OrganizationId>) {
        self.authorities.known.remove(&(hash, organization_id));
    }

    async fn load(
        &self,
        token: Option<&str>,
        key: Key,
        generation: u64,
        now: Timestamp,
    ) -> Result<Authority> {
        if let Some(token) = token {
            self.verify(token, now).await?;
        }
        let system = system(self);
        let authority =
            db(self).read(None, move |conn| read_authority(conn, system, key, generation)).await?;
        authority.ok_or(Error::Unauthenticated(Unauthenticated::Revoked))
    }

    /// Refuses a token that was not signed here, or has expired. The database knows whether it was revoked.
    pub(crate) async fn verify(&self, token: &str, now: Timestamp) -> Result<()> {
        let unauthenticated = |why| Err(Error::Unauthenticated(why));
        let claims = match self.keys.load().verify(token) {
            Err(TokenError::UnknownKey) => {
                self.reload_keys_for_unknown().await?;
                self.keys.load().verify(token)
            }
            verified => verified,
        };
        let Ok(claims) = claims else { return unauthenticated(Unauthenticated::Malformed) };
        if claims.exp.is_some_and(|end| end <= now.millis().div_euclid(1000)) {
            return unauthenticated(Unauthenticated::Expired);
        }
        Ok(())
    }

    /// Records the minute in which an API token was used, or a session whose token was presented; written in a batch, once
    /// a minute. A browser's session is recorded where it is looked up.
    fn note_use(&self, authority: &Authority, is_presented: bool, now: Timestamp) {
        let Authority { credential, used_minute, .. } = authority;
        let session = credential.user_id().filter(|_| is_presented);
        let minute = minute(now);
        if credential.api_token_id().is_none() && session.is_none()
            || used_minute.swap(minute.millis(), Ordering::Relaxed) == minute.millis()
        {
            return;
        }
        match credential.api_token_id() {
            Some(id) => {
                let mut used = self.used_tokens.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                used.insert(id, minute);
            }
            None => self.note_session_use(SessionId::from_raw(credential.token_id.id()), now),
        }
    }

    /// Records the minute in which a session was used.
    pub(crate) fn note_session_use(&self, id: SessionId, now: Timestamp) {
        let mut used = self.used_sessions.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        used.insert(id, minute(now));
    }
}

fn minute(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.millis() - at.millis().rem_euclid(60_000))
}

fn read_authority(conn: &Conn, system: Doorkeeper, key: Key, generation: u64) -> Result<Option<Authority>> {
    let (hash, organization_id) = (hex(&key.0), key.1);
    // The epoch is read before everything it covers, so the guard detects changes in between.
    let epoch = match organization_id {
        Some(id) => organizations::epoch(conn, &system, id)?,
        None => None,
    };
    let Some(credential) = credentials::by_hash(conn, &system, &hash)? else { return Ok(None) };
    if credential.kind == CredentialKind::AgentToken {
        let message =
            "This is an agent token: it gives access to the agent endpoints of its deployment only.";
        return Err(Refusal::Forbidden(message.into()).into());
    }
    let Some(profile) = subjects::get(conn, &system, credential.subject_id)? else { return Ok(None) };
    let (home, belongs) = match (credential.organization_id, credential.user_id()) {
        (Some(own), _) => (Some(own), organization_id == Some(own)),
        (None, None) => (None, false),
        (None, Some(user_id)) => {
            // An invited user is not a member yet: it may not act there, and its actions are not recorded there.
            let mut memberships = users::memberships(conn, &system, user_id)?;
            memberships.retain(|(_, status)| *status == UserStatus::Active);
            let belongs = memberships.iter().any(|(id, _)| Some(*id) == organization_id);
            (memberships.first().map(|(id, _)| *id), belongs)
        }
    };
    let member = match organization_id.filter(|_| belongs).zip(epoch) {
        Some((organization_id, epoch)) => {
            read_member(conn, system, &credential, &hash, (organization_id, epoch))?
        }
        None => None,
    };
    let (member, guard) = member
        .map_or((None, credentials::guard_alive(&system, &hash)), |(member, guard)| (Some(member), guard));
    let (guard, used_minute) = (Arc::new(guard), AtomicI64::new(0));
    Ok(Some(Authority { credential, profile, home, member, key, system, guard, generation, used_minute }))
}

fn read_member(
    conn: &Conn,
    system: Doorkeeper,
    credential: &Credential,
    hash: &str,
    (organization_id, epoch): (OrganizationId, i64),
) -> Result<Option<(Member, Guard)>> {
    let membership = grants::membership(conn, &system, organization_id, credential)?;
    let Some(membership) = membership else { return Ok(None) };
    let allowed = allowed_addresses::of(conn, &membership.scope())?;
    let guard = credentials::guard(&system, hash, organization_id, epoch);
    Ok(Some((Member { membership, allowed }, guard)))
}

/// The lock on the rights in an organization, or on the sessions of a user. A transaction that takes both
/// takes the organization's first.
pub fn rights_lock(id: Id, exclusive: bool) -> AdvisoryLock {
    let hash = secrets::sha256(id.as_str().as_bytes());
    AdvisoryLock { key: i64::from_be_bytes(hash.first_chunk().copied().unwrap_or_default()), exclusive }
}

/// Announces that rights in an organization change. Must come first in a transaction that changes any.
pub fn rights_change(tx: &Tx, scope: &Scope, now: Timestamp) -> Result<()> {
    organizations::advance_epoch(tx, scope)?;
    Ok(changes::append(tx, scope, now, Change::new(AUTHORITY, &scope.organization_id(), 0))?)
}

/// Announces that the sessions of a user change; the transaction holds their exclusive lock ([`rights_lock`]).
pub fn sessions_change(tx: &Tx, system: &Doorkeeper, user_id: SubjectId, now: Timestamp) -> Result<()> {
    Ok(changes::append_any(tx, system, now, Change::new(AUTHORITY, &user_id, 0))?)
}
