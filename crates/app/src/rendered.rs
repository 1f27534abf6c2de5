//! A cache of rendered JSON, valid while the rows that it was rendered from are unchanged.
//!
//! The JSON of a resource is a pure function of its row (its columns, including those of joined rows) and this
//! process's settings. There are two ways to tell whether a cached rendering is current (decisions 32 and 34):
//!
//! * If changes of rows are reported to this process, none of the rows that it was made from has changed. Nothing is read
//!   from the database.
//! * Everywhere, the row that was read has the same fingerprint.

use std::cell::Cell;
use std::marker::PhantomData;
use std::sync::Arc;

use podium_api::deployments::Deployment;
use podium_api::workspaces::Workspace;
use podium_api::{Id, One, OrganizationId, Shown, WorkspaceId};
use podium_db::{Conn, Db, Error, Result, RowsRead};
use podium_store::{LazyRow, Render, Scope};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::App;

/// Maximum size of the cache of one kind of resource, in bytes.
const MEMORY: u64 = 32 * 1024 * 1024;
/// Estimated size of an entry.
const TYPICAL: u64 = 1024;

#[derive(Clone)]
struct Entry {
    organization_id: OrganizationId,
    workspace_id: Option<WorkspaceId>,
    version: i64,
    fingerprint: u128,
    rows: Option<RowsRead>,
    json: Arc<RawValue>,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Id, Entry> for Bytes {
    fn weight(&self, _: &Id, entry: &Entry) -> u64 {
        (entry.json.get().len() + 256) as u64
    }
}

/// The cache of one kind of resource: the id of another kind finds nothing in it.
pub(crate) struct Rendered<T>(Cache<Id, Entry, Bytes>, PhantomData<fn() -> T>);

impl<T> Default for Rendered<T> {
    fn default() -> Self {
        Self(Cache::with_weighter((MEMORY / TYPICAL) as usize, MEMORY, Bytes), PhantomData)
    }
}

/// A resource whose JSON is cached.
pub(crate) trait Cacheable: Serialize + Sized {
    fn rendered(app: &App) -> &Rendered<Self>;
}

impl Cacheable for Workspace {
    fn rendered(app: &App) -> &Rendered<Self> {
        &app.rendered_workspaces
    }
}

impl Cacheable for Deployment {
    fn rendered(app: &App) -> &Rendered<Self> {
        &app.rendered_deployments
    }
}

/// How many bytes of rows are rendered on an async worker, which must not be held for long.
const INLINE: usize = 256 * 1024;

/// Renders a page until its rows become too large for an async worker.
pub(crate) struct Inline<'a, C> {
    cx: &'a C,
    bytes: Cell<usize>,
    limit: usize,
}

impl<'a, C> Inline<'a, C> {
    /// On a thread that may block there is no limit.
    pub(crate) fn new(cx: &'a C, may_block: bool) -> Self {
        Self { cx, bytes: Cell::new(0), limit: if may_block { usize::MAX } else { INLINE } }
    }
}

/// A page that was rendered so; `None` if it became too large.
pub(crate) fn whole_page<T>(page: Option<(Vec<Option<T>>, u64)>) -> Option<(Vec<T>, u64)> {
    let (rows, total) = page?;
    Some((rows.into_iter().collect::<Option<_>>()?, total))
}

/// Rows beyond the limit are not rendered.
impl<C: Render<R, T>, R, T> Render<R, Option<T>> for Inline<'_, C> {
    fn cached(&self, conn: &Conn, id: Id) -> Option<Option<T>> {
        Render::cached(self.cx, conn, id).map(Some)
    }

    fn render(&self, row: &LazyRow<'_, R>) -> Result<Option<T>> {
        if self.bytes.get() <= self.limit {
            self.bytes.set(self.bytes.get().saturating_add(row.size()?));
        }
        if self.bytes.get() > self.limit { Ok(None) } else { self.cx.render(row).map(Some) }
    }
}

pub(crate) enum Made<T> {
    /// It depends on the row alone.
    OfRow(T),
    /// It depends on the current time.
    OfNow(T),
}

impl<T: Cacheable> Rendered<T> {
    /// Renders a row; `make` is called if there is no rendering of the same columns.
    pub(crate) fn show<R>(&self, row: &LazyRow<'_, R>, make: impl FnOnce(R) -> Made<T>) -> Result<Shown<T>> {
        let (id, fingerprint) = (row.id()?, row.fingerprint()?);
        let known = self.0.get(&id).filter(|entry| entry.fingerprint == fingerprint);
        let json = match &known {
            Some(entry) => Arc::clone(&entry.json),
            None => match make(row.read()?) {
                Made::OfNow(value) => return Ok(value.into()),
                Made::OfRow(value) => serde_json::value::to_raw_value(&value)
                    .map_err(|error| Error::Other(error.to_string()))?
                    .into(),
            },
        };
        let rows = row.rows_read()?;
        if known.is_none() || rows.is_some() {
            let (organization_id, workspace_id) = (row.organization_id()?, row.workspace_id()?);
            let (version, json) = (row.version()?, Arc::clone(&json));
            self.0.insert(id, Entry { organization_id, workspace_id, version, fingerprint, rows, json });
        }
        Ok(Shown::Json(json))
    }

    /// The rendering of a resource of the caller's organization, if reading it now would give the same. It may come from
    /// a commit that is not on disk yet: wait for [`Db::durable`] before it is sent.
    pub(crate) fn current(&self, db: &Db, scope: &Scope, id: Id) -> Option<One<Shown<T>>> {
        let entry = self.find(scope, id, |rows| db.unchanged(rows))?;
        Some(One { version: entry.version, body: Shown::Json(entry.json) })
    }

    /// The rendering, if reading it in this unit would give the same.
    pub(crate) fn current_in(&self, conn: &Conn, scope: &Scope, id: Id) -> Option<Shown<T>> {
        self.find(scope, id, |rows| conn.unchanged(rows)).map(|entry| Shown::Json(entry.json))
    }

    /// The workspace of a resource, if reading it now would give the same.
    pub(crate) fn workspace_of(&self, db: &Db, scope: &Scope, id: Id) -> Option<WorkspaceId> {
        self.find(scope, id, |rows| db.unchanged(rows))?.workspace_id
    }

    fn find(&self, scope: &Scope, id: Id, unchanged: impl FnOnce(&RowsRead) -> bool) -> Option<Entry> {
        let entry = self.0.get(&id)?;
        let is_own = entry.organization_id == scope.organization_id();
        (is_own && entry.rows.as_ref().is_some_and(unchanged)).then_some(entry)
    }
}
