//! The context of a call: who calls, what was proven, and the only ways to the database.
//!
//! `Cx<Scope>` exists only where the policy has admitted the caller, so a function that takes one cannot be reached
//! without a permission. Writes go through [`Cx::mutate`] and [`Cx::change_rights`], which put the effect, its audit
//! record and the kept answer of an `Idempotency-Key` into one transaction, and judge the caller again inside it: what
//! was proven when the head of a request came may be untrue by the time its body has come. No rights of the caller
//! change between that judgement and the commit (decision 26).

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use podium_api::subjects::SubjectProfile;
use podium_api::{
    Description, Endpoint, Id, One, OrganizationId, Reply, Shown, SubjectId, Timestamp, TypedId,
};
use podium_db::{Change, Conn, Guard, Tx};
use podium_domain::{Grants, Refusal, Target};
use podium_store::{Scope, changes};
use serde::de::DeserializeOwned;

use crate::authority::{Authority, Watch};
use crate::error::{Error, Result};
use crate::idempotency::Idempotency;
use crate::rendered::Keepable;
use crate::{App, audit};

/// What the request says of itself, beyond its input.
pub struct Request {
    /// The endpoint.
    pub endpoint: &'static Description,
    /// The request id.
    pub id: String,
    /// The path as it was sent.
    pub path: String,
    /// The client's address.
    pub address: IpAddr,
    /// The client's program.
    pub user_agent: String,
    /// The `If-Match` header.
    pub if_match: Option<String>,
    /// The `Idempotency-Key` header and a hash of the request.
    pub idempotency: Option<Idempotency>,
    /// The `Last-Event-ID` header.
    pub last_event_id: Option<String>,
    /// What the audit log may keep of the body.
    pub audited_body: Option<serde_json::Value>,
    /// When it came.
    pub now: Timestamp,
}

/// The context of a call; `P` is what was proven.
#[derive(Clone)]
pub struct Cx<P> {
    inner: Arc<Inner>,
    proof: P,
    /// Whether this is inside a transaction that nobody else's runs beside, as far as rights are concerned.
    alone: bool,
}

struct Inner {
    app: App,
    authority: Arc<Authority>,
    request: Request,
    reads_again: bool,
    confirmed: AtomicBool,
}

/// What an endpoint is called with: path, query and body.
pub struct Call<E: Endpoint> {
    /// The ids of the path.
    pub path: E::Path,
    /// The query.
    pub query: E::Query,
    /// The body.
    pub body: E::Body,
}

impl Cx<()> {
    /// The context of a caller that has a valid token; where rights have just changed, it is read again.
    pub fn new(app: App, authority: Arc<Authority>, request: Request, reads_again: bool) -> Self {
        let confirmed = AtomicBool::new(false);
        Self {
            inner: Arc::new(Inner { app, authority, request, reads_again, confirmed }),
            proof: (),
            alone: false,
        }
    }

    /// The same call once the policy has admitted it.
    pub fn proven(self, scope: Scope) -> Cx<Scope> {
        Cx { inner: self.inner, proof: scope, alone: self.alone }
    }

    /// Makes sure that what was remembered of the caller is still true, if the database was not asked yet.
    pub async fn confirm(&self) -> Result<()> {
        if self.inner.confirmed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.read(Self::confirm_for_certain).await
    }

    /// Records that the call was refused.
    pub async fn record_refusal(&self, status: u16) -> Result<()> {
        if !self.app().refusals.allow(self.subject_id()) {
            return Ok(());
        }
        let cx = self.clone();
        let id = self.new_id();
        self.app().db.write(None, move |tx| audit::record(tx, &cx, id, status)).await
    }
}

impl Cx<Scope> {
    /// Proof that the caller was admitted, and to what.
    pub fn scope(&self) -> &Scope {
        &self.proof
    }

    /// The organization that is called.
    pub fn organization_id(&self) -> OrganizationId {
        self.proof.organization_id()
    }

    /// What the caller may do in the organization.
    pub fn grants(&self) -> &Grants {
        self.inner.authority.member.as_ref().expect("a proven caller is a member").grants()
    }

    /// What is kept of a resource of the organization, if reading it now would give the same. Counts as a read: where
    /// anything is kept without reading, this process is told of changes of rights as well.
    pub(crate) fn kept<T: Keepable>(&self, id: Id) -> Option<One<Shown<T>>> {
        if self.inner.reads_again {
            return None;
        }
        let kept = T::rendered(self.app()).now(&self.app().db, self.scope(), id)?;
        self.inner.confirmed.store(true, Ordering::Relaxed);
        Some(kept)
    }

    /// Requires a right on a target that the path does not name.
    pub fn require(&self, permission: podium_domain::Permission, target: Target) -> Result<()> {
        Ok(podium_domain::require(self.grants(), permission, target)?)
    }

    /// Notes in the change log that a resource of the organization changed.
    pub fn changed(&self, tx: &Tx, kind: &'static str, id: Id, version: i64) -> Result<()> {
        let workspace_id = (kind == podium_store::workspaces::KIND).then(|| id.to_string());
        let organization_id = Some(self.organization_id().to_string());
        let change =
            Change { kind, id: id.to_string(), organization_id, workspace_id, deployment_id: None, version };
        Ok(changes::append(tx, self.scope(), self.now(), change)?)
    }

    /// Says that rights in the organization change. Goes first in a transaction that changes any, which is one of
    /// [`Cx::change_rights`].
    pub fn rights_change(&self, tx: &Tx) -> Result<()> {
        if !self.alone {
            return Err(Error::Internal(format!(
                "{} changes rights unannounced",
                self.request().endpoint.id
            )));
        }
        crate::authority::rights_change(tx, self.scope(), self.now())
    }
}

impl<P: Clone + Send + Sync + 'static> Cx<P> {
    /// The application.
    pub fn app(&self) -> &App {
        &self.inner.app
    }

    /// Who calls, as others see it.
    pub fn profile(&self) -> SubjectProfile {
        self.inner.authority.profile.clone()
    }

    /// Who calls.
    pub fn subject_id(&self) -> SubjectId {
        self.inner.authority.credential.subject_id
    }

    /// Who calls, and with what.
    pub fn authority(&self) -> &Authority {
        &self.inner.authority
    }

    /// Watches over the caller while it is served.
    pub fn watch(&self) -> Watch {
        self.inner.app.watch(&self.inner.authority)
    }

    /// What the request says of itself.
    pub fn request(&self) -> &Request {
        &self.inner.request
    }

    /// When the request came: the time of everything that it causes.
    pub fn now(&self) -> Timestamp {
        self.inner.request.now
    }

    /// A new id.
    pub fn new_id<I: TypedId>(&self) -> I {
        self.inner.app.world.id()
    }

    /// Reads a few rows by key.
    pub async fn read<T: Send + 'static>(
        &self,
        unit: impl FnMut(&Self, &Conn) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer = self.inner.app.db.read(self.guard(), self.clone().confirming(unit)).await;
        self.note_confirmed(answer)
    }

    /// Reads a short page of a list by an index, in one snapshot.
    pub async fn page<T: Send + 'static>(
        &self,
        unit: impl FnMut(&Self, &Conn) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer = self.inner.app.db.page(self.guard(), self.clone().confirming(unit)).await;
        self.note_confirmed(answer)
    }

    /// Reads a list, in one snapshot.
    pub async fn scan<T: Send + 'static>(
        &self,
        unit: impl FnMut(&Self, &Conn) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer = self.inner.app.db.scan(self.guard(), self.clone().confirming(unit)).await;
        self.note_confirmed(answer)
    }

    /// Runs the effect of a call: once under an `Idempotency-Key`, with its audit record, all or nothing.
    pub async fn mutate<R: Reply>(
        &self,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.write(false, |_, _, _| Ok(()), effect).await
    }

    /// The same where the effect asks for rights beyond those that the endpoint takes: `may` asks for them again
    /// before an answer is repeated.
    pub async fn mutate_where<R: Reply>(
        &self,
        mut may: impl FnMut(&Self, &Tx) -> Result<()> + Send + 'static,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.write(false, move |cx, tx, _| may(cx, tx), effect).await
    }

    /// Runs an effect that changes rights: while nobody else's does, and while nobody acts on rights that it may take
    /// away. Without an organization it is the caller's own sessions that change.
    pub async fn change_rights<R: Reply>(
        &self,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.write(true, |_, _, _| Ok(()), effect).await
    }

    /// The same where the effect asks for further rights.
    pub async fn change_rights_where<R: Reply>(
        &self,
        mut may: impl FnMut(&Self, &Tx) -> Result<()> + Send + 'static,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.write(true, move |cx, tx, _| may(cx, tx), effect).await
    }

    /// The same where those rights depend on the answer that is repeated.
    pub async fn change_rights_told<R: Reply<Body: DeserializeOwned>>(
        &self,
        mut may: impl FnMut(&Self, &Tx, R::Body) -> Result<()> + Send + 'static,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let judged = move |cx: &Self, tx: &Tx, kept: &[u8]| {
            may(cx, tx, serde_json::from_slice(kept).map_err(|error| Error::Internal(error.to_string()))?)
        };
        self.write(true, judged, effect).await
    }

    async fn write<R: Reply>(
        &self,
        alone: bool,
        mut may: impl FnMut(&Self, &Tx, &[u8]) -> Result<()> + Send + 'static,
        mut effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let Inner { app, authority, .. } = &*self.inner;
        authority.has_not_ended(app.world.now())?;
        let running = app.running.enter(self)?;
        let entered = Arc::clone(&running);
        let cx = Self { alone, ..self.clone() };
        let audit_id = self.new_id();
        let unit = move |tx: &Tx| {
            cx.confirm_for_certain(tx)?;
            running.replay(&cx, tx, |kept| may(&cx, tx, kept))?;
            running.claim(&cx, tx)?;
            let reply = effect(&cx, tx)?;
            audit::record(tx, &cx, audit_id, R::KIND.status())?;
            running.keep(&cx, tx, reply)
        };
        let answer = app.db.write_holding(self.guard(), authority.holds(alone), unit).await;
        entered.leave();
        self.note_confirmed(answer)
    }

    /// Compares the caller's `If-Match` with the version of what it is about to change.
    pub fn expect_version(&self, version: i64) -> Result<()> {
        let Some(header) = &self.inner.request.if_match else { return Ok(()) };
        let fits = |tag: &str| {
            let tag = tag.trim();
            let quoted = tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"');
            tag == "*" || quoted.split('-').next().is_some_and(|expected| expected == version.to_string())
        };
        if header.split(',').any(fits) {
            return Ok(());
        }
        let message =
            "The resource has changed since the version in If-Match: read it again, then repeat your change.";
        Err(Refusal::Precondition(message.into()).into())
    }

    /// What must hold when a unit begins, unless the unit confirms the caller itself.
    fn guard(&self) -> Option<Arc<Guard>> {
        (!self.inner.reads_again).then(|| self.inner.authority.guard())
    }

    /// The unit, run for a caller that is still what it was.
    fn confirming<T>(
        self,
        mut unit: impl FnMut(&Self, &Conn) -> Result<T> + Send + 'static,
    ) -> impl FnMut(&Conn) -> Result<T> + Send + 'static {
        move |conn| {
            self.confirm_in(conn)?;
            unit(&self, conn)
        }
    }

    fn confirm_in(&self, conn: &Conn) -> Result<()> {
        if self.inner.reads_again { self.inner.authority.confirm(conn) } else { Ok(()) }
    }

    /// The same where being told of changes is not enough: what was remembered is compared with what is there.
    fn confirm_for_certain(&self, conn: &Conn) -> Result<()> {
        let Inner { authority, reads_again, .. } = &*self.inner;
        if *reads_again || !conn.holds(&authority.guard())? { authority.confirm(conn) } else { Ok(()) }
    }

    fn note_confirmed<T>(&self, answer: Result<T>) -> Result<T> {
        if !matches!(answer, Err(Error::Db(_))) {
            self.inner.confirmed.store(true, Ordering::Relaxed);
        }
        answer
    }
}
