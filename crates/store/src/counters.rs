//! Totals of lists, maintained with the rows that they count.

use podium_api::{EntityId, Id, OrganizationId, Timestamp};
use podium_db::{Conn, Result, Row, Sql, Tx, params, statements};

/// Writers of one organization that can count at the same time without waiting for each other.
const SHARDS: i64 = 8;

statements! {
    ADD = "INSERT INTO counters (organization_id, kind, shard, total, disorder) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (organization_id, kind, shard) DO UPDATE \
        SET total = counters.total + excluded.total, disorder = counters.disorder + excluded.disorder";
    pub(crate) READ = "SELECT total, disorder FROM counters WHERE organization_id = $1 AND kind = $2";
}

/// Counts a new row of a list that is sorted by `created_at`; out of order if a newer row already exists.
///
/// It compares with the newest row, which the index of the list finds at once. Asking whether any row is newer would
/// read the whole table on PostgreSQL, which expects to find one soon.
macro_rules! count_new {
    ($table:literal) => {
        concat!(
            "INSERT INTO counters (organization_id, kind, shard, total, disorder) VALUES ($1, '",
            $table,
            "', $2, 1, CASE WHEN EXISTS (SELECT 1 FROM (SELECT created_at, id FROM ",
            $table,
            " WHERE organization_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1) newest \
             WHERE (newest.created_at, newest.id) > ($3, $4)) THEN 1 ELSE 0 END) \
             ON CONFLICT (organization_id, kind, shard) DO UPDATE \
             SET total = counters.total + excluded.total, disorder = counters.disorder + excluded.disorder"
        )
    };
}
pub(crate) use count_new;

/// A total, and how often older rows have moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counter {
    pub total: i64,
    /// How often the rank of an older row has changed.
    pub disorder: i64,
}

/// Counts rows of an organization or a workspace that were added (or, below zero, removed); `id` is any of theirs.
pub(crate) fn add(
    tx: &Tx,
    of: impl Into<EntityId>,
    kind: &'static str,
    id: Id,
    rows: i64,
    disorder: i64,
) -> Result<()> {
    tx.post(&ADD, params![of.into().as_str(), kind, shard(id), rows, disorder])
}

/// Counts a row that was added; `sql` is the table's [`count_new`].
pub(crate) fn added(
    tx: &Tx,
    sql: &Sql,
    organization_id: OrganizationId,
    id: Id,
    created_at: Timestamp,
) -> Result<()> {
    tx.post(sql, params![organization_id.as_str(), shard(id), created_at.millis(), id.as_str()])
}

fn shard(id: Id) -> i64 {
    i64::from(id.as_str().as_bytes()[24]) % SHARDS
}

pub(crate) fn read(conn: &Conn, organization_id: &str, kind: &str) -> Result<Counter> {
    let mut sum = Counter::default();
    conn.query(&READ, params![organization_id, kind], |row| sum.add(row))?;
    Ok(sum)
}

impl Counter {
    /// Adds a shard, a row of [`READ`].
    pub(crate) fn add(&mut self, row: &Row<'_>) -> Result<()> {
        self.total += row.get::<i64>(0)?;
        self.disorder += row.get::<i64>(1)?;
        Ok(())
    }
}
