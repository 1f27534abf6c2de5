//! All rows of a database as one document, to start an application of a later version on them.

use std::sync::Arc;

use podium_api::{OrganizationId, SubjectId, Timestamp};
use podium_app::App;
use podium_app::secrets::Secrets;
use podium_app::world::World;
use podium_db::{Column, Db, FromColumn, Options, Row, Sql, Table, Value as Param};
use podium_http::Settings;
use podium_store::MIGRATIONS;
use serde_json::{Map, Value, json};

use crate::actors::Actor;
use crate::app::{KEY, START, TestApp};
use crate::databases::{Database, Engine};

/// Where the ids of an application begin that starts on a snapshot.
const LATER_IDS: u32 = 400_000;

impl TestApp {
    /// All rows of the database, and who its owner is.
    pub async fn snapshot(&self) -> Value {
        let mut tables = Map::new();
        for table in self.app.db(&self.system).schema().await.expect("the schema can be read") {
            tables.insert(table.name.clone(), self.all_rows(table).await.into());
        }
        json!({
            "organizationId": self.organization_id,
            "owner": { "id": self.owner.id, "token": self.owner.token },
            "tables": tables,
        })
    }

    async fn all_rows(&self, table: Table) -> Vec<Value> {
        let names: Vec<&str> = table.columns.iter().map(|column| column.name.as_str()).collect();
        let sql = Sql::owned(format!("SELECT {} FROM {}", names.join(", "), table.name));
        let columns = table.columns;
        let read = move |row: &Row<'_>| {
            let cells = columns
                .iter()
                .enumerate()
                .map(|(at, column)| Ok((column.name.clone(), cell(row, at, column)?)));
            cells.collect::<podium_db::Result<Map<String, Value>>>().map(Value::Object)
        };
        let rows = self.app.db(&self.system).scan(None, move |conn| conn.query(&sql, &[], &read)).await;
        rows.unwrap_or_else(|error: podium_db::Error| panic!("{}: {error}", table.name))
    }

    /// Starts an application on a snapshot that was made with this version of the schema.
    pub async fn start_on(engine: Engine, version: u32, snapshot: &Value) -> Self {
        let database = Arc::new(Database::create(engine).await);
        fill(&database, version, snapshot).await;
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        let owner = Actor {
            id: text(&snapshot["owner"]["id"]).parse::<SubjectId>().expect("an id"),
            token: text(&snapshot["owner"]["token"]),
        };
        let organization_id = text(&snapshot["organizationId"]).parse::<OrganizationId>().expect("an id");
        let world = Arc::new(World::fixed_from(Timestamp::from_millis(START), LATER_IDS));
        let files = Arc::new(tempfile::tempdir().expect("a directory for files"));
        let secrets = Secrets::from_text(KEY).expect("the key is long enough");
        let config = crate::app::config(&files);
        let started = App::start(database.target(), config, secrets, Arc::clone(&world));
        let started = started.await.expect("it starts on what was there");
        let parts = (world, database, files);
        Self::of(started.app, started.system, Settings::default(), parts, organization_id, owner)
    }
}

fn cell(row: &Row<'_>, at: usize, column: &Column) -> podium_db::Result<Value> {
    fn get<T: FromColumn + Into<Value>>(row: &Row<'_>, at: usize) -> podium_db::Result<Value> {
        Ok(row.get::<Option<T>>(at)?.map_or(Value::Null, Into::into))
    }
    match column.kind.as_str() {
        "text" => get::<String>(row, at),
        "integer" => get::<i64>(row, at),
        "boolean" => get::<bool>(row, at),
        // A list of numbers.
        "blob" => get::<Vec<u8>>(row, at),
        kind => panic!("a column of the kind {kind}"),
    }
}

/// Makes the schema of a version, and the rows of a snapshot in it.
async fn fill(database: &Database, version: u32, snapshot: &Value) {
    let mut options = Options::new(database.target());
    options.connections = 2;
    let db = Db::open(options).await.expect("the database answers");
    let then: Vec<_> = MIGRATIONS.iter().filter(|one| one.version <= version).copied().collect();
    db.migrate(&then).await.expect("the schema of that time can be made");
    let tables = snapshot["tables"].as_object().expect("tables").clone();
    let filled = db.write(None, move |tx| {
        for (table, rows) in &tables {
            // Rows that a migration itself has made are in the snapshot, too.
            tx.execute(&Sql::owned(format!("DELETE FROM {table}")), &[])?;
            for row in rows.as_array().into_iter().flatten() {
                insert(tx, table, row.as_object().expect("a row"))?;
            }
        }
        Ok::<_, podium_db::Error>(())
    });
    filled.await.expect("the rows can be made");
    db.close().await;
}

fn insert(tx: &podium_db::Tx, table: &str, row: &Map<String, Value>) -> podium_db::Result<()> {
    let names: Vec<&str> = row.keys().map(String::as_str).collect();
    let places: Vec<String> = (1..=names.len()).map(|number| format!("${number}")).collect();
    let sql = format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), places.join(", "));
    let blobs: Vec<Vec<u8>> = row
        .values()
        .map(|value| {
            value.as_array().into_iter().flatten().filter_map(|byte| byte.as_u64()?.try_into().ok()).collect()
        })
        .collect();
    let params: Vec<Param<'_>> = row
        .values()
        .zip(&blobs)
        .map(|(value, blob)| match value {
            Value::Null => Param::Null,
            Value::Bool(flag) => Param::Bool(*flag),
            Value::Number(number) => Param::Int(number.as_i64().expect("a whole number")),
            Value::String(text) => Param::Text(text),
            Value::Array(_) => Param::Blob(blob),
            Value::Object(_) => panic!("{table} holds an object"),
        })
        .collect();
    tx.execute(&Sql::owned(sql), &params)?;
    Ok(())
}
