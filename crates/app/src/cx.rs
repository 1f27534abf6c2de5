//! The context of a call: the caller, the proof of its rights, and the only access to the database.
//!
//! `Cx<Scope>` exists only if the policy has admitted the caller, so a function that takes one cannot be reached
//! without a permission. Writes go through [`Cx::mutate`] and [`Cx::change_rights`], which put the effect, its audit
//! record and the stored response of an `Idempotency-Key` into one transaction, and check the caller again inside it:
//! what was proven when the head of a request arrived may be outdated when its body has arrived. The caller's rights
//! do not change between that check and the commit (decision 26).

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use podium_api::page::{Page, Paginated, SortKeys};
use podium_api::subjects::SubjectProfile;
use podium_api::{
    Description, Endpoint, Id, Many, One, OperationId, OrganizationId, Reply, ReplyKind, Shown, SubjectId,
    Timestamp, TypedId,
};
use podium_db::{Change, Conn, Guard, Tx};
use podium_domain::{Grants, Refusal, Target};
use podium_store::{Listed, Paging, Scope, changes};
use serde::de::DeserializeOwned;

use crate::authority::{Authority, Watch};
use crate::error::{Error, Result};
use crate::idempotency::{Idempotency, Written};
use crate::rendered::Cacheable;
use crate::sessions::OpenSession;
use crate::{App, audit};

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

/// The request, apart from its input.
pub struct Request {
    pub endpoint: &'static Description,
    pub id: String,
    /// The path as it was sent.
    pub path: String,
    pub address: IpAddr,
    pub user_agent: String,
    /// The `If-Match` header.
    pub if_match: Option<String>,
    /// The `Idempotency-Key` header and a hash of the request.
    pub idempotency: Option<Idempotency>,
    /// The `Last-Event-ID` header.
    pub last_event_id: Option<String>,
    /// The part of the body that the audit log may record.
    pub audited_body: Option<serde_json::Value>,
    /// The session of the browser that it came from, by way of the console.
    pub session: Option<OpenSession>,
    pub now: Timestamp,
}

/// The context of a call; `P` is the proof of the caller's rights.
#[derive(Clone)]
pub struct Cx<P> {
    inner: Arc<Inner>,
    proof: P,
    /// Whether this is inside a transaction that holds the exclusive lock on the rights.
    exclusive: bool,
}

struct Inner {
    app: App,
    authority: Arc<Authority>,
    request: Request,
    rechecks: bool,
    confirmed: AtomicBool,
    /// What must hold when the database is asked, where that is more than what holds for the caller.
    guard: OnceLock<Arc<Guard>>,
    /// The operation that the call has started.
    operation: Mutex<Option<OperationId>>,
}

/// Checks rights before the stored response of an earlier call is given again.
type May<C> = Box<dyn FnMut(&C, &Tx, &[u8]) -> Result<()> + Send>;
/// The effect of a call, which returns the reply as it is stored if there is an `Idempotency-Key`.
type Effect<C> = Box<dyn FnMut(&C, &Tx) -> Result<Option<Written>> + Send>;

/// What an endpoint is called with: path, query and body.
pub struct Call<E: Endpoint> {
    /// The ids of the path.
    pub path: E::Path,
    pub query: E::Query,
    pub body: E::Body,
}

impl Cx<()> {
    /// The context of a caller with a valid token; if rights have just changed, the caller is read again.
    pub fn new(app: App, authority: Arc<Authority>, request: Request, rechecks: bool) -> Self {
        let confirmed = AtomicBool::new(false);
        Self {
            inner: Arc::new(Inner {
                app,
                authority,
                request,
                rechecks,
                confirmed,
                guard: OnceLock::new(),
                operation: Mutex::default(),
            }),
            proof: (),
            exclusive: false,
        }
    }

    /// The same call once the policy has admitted it.
    pub fn proven(self, scope: Scope) -> Cx<Scope> {
        let Inner { app, authority, guard, .. } = &*self.inner;
        if db(app).is_shared() {
            guard.get_or_init(|| authority.guard_at(scope.target()));
        }
        Cx { inner: self.inner, proof: scope, exclusive: self.exclusive }
    }

    /// Confirms that the cached caller is still current, unless the database has already confirmed it.
    pub async fn confirm(&self) -> Result<()> {
        if self.inner.confirmed.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.read(Self::confirm_in_database).await
    }

    /// Writes an audit record of the refused call. In a plan, nothing of a refused call remains.
    pub async fn record_refusal(&self, status: u16) -> Result<()> {
        if podium_db::joined::is_joined() || !self.app().refusals.allow(self.subject_id()) {
            return Ok(());
        }
        let cx = self.clone();
        let id = self.new_id();
        db(self.app()).write(None, move |tx| audit::record(tx, &cx, id, status)).await
    }
}

impl Cx<Scope> {
    /// Proof that the caller was admitted, and to what.
    pub fn scope(&self) -> &Scope {
        &self.proof
    }

    pub fn organization_id(&self) -> OrganizationId {
        self.proof.organization_id()
    }

    /// What the caller may do in the organization.
    pub fn grants(&self) -> &Grants {
        self.inner.authority.member.as_ref().expect("a proven caller is a member").grants()
    }

    /// The cached rendering of a resource of the organization, if reading it now would give the same. It counts as a read:
    /// where changes of rows are reported, so are changes of rights.
    pub(crate) async fn cached<T: Cacheable>(&self, id: Id) -> Result<Option<One<Shown<T>>>> {
        let app = self.app();
        let Some(cached) =
            T::rendered(app).current(db(app), self.scope(), id).filter(|_| !self.inner.rechecks)
        else {
            return Ok(None);
        };
        db(app).durable().await?;
        self.inner.confirmed.store(true, Ordering::Relaxed);
        Ok(Some(cached))
    }

    /// Requires a right on a target that the path does not name.
    pub fn require(&self, permission: podium_domain::Permission, target: Target) -> Result<()> {
        Ok(podium_domain::require(self.grants(), permission, target)?)
    }

    /// Records in the change log that a resource of the organization changed, without an event.
    pub fn logged(&self, tx: &Tx, kind: &'static str, id: Id, version: i64) -> Result<()> {
        let workspace_id = (kind == podium_store::workspaces::KIND).then(|| id.to_string());
        let change = Change { workspace_id, ..Change::new(kind, &id, version) };
        Ok(changes::append(tx, self.scope(), self.now(), change)?)
    }

    /// Announces that rights in the organization change. Must come first in a transaction that changes any, which is
    /// one of [`Cx::change_rights`].
    pub fn rights_change(&self, tx: &Tx) -> Result<()> {
        if !self.exclusive {
            return Err(Error::Internal(format!(
                "{} changes rights outside a transaction that locks them",
                self.request().endpoint.id
            )));
        }
        crate::authority::rights_change(tx, self.scope(), self.now())
    }
}

impl<P: Clone + Send + Sync + 'static> Cx<P> {
    pub fn app(&self) -> &App {
        &self.inner.app
    }

    /// The caller's profile, as others see it.
    pub fn profile(&self) -> SubjectProfile {
        self.inner.authority.profile.clone()
    }

    pub fn subject_id(&self) -> SubjectId {
        self.inner.authority.credential.subject_id
    }

    /// The caller and its credential.
    pub fn authority(&self) -> &Authority {
        &self.inner.authority
    }

    /// The same, to be passed on.
    pub(crate) fn shared_authority(&self) -> Arc<Authority> {
        Arc::clone(&self.inner.authority)
    }

    /// Watches the caller's rights during a long request.
    pub fn watch(&self) -> Watch {
        self.inner.app.watch(&self.inner.authority, self.inner.request.session)
    }

    pub fn request(&self) -> &Request {
        &self.inner.request
    }

    /// When the request arrived: the timestamp of everything that it causes.
    pub fn now(&self) -> Timestamp {
        self.inner.request.now
    }

    pub fn new_id<I: TypedId>(&self) -> I {
        self.inner.app.world.id()
    }

    /// The operation that the call has started.
    pub fn operation(&self) -> Option<OperationId> {
        *self.inner.operation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes which operation the call has started, which the response names.
    pub(crate) fn note_operation(&self, id: Option<OperationId>) {
        *self.inner.operation.lock().unwrap_or_else(PoisonError::into_inner) = id;
    }

    /// Reads a few rows by key.
    pub async fn read<T: Send + 'static>(
        &self,
        unit: impl FnMut(&Self, &Conn) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer = db(&self.inner.app).read(self.guard(), self.clone().confirming(unit)).await;
        self.note_confirmed(answer)
    }

    /// Reads a short page of a list by an index, in one snapshot.
    pub async fn page<T: Send + 'static>(
        &self,
        unit: impl FnMut(&Self, &Conn) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer = db(&self.inner.app).page(self.guard(), self.clone().confirming(unit)).await;
        self.note_confirmed(answer)
    }

    /// Reads a list, in one snapshot.
    pub async fn scan<T: Send + 'static>(
        &self,
        unit: impl FnMut(&Self, &Conn) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let answer = db(&self.inner.app).scan(self.guard(), self.clone().confirming(unit)).await;
        self.note_confirmed(answer)
    }

    /// Reads a page of a list, in one snapshot, and shows each of its rows.
    pub async fn list<K: SortKeys, R: Send + 'static, L: Paginated>(
        &self,
        page: &Page<K>,
        mut read: impl FnMut(&Self, &Conn, &Paging) -> Result<Listed<R>> + Send + 'static,
        show: impl FnMut(R) -> L::Item,
    ) -> Result<Many<L>> {
        let paging = Paging::from(page);
        let (limit, offset) = (paging.limit, paging.offset);
        let (rows, total_count) = self.scan(move |cx, conn| read(cx, conn, &paging)).await?;
        Ok(Many(L::new(rows.into_iter().map(show).collect(), limit, offset, total_count)))
    }

    /// Runs the effect of a call: once under an `Idempotency-Key`, with its audit record, all or nothing.
    pub async fn mutate<R: Reply>(
        &self,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.write(false, |_, _, _| Ok(()), effect).await
    }

    /// The same if the effect requires rights beyond the endpoint's permission: `may` checks them again
    /// before a stored response is repeated.
    pub async fn mutate_where<R: Reply>(
        &self,
        mut may: impl FnMut(&Self, &Tx) -> Result<()> + Send + 'static,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.write(false, move |cx, tx, _| may(cx, tx), effect).await
    }

    /// Runs an effect that changes rights: exclusively, and while nobody acts on rights that it may take
    /// away. Without an organization, the caller's own sessions change.
    pub async fn change_rights<R: Reply>(
        &self,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.write(true, |_, _, _| Ok(()), effect).await
    }

    /// The same if the effect requires further rights.
    pub async fn change_rights_where<R: Reply>(
        &self,
        mut may: impl FnMut(&Self, &Tx) -> Result<()> + Send + 'static,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.write(true, move |cx, tx, _| may(cx, tx), effect).await
    }

    /// The same if those rights depend on the stored response.
    pub async fn change_rights_checking_reply<R: Reply<Body: DeserializeOwned>>(
        &self,
        mut may: impl FnMut(&Self, &Tx, R::Body) -> Result<()> + Send + 'static,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let judged = move |cx: &Self, tx: &Tx, kept: &[u8]| {
            may(cx, tx, serde_json::from_slice(kept).map_err(|error| Error::Internal(error.to_string()))?)
        };
        self.write(true, judged, effect).await
    }

    /// Runs a unit in a transaction and takes it back. It may do whatever the caller may, also change rights.
    pub(crate) async fn rehearse<T: Send + 'static>(
        &self,
        mut unit: impl FnMut(&Self, &Tx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let Inner { app, authority, .. } = &*self.inner;
        let cx = Self { exclusive: true, ..self.clone() };
        let locks = if db(app).is_shared() { authority.locks(true) } else { Vec::new() };
        let answer = db(app).rehearse(self.guard(), locks, move |tx: &Tx| {
            cx.confirm_in_database(tx)?;
            unit(&cx, tx)
        });
        self.note_confirmed(answer.await)
    }

    /// Stores something for the caller that changes no resource, and so leaves no audit record.
    pub(crate) async fn write_unaudited<T: Send + 'static>(
        &self,
        mut unit: impl FnMut(&Self, &Tx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let cx = self.clone();
        let answer = db(&self.inner.app).write(self.guard(), move |tx: &Tx| {
            cx.confirm_in_database(tx)?;
            unit(&cx, tx)
        });
        self.note_confirmed(answer.await)
    }

    /// Reads in the middle of a long response, where the caller is still what it was.
    pub(crate) async fn read_on<T: Send + 'static>(
        &self,
        mut unit: impl FnMut(&Self, &Conn) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let cx = self.clone();
        let unit = move |conn: &Conn| {
            cx.confirm_caller(conn)?;
            unit(&cx, conn)
        };
        db(self.app()).read(None, unit).await
    }

    /// The same for a part of a list.
    pub(crate) async fn scan_on<T: Send + 'static>(
        &self,
        mut unit: impl FnMut(&Self, &Conn) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let cx = self.clone();
        let unit = move |conn: &Conn| {
            cx.confirm_caller(conn)?;
            unit(&cx, conn)
        };
        db(self.app()).scan(None, unit).await
    }

    async fn write<R: Reply>(
        &self,
        exclusive: bool,
        may: impl FnMut(&Self, &Tx, &[u8]) -> Result<()> + Send + 'static,
        mut effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let slot = Arc::<Mutex<Option<R>>>::default();
        let made = Arc::clone(&slot);
        let effect = move |cx: &Self, tx: &Tx| {
            let reply = effect(cx, tx)?;
            let written = cx.request().idempotency.as_ref().map(|_| Written::of(&reply)).transpose()?;
            *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
            Ok(written)
        };
        self.write_erased(exclusive, Box::new(may), (Box::new(effect), R::KIND)).await?;
        let reply = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        reply.ok_or_else(|| Error::Internal("an effect was committed without a reply".into()))
    }

    /// The same whatever the reply is, so that it is compiled once and not for each endpoint.
    async fn write_erased(
        &self,
        exclusive: bool,
        mut may: May<Self>,
        (mut effect, kind): (Effect<Self>, ReplyKind),
    ) -> Result<()> {
        let Inner { app, authority, request, .. } = &*self.inner;
        authority.has_not_ended(request.session, app.world.now())?;
        let running = app.running.enter(self)?;
        let entered = Arc::clone(&running);
        let cx = Self { exclusive, ..self.clone() };
        let audit_id = self.new_id();
        let unit = move |tx: &Tx| {
            cx.note_operation(None);
            cx.confirm_in_database(tx)?;
            running.replay(&cx, tx, &mut |kept| may(&cx, tx, kept))?;
            running.claim(&cx, tx)?;
            let written = effect(&cx, tx)?;
            audit::record(tx, &cx, audit_id, kind.status())?;
            running.keep(&cx, tx, written)
        };
        // A database with a single writer needs no locks, so their keys are not computed.
        let locks = if db(app).is_shared() { authority.locks(exclusive) } else { Vec::new() };
        let answer = db(app).write_locked(self.guard(), locks, unit).await;
        entered.leave();
        self.note_confirmed(answer)
    }

    /// Compares the caller's `If-Match` with the version of the resource to change.
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

    /// The guard of a unit, unless the unit confirms the caller itself.
    fn guard(&self) -> Option<Arc<Guard>> {
        let guard = || self.inner.guard.get().map_or_else(|| self.inner.authority.guard(), Arc::clone);
        (!self.inner.rechecks).then(guard)
    }

    /// The unit, preceded by a check of the caller.
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
        if self.inner.rechecks { self.inner.authority.confirm(conn) } else { Ok(()) }
    }

    /// The same without relying on change notifications: the cached caller is compared with the database.
    fn confirm_in_database(&self, conn: &Conn) -> Result<()> {
        let Inner { app, authority, request, rechecks, .. } = &*self.inner;
        if *rechecks || !conn.holds(&authority.guard())? {
            authority.confirm(conn)?;
        }
        app.confirm_session(conn, request.session)
    }

    /// Checks in the middle of a long response that the caller is still what it was, and that neither its token nor the
    /// session that it came with has ended.
    fn confirm_caller(&self, conn: &Conn) -> Result<()> {
        let Inner { app, authority, request, .. } = &*self.inner;
        authority.has_not_ended(request.session, app.world.now())?;
        authority.confirm(conn)?;
        app.confirm_session(conn, request.session)
    }

    fn note_confirmed<T>(&self, answer: Result<T>) -> Result<T> {
        if !matches!(answer, Err(Error::Db(_))) {
            self.inner.confirmed.store(true, Ordering::Relaxed);
        }
        answer
    }
}
