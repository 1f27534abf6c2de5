//! Rows that are decoded only if that is needed.

use podium_api::{Id, OrganizationId, WorkspaceId};
use podium_db::{Conn, JoinedRow, Result, Row, RowsRead, Sql, Value};

use crate::columns::Columns;
use crate::listing::Paging;

/// The longest page that is read by its keys.
const SHORT: u32 = 100;

/// Which column of a resource's statement holds what; the first column is the id.
pub(crate) struct Layout {
    pub organization: usize,
    pub workspace: Option<usize>,
    pub version: usize,
    /// Every row that the statement reads.
    pub rows: &'static [JoinedRow],
}

/// A row of a resource, decoded on demand.
pub struct LazyRow<'r, T> {
    row: &'r Row<'r>,
    layout: &'static Layout,
    read: fn(&Row<'_>) -> Result<T>,
}

impl<'r, T> LazyRow<'r, T> {
    pub(crate) fn new(row: &'r Row<'r>, layout: &'static Layout, read: fn(&Row<'_>) -> Result<T>) -> Self {
        Self { row, layout, read }
    }

    pub fn id(&self) -> Result<Id> {
        self.row.id(0)
    }

    pub fn version(&self) -> Result<i64> {
        self.row.get(self.layout.version)
    }

    pub fn organization_id(&self) -> Result<OrganizationId> {
        self.row.id(self.layout.organization)
    }

    /// The workspace that it belongs to, if it belongs to one.
    pub fn workspace_id(&self) -> Result<Option<WorkspaceId>> {
        self.layout.workspace.map(|column| self.row.id(column)).transpose()
    }

    /// A hash of all columns: if the ids are equal as well, so are the decoded rows.
    pub fn fingerprint(&self) -> Result<u128> {
        self.row.fingerprint()
    }

    /// How many bytes of text and binary data it holds.
    pub fn size(&self) -> Result<usize> {
        self.row.size()
    }

    /// The rows that it was joined from; `None` if their changes would not be reported.
    pub fn rows_read(&self) -> Result<Option<RowsRead>> {
        self.row.rows_read(self.layout.rows)
    }

    pub fn read(&self) -> Result<T> {
        (self.read)(self.row)
    }
}

/// Renders the resources of a list.
pub trait Render<R, T> {
    /// The cached rendering, if reading the row in this unit would give the same.
    fn cached(&self, conn: &Conn, id: Id) -> Option<T>;
    fn render(&self, row: &LazyRow<'_, R>) -> Result<T>;
}

/// How rows are read that may be cached: where changes of rows are reported, the keys first, and then only rows that are
/// not cached. Long pages are read by one statement, because most of their rows will not be.
pub(crate) struct Cached<'a, T> {
    /// The cached rendering of a row.
    pub cached: &'a dyn Fn(&Conn, Id) -> Option<T>,
    pub row: &'a dyn Fn(&Row<'_>) -> Result<T>,
    /// Reads one row, by its id and its organization.
    pub one: &'static Sql,
}

impl<T> Clone for Cached<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Cached<'_, T> {}

impl<T> Cached<'_, T> {
    /// Whether a page is read by its keys.
    pub(crate) fn is_by_keys(&self, conn: &Conn, paging: &Paging) -> bool {
        (1..=SHORT).contains(&paging.limit) && conn.follows_changes()
    }

    /// Reads the page with these keys. The first parameter is the organization.
    pub(crate) fn page(&self, conn: &Conn, keys: &Sql, params: &[Value<'_>]) -> Result<Vec<T>> {
        let keys: Vec<Id> = conn.query(keys, params, |row| row.id(0))?;
        let mut page = Vec::with_capacity(keys.len());
        for id in keys {
            match (self.cached)(conn, id) {
                Some(cached) => page.push(cached),
                None => page.extend(conn.query_opt(self.one, &[id.as_str().into(), params[0]], self.row)?),
            }
        }
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use crate::listing::Table;
    use crate::{MIGRATIONS, deployments, workspaces};

    use super::*;

    #[test]
    fn layouts_name_every_row_that_a_cached_resource_is_made_from() {
        for (table, layout) in
            [(workspaces::TABLE, &workspaces::LAYOUT), (deployments::TABLE, &deployments::LAYOUT)]
        {
            let Table { name, columns, joins, .. } = table;
            let columns: Vec<&str> = columns.split(", ").collect();
            let alias = |row: &JoinedRow| {
                let rowid = columns[row.rowid].strip_prefix("ROWID(").and_then(|rest| rest.strip_suffix(')'));
                rowid.unwrap_or_else(|| panic!("{name}: column {} is no rowid", row.rowid))
            };
            let (own, joined) = layout.rows.split_first().unwrap();
            assert_eq!((own.table, alias(own), columns[own.key]), (name, "t", "t.id"));
            for row in joined {
                let (table, alias, key) = (row.table, alias(row), columns[row.key]);
                assert!(
                    joins.contains(&format!(" JOIN {table} {alias} ON {alias}.id = {key}")),
                    "{name}: {alias}"
                );
            }
            assert_eq!(joins.matches(" JOIN ").count(), joined.len(), "{name}");
            assert_eq!(columns[layout.organization], "t.organization_id");
            assert_eq!(columns[layout.version], "t.version");
            assert!(layout.workspace.is_none_or(|column| columns[column] == "t.workspace_id"));
        }
    }

    #[test]
    fn no_statement_changes_rows_without_a_report() {
        let statements = crate::all_statements();
        let texts = statements.iter().map(|sql| sql.text()).chain(MIGRATIONS.iter().map(|one| one.sqlite));
        for text in texts {
            for unreported in ["REPLACE", "WITHOUT ROWID", "VACUUM"] {
                assert!(!text.to_uppercase().contains(unreported), "{unreported}: {text}");
            }
        }
        let deletes = statements.iter().map(|sql| sql.text()).filter(|text| text.starts_with("DELETE"));
        deletes
            .for_each(|text| assert!(text.contains(" WHERE "), "SQLite would not report its rows: {text}"));
    }
}
