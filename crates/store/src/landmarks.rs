//! Landmarks: cached keys of every 256th row, so that a deep page of a list in default order costs as much as the
//! first page.
//!
//! Ranks are counted from the oldest row: new rows are added at the other end and do not change them. Anything else
//! that changes ranks, a removal or a row that is not the newest, advances the counter's `disorder`, which is read in
//! the same snapshot as the page; landmarks of another `disorder` are dropped. The newest rows get none, because a
//! running transaction may still insert a row among them.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use podium_api::{Id, OrganizationId};
use podium_db::{Conn, Result, Sql, params};

use crate::columns::Columns;
use crate::counters;
use crate::lazy_row::Cached;
use crate::listing::{Filter, Paging, Table, Total};

const STEP: i64 = 256;
const NEWEST: i64 = 2 * STEP;
const MAX_LISTS: usize = 1024;

const UP_TO: &str = "t.organization_id = {} AND (t.created_at, t.id) <= ({}, {})";

podium_db::statements! {}

#[derive(Default)]
pub struct Landmarks(Mutex<HashMap<(OrganizationId, &'static str), Arc<Known>>>);

impl fmt::Debug for Landmarks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Landmarks")
    }
}

#[derive(Clone, Debug, Default)]
struct Known {
    disorder: i64,
    /// The keys of ranks 0, `STEP`, 2 × `STEP` and so on.
    keys: Vec<(i64, Id)>,
}

impl Landmarks {
    fn known(&self, list: (OrganizationId, &'static str), disorder: i64) -> Arc<Known> {
        let lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = lists.get(&list).filter(|known| known.disorder == disorder).cloned();
        known.unwrap_or_else(|| Arc::new(Known { disorder, keys: Vec::new() }))
    }

    fn remember(&self, list: (OrganizationId, &'static str), known: Arc<Known>) {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lists.len() >= MAX_LISTS {
            lists.clear();
        }
        lists.insert(list, known);
    }
}

/// Reads a page of a list and the total; `None` if that needs a long scan and `walk_far` is false.
#[expect(clippy::too_many_arguments, reason = "each is a different part of one question")]
pub(crate) fn list<T>(
    conn: &Conn,
    (table, kind): (&Table, &'static str),
    organization_id: OrganizationId,
    filter: Filter<'_>,
    paging: &Paging,
    landmarks: &Landmarks,
    walk_far: bool,
    read: Cached<'_, T>,
) -> Result<Option<(Vec<T>, u64)>> {
    if !filter.is_narrowed() && paging.sorts.is_empty() {
        match page(conn, table, kind, organization_id, paging, landmarks, walk_far, read)? {
            Way::Known(rows, total) => return Ok(Some((rows, total))),
            Way::Long => return Ok(None),
            Way::Near => {}
        }
    } else if !walk_far {
        return Ok(None);
    }
    table.cached_page(conn, filter, paging, Total::Counter(organization_id.as_str(), kind), read).map(Some)
}

/// The known landmarks of a list.
enum Way<T> {
    /// It is near enough to be walked to.
    Near,
    /// Its landmark has to be found first, by a walk that may be long.
    Long,
    Known(Vec<T>, u64),
}

/// Reads a page in default order by its landmark; searches for a missing one only if `walk_far` allows it.
#[expect(clippy::too_many_arguments, reason = "each is a different part of one question")]
fn page<T>(
    conn: &Conn,
    table: &Table,
    kind: &'static str,
    organization_id: OrganizationId,
    paging: &Paging,
    landmarks: &Landmarks,
    walk_far: bool,
    read: Cached<'_, T>,
) -> Result<Way<T>> {
    let offset = paging.offset.cast_signed();
    if offset < NEWEST + STEP {
        return Ok(Way::Near);
    }
    let counter = counters::read(conn, organization_id.as_str(), kind)?;
    if offset >= counter.total || paging.limit == 0 {
        return Ok(Way::Near);
    }
    let rank = counter.total - 1 - offset;
    let nearest = rank.unsigned_abs().div_ceil(STEP.unsigned_abs());
    let list = (organization_id, kind);
    let mut known = landmarks.known(list, counter.disorder);
    if known.keys.len() as u64 <= nearest {
        if !walk_far {
            return Ok(Way::Long);
        }
        known = Arc::new(extend(conn, table, organization_id, &known, counter.total)?);
        landmarks.remember(list, Arc::clone(&known));
    }
    let Some((created_at, id)) = usize::try_from(nearest).ok().and_then(|nearest| known.keys.get(nearest))
    else {
        return Ok(Way::Near);
    };
    let skip = (nearest * STEP.unsigned_abs()).cast_signed() - rank;
    let params = params![organization_id.as_str(), *created_at, id.as_str(), paging.limit, skip];
    let conditions = vec![(UP_TO, 3)];
    let rows = if read.is_by_keys(conn, paging) {
        read.page(conn, &table.keys_sql(conditions, &[]), params)?
    } else {
        conn.query(&table.page_sql(conditions, &[], paging.limit), params, read.row)?
    };
    Ok(Way::Known(rows, counter.total.unsigned_abs()))
}

/// Walks the index from the last known landmark towards the newest rows.
fn extend(
    conn: &Conn,
    table: &Table,
    organization_id: OrganizationId,
    known: &Known,
    total: i64,
) -> Result<Known> {
    let mut keys = known.keys.clone();
    let (from_at, from_id) = keys.pop().map_or((i64::MIN, String::new()), |(at, id)| (at, id.to_string()));
    let rows = total - NEWEST - STEP * keys.len() as i64;
    let sql = Sql::owned(format!(
        "SELECT created_at, id FROM (SELECT t.created_at, t.id, ROW_NUMBER() OVER (ORDER BY t.created_at, t.id) AS rank \
         FROM {} t WHERE t.organization_id = $1 AND (t.created_at, t.id) >= ($2, $3) ORDER BY t.created_at, t.id LIMIT $4) ranked \
         WHERE (rank - 1) % {STEP} = 0 ORDER BY created_at, id",
        table.name
    ));
    let params = params![organization_id.as_str(), from_at, &from_id, rows.max(0)];
    keys.extend(conn.query(&sql, params, |row| Ok((row.get(0)?, row.id(1)?)))?);
    Ok(Known { disorder: known.disorder, keys })
}
