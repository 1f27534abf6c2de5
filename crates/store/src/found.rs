//! Rows that were found and are read only where that is needed.

use podium_api::{Id, OrganizationId, WorkspaceId};
use podium_db::{Conn, JoinedRow, Result, Row, RowsRead};

use crate::columns::Columns;

/// Where a resource's statement has what; the first column is its id.
pub(crate) struct Shape {
    pub organization: usize,
    pub workspace: Option<usize>,
    pub version: usize,
    /// Every row that its statement reads.
    pub rows: &'static [JoinedRow],
}

/// A row of a resource.
pub struct Found<'r, T> {
    row: &'r Row<'r>,
    shape: &'static Shape,
    read: fn(&Row<'_>) -> Result<T>,
}

impl<'r, T> Found<'r, T> {
    pub(crate) fn new(row: &'r Row<'r>, shape: &'static Shape, read: fn(&Row<'_>) -> Result<T>) -> Self {
        Self { row, shape, read }
    }

    /// The id.
    pub fn id(&self) -> Result<Id> {
        self.row.id(0)
    }

    /// The version.
    pub fn version(&self) -> Result<i64> {
        self.row.get(self.shape.version)
    }

    /// The organization that it belongs to.
    pub fn organization_id(&self) -> Result<OrganizationId> {
        self.row.id(self.shape.organization)
    }

    /// The workspace that it belongs to, where it belongs to one.
    pub fn workspace_id(&self) -> Result<Option<WorkspaceId>> {
        self.shape.workspace.map(|column| self.row.id(column)).transpose()
    }

    /// A hash of everything that was found: where it is the same, so is what is read.
    pub fn fingerprint(&self) -> Result<u128> {
        self.row.fingerprint()
    }

    /// Which rows were found; `None` where nobody would say that they have changed.
    pub fn rows_read(&self) -> Result<Option<RowsRead>> {
        self.row.rows_read(self.shape.rows)
    }

    /// Reads it.
    pub fn read(&self) -> Result<T> {
        (self.read)(self.row)
    }
}

/// How resources of a list are shown.
pub trait Show<R, T> {
    /// What is kept of one, if it is what reading it in this unit would give.
    fn kept(&self, conn: &Conn, id: Id) -> Option<T>;
    /// Shows a row.
    fn found(&self, found: &Found<'_, R>) -> Result<T>;
}
