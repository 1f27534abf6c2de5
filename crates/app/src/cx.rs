//! The context of a call: the caller, the proof of its rights, and the only access to the database.
//!
//! `Cx<Scope>` exists only if the policy has admitted the caller, so a function that takes one cannot be reached
//! without a permission. Writes go through [`Cx::mutate`] and [`Cx::change_rights`], which put the effect, its audit
//! record and the stored response of an `Idempotency-Key` into one transaction, and check the caller again inside it:
//! what was proven when the head of a request arrived may be outdated when its body has arrived. The caller's rights
//! do not change between that check and the commit (decision 26).

mod writes;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use podium_api::page::{Page, Paginated, SortKeys};
use podium_api::subjects::SubjectProfile;
use podium_api::{
    Endpoint, Id, Many, One, OperationId, OrganizationId, SessionId, Shown, SubjectId, Timestamp, TypedId,
    UserId,
};
use podium_db::{Conn, Guard};
use podium_domain::{Grants, Refusal, Target};
use podium_store::{Listed, Paging, Scope};

use crate::App;
use crate::authority::{Authority, Watch};
use crate::error::{Error, Result};
use crate::rendered::Cacheable;
use crate::request::Request;

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

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
    operation: Mutex<Option<OperationId>>,
}

/// What an endpoint is called with: path, query and body.
pub struct Call<E: Endpoint> {
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
}

/// The caller itself, whatever organization it belongs to.
impl Cx<()> {
    /// The user whose session is calling.
    pub(crate) fn users_only(&self, instead: &str) -> Result<UserId> {
        self.authority().credential.user_id().ok_or_else(|| {
            Refusal::Forbidden(format!("An API token is not a user's session: {instead}.")).into()
        })
    }

    /// The session that the call was made with.
    pub(crate) fn session_id(&self) -> SessionId {
        let of_token = SessionId::from_raw(self.authority().credential.token_id.id());
        self.request().session.map_or(of_token, |session| session.id)
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

    pub fn authority(&self) -> &Authority {
        &self.inner.authority
    }

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
