//! Databases of earlier versions, with rows in every table, are upgraded, and everything in them can still be read.

use std::path::PathBuf;

use podium_api::openapi::PREFIX;
use podium_api::{Description, Method};
use podium_store::MIGRATIONS;
use podium_testkit::{Engine, TestApp, block_on};
use serde_json::{Value, json};

use super::calls::prepare;
use super::contract;

/// Of these the snapshot keeps some rows at both ends; nothing refers to those in between.
const LONG: &[&str] =
    &["audit_records", "changes", "credentials", "events", "user_sessions", "webhook_deliveries"];
const KEPT: usize = 6;

/// Endpoints that read something which is not in the database.
const ELSEWHERE: &[(&str, &str)] = &[("ListDeployFiles", "archives are on disk")];

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../migrations/snapshots")
}

fn newest() -> u32 {
    MIGRATIONS.last().expect("there is a schema").version
}

/// The snapshots, with the versions of their schemas.
fn snapshots() -> Vec<(u32, Value)> {
    let files = std::fs::read_dir(directory()).expect("there are snapshots");
    let mut found: Vec<(u32, Value)> = files
        .map(|file| {
            let path = file.expect("a file").path();
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
            let text = std::fs::read_to_string(&path).expect("it can be read");
            (name.parse().expect("a version"), serde_json::from_str(&text).expect("it is JSON"))
        })
        .collect();
    found.sort_by_key(|(version, _)| *version);
    found
}

/// Makes every call of the API once, so that there are rows of everything.
async fn populate(app: &TestApp) {
    for endpoint in podium_api::ENDPOINTS {
        let prepared = prepare(app, endpoint).await;
        let owner = prepared.owner(app).await;
        prepared.send(prepared.call(app).by(prepared.caller(&owner))).await;
        app.settle().await;
    }
    let workspace = app.workspace("Linked").await;
    let deployment = app.new_deployment(workspace).await;
    let linked = json!({
        "objectType": "ENVIRONMENT_VARIABLE", "objectKey": "LINKED", "scope": "WORKSPACE", "scopeEntityId": workspace,
        "environmentVariable": { "value": "plain" },
        "links": [{ "scope": "DEPLOYMENT", "scopeEntityId": deployment }],
    });
    app.post(&app.owner, &app.path("/environment-objects"), linked).await.ok();
    app.add_what_no_call_makes().await;
}

/// Leaves out most rows of what is long.
fn shortened(mut snapshot: Value) -> Value {
    for table in LONG {
        let rows = snapshot["tables"][table].as_array_mut().expect("a table");
        let end = rows.len().saturating_sub(KEPT).max(KEPT);
        rows.drain(KEPT.min(rows.len())..end.min(rows.len()));
    }
    snapshot
}

fn rows<'a>(snapshot: &'a Value, table: &str) -> &'a [Value] {
    snapshot["tables"][table].as_array().map(Vec::as_slice).unwrap_or_default()
}

#[test]
fn the_newest_schema_has_a_snapshot_with_rows_in_every_table() {
    let snapshots = snapshots();
    let (version, snapshot) = snapshots.last().expect("there is one");
    assert_eq!(*version, newest(), "make one: cargo xtask snapshot");
    let tables = snapshot["tables"].as_object().unwrap();
    let empty = |name: &&String| rows(snapshot, name).is_empty();
    let empty: Vec<&str> = tables.keys().filter(empty).map(String::as_str).collect();
    assert!(empty.is_empty(), "{empty:?}");
}

/// Writes the snapshot of this version, where it is asked for: a test otherwise.
#[test]
fn a_snapshot_can_be_made_and_started_on() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        populate(&app).await;
        let snapshot = shortened(app.snapshot().await);
        if std::env::var_os("PODIUM_WRITE_SNAPSHOT").is_some() {
            let path = directory().join(format!("{:04}.json", newest()));
            std::fs::create_dir_all(directory()).unwrap();
            std::fs::write(path, serde_json::to_string(&snapshot).unwrap() + "\n").unwrap();
        }
        reads_everything(&TestApp::start_on(Engine::Sqlite, newest(), &snapshot).await, &snapshot).await;
    });
}

#[test]
fn snapshots_are_upgraded_and_read_on_sqlite() {
    block_on(async {
        for (version, snapshot) in snapshots() {
            reads_everything(&TestApp::start_on(Engine::Sqlite, version, &snapshot).await, &snapshot).await;
        }
    });
}

#[test]
fn snapshots_are_upgraded_and_read_on_postgres() {
    block_on(async {
        for (version, snapshot) in snapshots() {
            reads_everything(&TestApp::start_on(Engine::Postgres, version, &snapshot).await, &snapshot).await;
        }
    });
}

/// Reads every resource of every row as the owner.
async fn reads_everything(app: &TestApp, snapshot: &Value) {
    let reads = podium_api::ENDPOINTS.iter().filter(|endpoint| {
        let is_elsewhere = ELSEWHERE.iter().any(|(id, _)| *id == endpoint.id);
        endpoint.method == Method::Get && endpoint.path.contains("{organizationId}") && !is_elsewhere
    });
    for endpoint in reads {
        // What is new can be made beside what was there.
        let new = prepare(app, endpoint).await;
        let query = new.path.split_once('?').map(|(_, query)| format!("?{query}")).unwrap_or_default();
        let paths = paths(endpoint, snapshot);
        assert!(!paths.is_empty(), "{} has nothing to read", endpoint.id);
        for path in paths {
            let answer = app.get(&app.owner, &format!("{path}{query}")).await;
            assert_eq!(answer.code(), 200, "{path}: {}", answer.text());
            contract::describes(endpoint, &answer);
        }
    }
}

/// The paths of an endpoint for all rows of a snapshot.
fn paths(endpoint: &Description, snapshot: &Value) -> Vec<String> {
    let organization = &snapshot["organizationId"];
    let of_organization = |row: &&Value| row.get("organization_id").is_none_or(|of| of == organization);
    let Some(last) = endpoint.path_params.last().filter(|param| **param != "organizationId") else {
        return vec![path(endpoint, organization, |_| Value::Null)];
    };
    let (table, key, _) = place(last);
    let rows = rows(snapshot, &table).iter().filter(of_organization);
    rows.map(|row| {
        path(endpoint, organization, |param| {
            let column = if param == *last { key.to_owned() } else { place(param).2 };
            row[column].clone()
        })
    })
    .collect()
}

fn path(endpoint: &Description, organization: &Value, id: impl Fn(&str) -> Value) -> String {
    let mut path = format!("{PREFIX}{}", endpoint.path);
    for param in endpoint.path_params {
        let id = if *param == "organizationId" { organization.clone() } else { id(param) };
        let id = id.as_str().unwrap_or_else(|| panic!("{} has no {param}", endpoint.id)).to_owned();
        path = path.replace(&format!("{{{param}}}"), &id);
    }
    path
}

/// The table of what a path parameter names, the column of its id there, and that in tables of what is below it: for
/// `declaredSetId`, where nothing else is said, `declared_sets`, `id` and `declared_set_id`.
fn place(param: &str) -> (String, &'static str, String) {
    let words = |c: char| if c.is_uppercase() { format!("_{}", c.to_lowercase()) } else { c.to_string() };
    let column: String = param.chars().map(words).collect();
    let (table, key) = match param {
        "deliveryId" => ("webhook_deliveries".into(), "id"),
        "roleId" => ("custom_roles".into(), "id"),
        "tokenId" => ("api_tokens".into(), "id"),
        "userId" => ("memberships".into(), "user_id"),
        _ => (format!("{}s", column.trim_end_matches("_id")), "id"),
    };
    (table, key, column)
}
