//! Rows that are decoded only if that is needed.

use podium_api::Id;
use podium_db::{Result, Row};

use crate::columns::Columns;

/// A row of a resource, decoded on demand; its first column is the id.
pub struct LazyRow<'r, T> {
    row: &'r Row<'r>,
    version: usize,
    read: fn(&Row<'_>) -> Result<T>,
}

impl<'r, T> LazyRow<'r, T> {
    /// A row whose version is in this column.
    pub(crate) fn new(row: &'r Row<'r>, version: usize, read: fn(&Row<'_>) -> Result<T>) -> Self {
        Self { row, version, read }
    }

    /// The version.
    pub fn version(&self) -> Result<i64> {
        self.row.get(self.version)
    }

    /// The id, and a hash of all columns: if both are equal, so are the decoded rows.
    pub fn key(&self) -> Result<(Id, u128)> {
        Ok((self.row.id(0)?, self.row.fingerprint()?))
    }

    /// Decodes it.
    pub fn read(&self) -> Result<T> {
        (self.read)(self.row)
    }
}
