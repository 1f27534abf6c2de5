//! Which rows something was made from, and when they were read.

use crate::{Error, Result};

const MOST: usize = 8;

/// A row that a statement reads, maybe by a join.
#[derive(Clone, Copy, Debug)]
pub struct JoinedRow {
    pub table: &'static str,
    /// The column with its key; where that is null, there is no such row.
    pub key: usize,
    /// The column with its `ROWID`.
    pub rowid: usize,
}

/// Rows that were read, for [`Conn::unchanged`](crate::Conn::unchanged) and [`Db::unchanged`](crate::Db::unchanged).
#[derive(Clone, Copy, Debug)]
pub struct RowsRead {
    /// The last commit that the read is certain to have seen.
    pub(crate) at: u64,
    slots: [u16; MOST],
    count: usize,
}

impl RowsRead {
    pub(crate) fn new(at: u64) -> Self {
        Self { at, slots: [0; MOST], count: 0 }
    }

    pub(crate) fn push(&mut self, slot: u16) -> Result<()> {
        let place = self.slots.get_mut(self.count);
        *place.ok_or_else(|| Error::Other(format!("more than {MOST} rows are joined")))? = slot;
        self.count += 1;
        Ok(())
    }

    pub(crate) fn slots(&self) -> &[u16] {
        &self.slots[..self.count]
    }
}
