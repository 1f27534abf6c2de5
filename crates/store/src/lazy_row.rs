//! Rows that are decoded only if that is needed.

use podium_api::Id;
use podium_db::{Result, Row};

use crate::columns::Columns;

/// A row of a resource; its first column is its id.
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

    /// The id, and a hash of everything that was found: where both are the same, so is what is read.
    pub fn key(&self) -> Result<(Id, u128)> {
        Ok((self.row.id(0)?, self.row.fingerprint()?))
    }

    /// Reads it.
    pub fn read(&self) -> Result<T> {
        (self.read)(self.row)
    }
}
