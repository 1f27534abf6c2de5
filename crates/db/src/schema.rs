//! The schema of the database, described in the same terms for both engines so that the two can be compared.

use crate::{Db, Engine, Result, Row, Sql, migrate, params};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Table {
    pub name: String,
    pub columns: Vec<Column>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    pub name: String,
    /// `text`, `integer`, `boolean` or `blob`; any other type as the engine names it.
    pub kind: String,
    /// Whether it may be null.
    pub nullable: bool,
}

static SQLITE: Sql = Sql::new(
    "SELECT t.name, c.name, c.type, c.\"notnull\" = 0 AND c.pk = 0
     FROM sqlite_schema t, pragma_table_info(t.name) c
     WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND t.name <> $1
     ORDER BY t.name, c.name",
);

static POSTGRES: Sql = Sql::new(
    "SELECT t.relname::text COLLATE \"C\", a.attname::text COLLATE \"C\", format_type(a.atttypid, NULL), NOT a.attnotnull
     FROM pg_class t JOIN pg_attribute a ON a.attrelid = t.oid
     WHERE t.relkind IN ('r', 'p') AND t.relnamespace = current_schema()::regnamespace
       AND a.attnum > 0 AND NOT a.attisdropped AND t.relname::text <> $1
     ORDER BY 1, 2",
);

impl Db {
    /// Every table except that of applied migrations, in order of name.
    pub async fn schema(&self) -> Result<Vec<Table>> {
        let sql = match self.engine() {
            Engine::Sqlite => &SQLITE,
            Engine::Postgres => &POSTGRES,
        };
        let columns = self.scan(None, move |conn| conn.query(sql, params![migrate::TABLE], column)).await?;
        let mut tables = Vec::<Table>::new();
        for (table, column) in columns {
            match tables.last_mut() {
                Some(last) if last.name == table => last.columns.push(column),
                _ => tables.push(Table { name: table, columns: vec![column] }),
            }
        }
        Ok(tables)
    }
}

fn column(row: &Row<'_>) -> Result<(String, Column)> {
    Ok((row.get(0)?, Column { name: row.get(1)?, kind: normalize(row.text(2)?), nullable: row.get(3)? }))
}

fn normalize(declared: &str) -> String {
    let declared = declared.to_ascii_lowercase();
    match declared.as_str() {
        "text" | "character varying" | "varchar" => "text",
        "bigint" | "integer" | "int" | "smallint" => "integer",
        "boolean" | "bool" => "boolean",
        "blob" | "bytea" => "blob",
        other => other,
    }
    .to_owned()
}
