//! JSON of rows, kept as long as the rows are as they were.
//!
//! A resource is shown by a pure function of its row: the columns, those of the rows joined to it included, and this
//! process's settings. Its JSON is kept with two ways to tell whether it is still right (decisions 32 and 34):
//!
//! * Where this process is told which rows change, with the rows that it was made from. While none of them has changed,
//!   nothing is read at all.
//! * Everywhere, with a fingerprint of all these columns, which is compared after the row was read.

use std::marker::PhantomData;
use std::sync::Arc;

use podium_api::deployments::Deployment;
use podium_api::workspaces::Workspace;
use podium_api::{Id, One, OrganizationId, Shown, WorkspaceId};
use podium_db::{Conn, Db, Error, Result, RowsRead};
use podium_store::{Found, Scope};
use quick_cache::Weighter;
use quick_cache::sync::Cache;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::App;

/// How many bytes are kept at the most, of each kind of resource.
const MEMORY: u64 = 32 * 1024 * 1024;
/// About how large one is.
const TYPICAL: u64 = 1024;

/// What is kept of a row.
#[derive(Clone)]
struct Kept {
    organization_id: OrganizationId,
    workspace_id: Option<WorkspaceId>,
    version: i64,
    fingerprint: u128,
    rows: Option<RowsRead>,
    json: Arc<RawValue>,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Id, Kept> for Bytes {
    fn weight(&self, _: &Id, kept: &Kept) -> u64 {
        (kept.json.get().len() + 256) as u64
    }
}

/// JSON of resources of one kind: the id of another kind finds nothing here.
pub(crate) struct Rendered<T>(Cache<Id, Kept, Bytes>, PhantomData<fn() -> T>);

impl<T> Default for Rendered<T> {
    fn default() -> Self {
        Self(Cache::with_weighter((MEMORY / TYPICAL) as usize, MEMORY, Bytes), PhantomData)
    }
}

/// A resource of which JSON is kept.
pub(crate) trait Keepable: Serialize + Sized {
    /// Where it is kept.
    fn rendered(app: &App) -> &Rendered<Self>;
}

impl Keepable for Workspace {
    fn rendered(app: &App) -> &Rendered<Self> {
        &app.rendered_workspaces
    }
}

impl Keepable for Deployment {
    fn rendered(app: &App) -> &Rendered<Self> {
        &app.rendered_deployments
    }
}

/// What is made of a row.
pub(crate) enum Made<T> {
    /// What the row alone says.
    OfRow(T),
    /// What is different at another time.
    OfNow(T),
}

impl<T: Keepable> Rendered<T> {
    /// Shows a row that was found; `make` is called where it has not been shown before.
    pub(crate) fn show<R>(&self, found: &Found<'_, R>, make: impl FnOnce(R) -> Made<T>) -> Result<Shown<T>> {
        let (id, fingerprint) = (found.id()?, found.fingerprint()?);
        let known = self.0.get(&id).filter(|kept| kept.fingerprint == fingerprint);
        let json = match &known {
            Some(kept) => Arc::clone(&kept.json),
            None => match make(found.read()?) {
                Made::OfNow(value) => return Ok(value.into()),
                Made::OfRow(value) => serde_json::value::to_raw_value(&value)
                    .map_err(|error| Error::Other(error.to_string()))?
                    .into(),
            },
        };
        let rows = found.rows_read()?;
        if known.is_none() || rows.is_some() {
            let (organization_id, workspace_id) = (found.organization_id()?, found.workspace_id()?);
            let (version, json) = (found.version()?, Arc::clone(&json));
            self.0.insert(id, Kept { organization_id, workspace_id, version, fingerprint, rows, json });
        }
        Ok(Shown::Json(json))
    }

    /// What is kept of a resource of the caller's organization, if reading it now would give the same.
    pub(crate) fn now(&self, db: &Db, scope: &Scope, id: Id) -> Option<One<Shown<T>>> {
        let kept = self.find(scope, id, |rows| db.unchanged(rows))?;
        Some(One { version: kept.version, body: Shown::Json(kept.json) })
    }

    /// The same, if reading it in this unit would give the same.
    pub(crate) fn then(&self, conn: &Conn, scope: &Scope, id: Id) -> Option<Shown<T>> {
        self.find(scope, id, |rows| conn.unchanged(rows)).map(|kept| Shown::Json(kept.json))
    }

    /// The workspace that it belongs to, if reading it now would give the same.
    pub(crate) fn workspace_of(&self, db: &Db, scope: &Scope, id: Id) -> Option<WorkspaceId> {
        self.find(scope, id, |rows| db.unchanged(rows))?.workspace_id
    }

    fn find(&self, scope: &Scope, id: Id, unchanged: impl FnOnce(&RowsRead) -> bool) -> Option<Kept> {
        let kept = self.0.get(&id)?;
        let is_current =
            kept.organization_id == scope.organization_id() && kept.rows.as_ref().is_some_and(unchanged);
        is_current.then_some(kept)
    }
}
