//! All rows of a database as one document, to start an application of a later version on them.

use std::sync::Arc;

use podium_api::{OrganizationId, SubjectId, Timestamp};
use podium_app::App;
use podium_app::secrets::Secrets;
use podium_app::world::World;
use podium_db::{Column, Db, FromColumn, Options, Row, Sql, Table, Target, Value as Param};
use podium_http::Settings;
use podium_store::MIGRATIONS;
use serde_json::{Map, Value, json};

use crate::actors::Actor;
use crate::app::{KEY, START, TestApp};
use crate::databases::{Database, Engine};

/// Rows that no call makes, but browsers, uploads and loops.
const FURTHER: &[&str] = &[
    "INSERT INTO nodes (id, name, first_seen_at, last_seen_at) SELECT id, 'here', created_at, created_at FROM workspaces LIMIT 1",
    "INSERT INTO placements SELECT d.id, n.id FROM deployments d, nodes n LIMIT 1",
    "INSERT INTO clean_ups (deployment_id, began_at) SELECT id, created_at FROM deployments LIMIT 1",
    "INSERT INTO event_spools (deployment_id, segment, read_bytes, dropped, allowance, allowed_since) \
     SELECT id, 1, 2, 3, 4, created_at FROM deployments LIMIT 1",
    "INSERT INTO browser_sessions (hash, credential_hash, subject_id, token_id, is_own, created_at, expires_at) \
     SELECT 'a hash', hash, subject_id, subject_id, 0, 1, 2 FROM credentials LIMIT 1",
    "INSERT INTO door_passes (hash, deployment_id, credential_hash, expires_at) \
     SELECT hash, deployment_id, credential_hash, expires_at FROM door_codes LIMIT 1",
    "INSERT INTO resting_ports (port, deployment_id, released_at) SELECT 18999, id, created_at FROM deployments LIMIT 1",
    "INSERT INTO cluster_workspaces (cluster_id, workspace_id) SELECT c.id, w.id FROM clusters c, workspaces w LIMIT 1",
    "INSERT INTO custom_role_workspaces (role_id, workspace_id) SELECT r.id, w.id FROM custom_roles r, workspaces w LIMIT 1",
    "INSERT INTO staged_blocks (organization_id, deployment_id, deploy_id, kind, block, bytes) \
     SELECT organization_id, deployment_id, id, 'dags', 'a block', 5 FROM deploys LIMIT 1",
    "INSERT INTO uploads (id, deployment_id, deploy_id, kind, object_key, sha256, bytes, unpacked, entries, created_at) \
     SELECT id, deployment_id, id, 'dags', 'a/key', 'a sum', 5, 6, 1, created_at FROM deploys LIMIT 1",
    "INSERT INTO alert_firings (id, alert_id, organization_id, workspace_id, deployment_id, subject_type, subject_id, \
     subject_key, subject_name, dag_id, run_id, reason, count, is_told, since, last_at) \
     SELECT a.id, a.id, a.organization_id, d.workspace_id, d.id, 'DEPLOYMENT', d.id, d.id, d.name, '', '', 'It is down.', \
     1, TRUE, d.created_at, d.created_at FROM alerts a, deployments d LIMIT 1",
    "INSERT INTO alert_watches (alert_id, workspace_id, deployment_id, subject_type, subject_id, subject_key, subject_name, \
     dag_id, run_id, reason, since) \
     SELECT a.id, d.workspace_id, d.id, 'DEPLOYMENT', d.id, d.id, d.name, '', '', 'It is down.', d.created_at \
     FROM alerts a, deployments d LIMIT 1",
    "INSERT INTO alert_mails (id, alert_id, recipient, subject, body, attempts, due_at) \
     SELECT id, id, 'someone@podium.test', 'Down', 'It is down.', 1, created_at FROM alerts LIMIT 1",
];

/// Where the ids of an application begin that starts on a snapshot.
const LATER_IDS: u32 = 400_000;

impl TestApp {
    /// All rows of the database, and who its owner is.
    pub async fn snapshot(&self) -> Value {
        let mut tables = Map::new();
        for table in self.db().schema().await.expect("the schema can be read") {
            tables.insert(table.name.clone(), self.all_rows(table).await.into());
        }
        json!({
            "organizationId": self.organization_id,
            "owner": { "id": self.owner.id, "token": self.owner.token },
            "tables": tables,
        })
    }

    /// Adds rows of what no call makes.
    pub async fn add_what_no_call_makes(&self) {
        for statement in FURTHER {
            self.execute(statement).await;
        }
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
        let rows = self.db().scan(None, move |conn| conn.query(&sql, &[], &read)).await;
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
    // PostgreSQL numbers rows by itself otherwise.
    let is_postgres = matches!(database.target(), Target::Postgres(_));
    let numbering = if is_postgres { " OVERRIDING SYSTEM VALUE" } else { "" };
    let filled = db.write(None, move |tx| {
        for (table, rows) in &tables {
            // Rows that a migration itself has made are in the snapshot, too.
            tx.execute(&Sql::owned(format!("DELETE FROM {table}")), &[])?;
            for row in rows.as_array().into_iter().flatten() {
                insert(tx, table, row.as_object().expect("a row"), numbering)?;
            }
        }
        if is_postgres { go_on_numbering(tx) } else { Ok(()) }
    });
    filled.await.expect("the rows can be made");
    db.close().await;
}

/// Numbers further rows after those that are there.
fn go_on_numbering(tx: &podium_db::Tx) -> podium_db::Result<()> {
    let sql = "SELECT table_name::text, column_name::text FROM information_schema.columns \
               WHERE is_identity = 'YES' AND table_schema = current_schema()";
    let numbered =
        tx.query(&Sql::owned(sql.into()), &[], |row| Ok((row.get::<String>(0)?, row.get::<String>(1)?)))?;
    for (table, column) in numbered {
        let next = format!("COALESCE((SELECT MAX({column}) FROM {table}), 0) + 1");
        let sql = format!("SELECT setval(pg_get_serial_sequence('{table}', '{column}'), {next}, FALSE)");
        tx.query(&Sql::owned(sql), &[], |_| Ok(()))?;
    }
    Ok(())
}

fn insert(
    tx: &podium_db::Tx,
    table: &str,
    row: &Map<String, Value>,
    numbering: &str,
) -> podium_db::Result<()> {
    let names: Vec<&str> = row.keys().map(String::as_str).collect();
    let places: Vec<String> = (1..=names.len()).map(|number| format!("${number}")).collect();
    let sql = format!("INSERT INTO {table} ({}){numbering} VALUES ({})", names.join(", "), places.join(", "));
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
