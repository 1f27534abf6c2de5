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

#[cfg(test)]
mod tests {
    use crate::listing::Table;
    use crate::{MIGRATIONS, deployments, statements, workspaces};

    use super::*;

    #[test]
    fn every_row_that_a_kept_resource_is_made_from_is_named() {
        for (table, shape) in
            [(workspaces::TABLE, &workspaces::SHAPE), (deployments::TABLE, &deployments::SHAPE)]
        {
            let Table { name, columns, joins, .. } = table;
            let columns: Vec<&str> = columns.split(", ").collect();
            let alias = |row: &JoinedRow| {
                let rowid = columns[row.rowid].strip_prefix("ROWID(").and_then(|rest| rest.strip_suffix(')'));
                rowid.unwrap_or_else(|| panic!("{name}: column {} is no rowid", row.rowid))
            };
            let (own, joined) = shape.rows.split_first().unwrap();
            assert_eq!((own.table, alias(own), columns[own.key]), (name, "t", "t.id"));
            for row in joined {
                let (table, alias, key) = (row.table, alias(row), columns[row.key]);
                assert!(
                    joins.contains(&format!(" JOIN {table} {alias} ON {alias}.id = {key}")),
                    "{name}: {alias}"
                );
            }
            assert_eq!(joins.matches(" JOIN ").count(), joined.len(), "{name}");
            assert_eq!(columns[shape.organization], "t.organization_id");
            assert_eq!(columns[shape.version], "t.version");
            assert!(shape.workspace.is_none_or(|column| columns[column] == "t.workspace_id"));
        }
    }

    #[test]
    fn nothing_changes_rows_unreported() {
        let statements = statements();
        let texts = statements.iter().map(|sql| sql.text()).chain(MIGRATIONS.iter().map(|one| one.sqlite));
        for text in texts {
            for unreported in ["REPLACE", "WITHOUT ROWID", "VACUUM"] {
                assert!(!text.to_uppercase().contains(unreported), "{unreported}: {text}");
            }
        }
        let deletes = statements.iter().map(|sql| sql.text()).filter(|text| text.starts_with("DELETE"));
        deletes.for_each(|text| assert!(text.contains(" WHERE "), "SQLite does not report its rows: {text}"));
    }
}
