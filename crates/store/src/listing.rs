//! The one way to read a page of a list.
//!
//! The keys of the page are found first, by an index scan in the requested order, and only then joined with the rest:
//! skipped rows are never read. At most three sort keys, id last, from a bounded set of statement texts.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use podium_api::page::{MAX_LIMIT, Page, Sort, SortKeys};
use podium_db::{Conn, Result, Row, Sql, Value};
use podium_domain::Reach;
use quick_cache::sync::Cache;

use crate::counters;
use crate::lazy_row::Cached;
use crate::stamp::stamp_joins;

/// How many rows are skipped without asking first whether there are as many.
const NEAR: u64 = 1000;

#[derive(Clone, Debug)]
pub struct Paging {
    pub offset: u64,
    /// Maximum number of rows to read.
    pub limit: u32,
    /// The order; none means newest first.
    pub sorts: Vec<Sort>,
}

impl<K: SortKeys> From<&Page<K>> for Paging {
    fn from(page: &Page<K>) -> Self {
        Self { offset: page.offset, limit: page.limit(), sorts: page.sorts.keys().to_vec() }
    }
}

/// A page of a list, and how many items the whole list has.
pub type Listed<T> = (Vec<T>, u64);

/// A list: what is read, from where, and how it can be sorted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    /// The table, alias `t`; statements are cached by it, so no two lists may share one.
    pub name: &'static str,
    /// The column that tells the rows of the list apart.
    pub key: &'static str,
    /// How a row is found again by `page.key`.
    pub on: &'static str,
    pub columns: &'static str,
    pub joins: &'static str,
    /// Wire names of sort keys and their columns.
    pub sorts: &'static [(&'static str, &'static str)],
    /// Conditions that can be added, each with one parameter `{}`.
    pub filters: &'static [&'static str],
}

pub(crate) struct Filter<'a> {
    conditions: Vec<Condition>,
    params: Vec<Value<'a>>,
    narrowed: bool,
}

impl<'a> Filter<'a> {
    /// Rows for which `condition` holds: one that every listing of the table has.
    pub(crate) fn new(condition: &'static str, param: impl Into<Value<'a>>) -> Self {
        Self { conditions: vec![(condition, 1)], params: vec![param.into()], narrowed: false }
    }

    /// Adds a condition of the table's list, if there is a value for it.
    pub(crate) fn and(&mut self, condition: &'static str, param: Option<impl Into<Value<'a>>>) {
        if let Some(param) = param {
            self.narrowed = true;
            self.conditions.push((condition, 1));
            self.params.push(param.into());
        }
    }

    /// Whether it leaves out any row of the organization.
    pub(crate) fn is_narrowed(&self) -> bool {
        self.narrowed
    }

    /// Also a condition with two parameters.
    pub(crate) fn and_either(
        &mut self,
        condition: &'static str,
        one: impl Into<Value<'a>>,
        other: impl Into<Value<'a>>,
    ) {
        self.narrowed = true;
        self.conditions.push((condition, 2));
        self.params.extend([one.into(), other.into()]);
    }
}

/// The key of a composed statement in the cache.
type Known = Cache<(&'static str, Shape), Arc<Sql>>;

/// How many are cached; there are a few for each list in use.
const KNOWN: usize = 1024;

/// What a statement about a list selects.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Shape {
    Count(Vec<Condition>),
    Page(Vec<Condition>, Vec<Sort>, u32),
    Keys(Vec<Condition>, Vec<Sort>),
}

/// A condition with a placeholder `{}` for each of its parameters, and how many it has. If there are more placeholders,
/// the last parameter is used for the remaining ones.
pub(crate) type Condition = (&'static str, usize);

/// The conditions as SQL with numbered parameters, and how many there are.
fn numbered(conditions: &[Condition]) -> (String, usize) {
    let (mut text, mut before) = (String::new(), 0);
    for (condition, params) in conditions {
        if !text.is_empty() {
            text.push_str(" AND ");
        }
        for (place, part) in condition.split("{}").enumerate() {
            if place > 0 {
                // Writing to a string cannot fail.
                let _ = write!(text, "${}", before + place.min(*params));
            }
            text.push_str(part);
        }
        before += params;
    }
    (text, before)
}

/// Where the total comes from when nothing narrows the list.
#[derive(Clone, Copy)]
pub(crate) enum Total<'a> {
    /// From the counter of this kind in this organization.
    Counter(&'a str, &'static str),
    Count,
}

impl Table {
    /// A list of rows with an id, a name and a stamp.
    pub(crate) const NAMED: Self = Self {
        name: "",
        key: "id",
        on: "t.id = page.key",
        columns: "",
        joins: stamp_joins!(),
        sorts: &[("createdAt", "created_at"), ("updatedAt", "updated_at"), ("name", "name_key")],
        filters: &[],
    };

    pub(crate) fn page<T>(
        &self,
        conn: &Conn,
        filter: Filter<'_>,
        paging: &Paging,
        total: Total<'_>,
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Listed<T>> {
        let counted;
        let (count, of): (&Sql, Vec<Value<'_>>) = match total {
            Total::Counter(organization_id, kind) if !filter.narrowed => {
                (&counters::READ, vec![organization_id.into(), kind.into()])
            }
            _ => {
                counted = self.sql(Shape::Count(filter.conditions.clone()));
                (&counted, filter.params.clone())
            }
        };
        let mut total = 0;
        // A counter has several rows, to be added up.
        let mut add = |row: &Row<'_>| {
            total += row.get::<i64>(0)?;
            Ok(())
        };
        if paging.limit == 0 || paging.offset > NEAR {
            conn.query(count, &of, add)?;
            return self.rows(conn, filter, paging, total, read);
        }
        let mut read = read;
        let mut rows = Vec::new();
        let (sql, params) = self.of_page(filter, paging);
        conn.query_both((count, &of), (&sql, &params), &mut add, |row| {
            rows.push(read(row)?);
            Ok(())
        })?;
        Ok((rows, total.unsigned_abs()))
    }

    /// Reads a page of a list whose total is known.
    pub(crate) fn rows<T>(
        &self,
        conn: &Conn,
        filter: Filter<'_>,
        paging: &Paging,
        total: i64,
        read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Listed<T>> {
        if paging.limit == 0 || paging.offset.cast_signed() >= total {
            return Ok((Vec::new(), total.unsigned_abs()));
        }
        let (sql, params) = self.of_page(filter, paging);
        Ok((conn.query(&sql, &params, read)?, total.unsigned_abs()))
    }

    /// Reads a page and the total, where rows may be cached.
    pub(crate) fn cached_page<T>(
        &self,
        conn: &Conn,
        filter: Filter<'_>,
        paging: &Paging,
        total: Total<'_>,
        read: Cached<'_, T>,
    ) -> Result<Listed<T>> {
        if !read.is_by_keys(conn, paging) {
            return self.page(conn, filter, paging, total, read.row);
        }
        let total = match total {
            Total::Counter(organization_id, kind) if !filter.narrowed => {
                counters::read(conn, organization_id, kind)?.total
            }
            _ => {
                let sql = self.sql(Shape::Count(filter.conditions.clone()));
                conn.query_one(&sql, &filter.params, |row| row.get::<i64>(0))?
            }
        };
        self.cached_rows(conn, filter, paging, total, read)
    }

    /// Reads a page of a list whose total is known, where rows may be cached.
    pub(crate) fn cached_rows<T>(
        &self,
        conn: &Conn,
        mut filter: Filter<'_>,
        paging: &Paging,
        total: i64,
        read: Cached<'_, T>,
    ) -> Result<Listed<T>> {
        if !read.is_by_keys(conn, paging) || paging.offset.cast_signed() >= total {
            return self.rows(conn, filter, paging, total, read.row);
        }
        let sql = self.keys_sql(filter.conditions, &paging.sorts);
        filter.params.extend([Value::from(paging.limit), Value::from(paging.offset.cast_signed())]);
        Ok((read.page(conn, &sql, &filter.params)?, total.unsigned_abs()))
    }

    /// The statement that reads the keys of a page; limit and offset are the last two parameters.
    pub(crate) fn keys_sql(&self, conditions: Vec<Condition>, sorts: &[Sort]) -> Arc<Sql> {
        self.sql(Shape::Keys(conditions, sorts.to_vec()))
    }

    /// The statement that reads a page, and its parameters.
    fn of_page<'a>(&self, mut filter: Filter<'a>, paging: &Paging) -> (Arc<Sql>, Vec<Value<'a>>) {
        let sql = self.page_sql(filter.conditions, &paging.sorts, paging.limit);
        filter.params.extend([Value::from(paging.limit), Value::from(paging.offset.cast_signed())]);
        (sql, filter.params)
    }

    /// The statement that reads a page of so many rows; limit and offset are the last two parameters.
    pub(crate) fn page_sql(&self, conditions: Vec<Condition>, sorts: &[Sort], limit: u32) -> Arc<Sql> {
        let most = [20, 100, MAX_LIMIT].into_iter().find(|most| limit <= *most).unwrap_or(u32::MAX);
        self.sql(Shape::Page(conditions, sorts.to_vec(), most))
    }

    fn sql(&self, shape: Shape) -> Arc<Sql> {
        static STATEMENTS: LazyLock<Known> = LazyLock::new(|| Cache::new(KNOWN));
        let key = (self.name, shape);
        if let Some(sql) = STATEMENTS.get(&key) {
            return sql;
        }
        let text = match &key.1 {
            Shape::Count(conditions) => self.count_text(conditions),
            Shape::Page(conditions, sorts, most) => self.page_text(conditions, sorts, *most),
            Shape::Keys(conditions, sorts) => self.keys_text(conditions, sorts),
        };
        let sql = Arc::new(Sql::owned(text));
        STATEMENTS.insert(key, Arc::clone(&sql));
        sql
    }

    fn count_text(&self, conditions: &[Condition]) -> String {
        format!("SELECT COUNT(*) FROM {} t WHERE {}", self.name, numbered(conditions).0)
    }

    /// A plan that serves every limit and offset reckons with a tenth of the table, for which it would read all of it;
    /// `most` says how many rows there are at the most.
    fn page_text(&self, conditions: &[Condition], sorts: &[Sort], most: u32) -> String {
        let Self { name, on, columns, joins, .. } = self;
        let (keys, order) = (self.keys_text(conditions, sorts), self.order(sorts));
        format!(
            "SELECT {columns} FROM (SELECT key FROM ({keys}) keys STOPAT({most})) page \
             JOIN {name} t ON {on}{joins} ORDER BY {order}"
        )
    }

    fn keys_text(&self, conditions: &[Condition], sorts: &[Sort]) -> String {
        let Self { name, key, .. } = self;
        let (conditions, params) = numbered(conditions);
        let order = self.order(sorts);
        let (limit, offset) = (params + 1, params + 2);
        format!(
            "SELECT t.{key} AS key FROM {name} t WHERE {conditions} ORDER BY {order} LIMIT ${limit} OFFSET ${offset}"
        )
    }

    /// The order, ended by the key in the direction of the last sort so that one index serves both directions.
    fn order(&self, sorts: &[Sort]) -> String {
        let newest_first = [Sort { key: "createdAt", descending: true }];
        let sorts = if sorts.is_empty() { &newest_first } else { sorts };
        let mut order = String::new();
        let mut direction = "ASC";
        for sort in sorts {
            direction = if sort.descending { "DESC" } else { "ASC" };
            if let Some((_, column)) = self.sorts.iter().find(|(key, _)| *key == sort.key) {
                let _ = write!(order, "t.{column} {direction}, ");
            }
        }
        let _ = write!(order, "t.{} {direction}", self.key);
        order
    }

    /// One statement for each sort key and each filter: every text that differs in more than combination.
    pub(crate) fn shapes(self) -> Vec<Sql> {
        let mut filter = Filter::new(self.filters[0], "");
        let base = filter.conditions.clone();
        let mut shapes: Vec<Sql> = self
            .sorts
            .iter()
            .flat_map(|(key, _)| [true, false].map(|descending| Sort { key, descending }))
            .map(|sort| Sql::owned(self.page_text(&base, &[sort], MAX_LIMIT)))
            .collect();
        for condition in &self.filters[1..] {
            if condition.matches("{}").count() == 2 {
                filter.and_either(condition, "", "");
            } else {
                filter.and(condition, Some(""));
            }
        }
        shapes.push(Sql::owned(self.count_text(&filter.conditions)));
        shapes.push(Sql::owned(self.page_text(&filter.conditions, &[], MAX_LIMIT)));
        shapes
    }
}

/// Ids as a list parameter, or `None` if all are in reach.
pub(crate) fn reached(reach: &Reach) -> Option<Vec<&str>> {
    match reach {
        Reach::All => None,
        Reach::Only(ids) => Some(ids.iter().map(podium_api::WorkspaceId::as_str).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn parameters_are_numbered_in_order_and_the_last_one_may_stand_in_many_places() {
        let conditions = [("a = {}", 1), ("(b = {} OR c = {})", 1), ("(d = {} OR e = {} OR f = {})", 2)];
        let (text, params) = numbered(&conditions);
        assert_eq!(text, "a = $1 AND (b = $2 OR c = $2) AND (d = $3 OR e = $4 OR f = $4)");
        assert_eq!(params, 4);
    }
}
