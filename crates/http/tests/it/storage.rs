//! The two engines hold the same, and count the same.

use podium_api::Id;
use std::collections::BTreeMap;

use podium_api::enums::ClusterStatus;
use podium_db::{Sql, Value as Parameter};
use podium_testkit::{Engine, TestApp, block_on, on_both_engines};
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::coverage::for_all;

#[test]
fn both_engines_have_the_same_tables_and_columns() {
    block_on(async {
        let schema = async |engine| {
            let app = TestApp::start(engine).await;
            app.app.db(&app.system).schema().await.expect("a schema")
        };
        let (sqlite, postgres) = (schema(Engine::Sqlite).await, schema(Engine::Postgres).await);
        assert!(sqlite.len() > 15, "{sqlite:?}");
        assert_eq!(sqlite, postgres);
    });
}

#[test]
fn the_rights_of_a_caller_are_found_without_walking_those_of_everybody() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let is_it =
            |text: &str| ["grants g", "UNION ALL", "team_members m"].iter().all(|part| text.contains(part));
        let statement = podium_store::statements(&app.system).into_iter().find(|sql| is_it(sql.text()));
        let explain = Sql::owned(format!("EXPLAIN QUERY PLAN {}", statement.expect("the statement").text()));
        let plan = app.app.db(&app.system).scan(None, move |conn| {
            conn.query(&explain, &[Parameter::Text("organization"), Parameter::Text("user")], |row| {
                row.get::<String>(3)
            })
        });
        let plan = plan.await.expect("a plan").join("\n");
        assert!(plan.contains("(organization_id=? AND subject_id=?)"), "{plan}");
    });
}

#[test]
fn readers_of_a_log_begin_at_their_position() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let statements = podium_store::statements(&app.system).into_iter();
        let statements: Vec<&str> =
            statements.map(Sql::text).filter(|text| text.contains("SUCCEEDS(")).collect();
        assert!(statements.len() > 10, "{statements:#?}");
        for text in statements {
            let explain = Sql::owned(format!("EXPLAIN QUERY PLAN {text}"));
            let count = (1..20).rev().find(|number| text.contains(&format!("${number}"))).unwrap_or(0);
            let plan = app.app.db(&app.system).scan(None, move |conn| {
                let parameters = vec![Parameter::Null; count];
                conn.query(&explain, &parameters, |row| row.get::<String>(3))
            });
            let plan = plan.await.expect("a plan").join("\n");
            assert!(plan.contains("transaction_id=? AND sequence>?"), "{text}\n{plan}");
        }
    });
}

on_both_engines! {
    async fn every_statement_can_be_prepared(app) {
        let statements = podium_store::statements(&app.system);
        assert!(statements.len() > 150, "{}", statements.len());
        assert_eq!(app.app.db(&app.system).prepare(&statements).await, []);
    }

    async fn totals_are_what_counting_gives_after_any_creates_and_deletes(app) {
        let body = json!({ "ipAddressRange": "127.0.0.0/8" });
        app.post(&app.owner, &app.path("/allowed-ip-address-ranges"), body).await.ok();
        let steps = vec((0..KINDS.len(), any::<bool>(), any::<prop::sample::Index>()), 1..40);
        for_all(6, &steps, |steps| run_through(&app, steps));
    }
}

/// Path, name of the list, and body of what can be created and deleted.
const KINDS: [(&str, &str); 7] = [
    ("/workspaces", "workspaces"),
    ("/teams", "teams"),
    ("/roles", "roles"),
    ("/clusters", "clusters"),
    ("/tokens", "tokens"),
    ("/allowed-ip-address-ranges", "allowedIpAddressRanges"),
    ("/invites", "users"),
];

async fn run_through(app: &TestApp, steps: Vec<(usize, bool, prop::sample::Index)>) {
    let mut made: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (kind, is_delete, which) in steps {
        let (path, _) = KINDS[kind];
        let ids = made.entry(kind).or_default();
        if is_delete && !ids.is_empty() {
            let id = ids.remove(which.index(ids.len()));
            app.delete(&app.owner, &app.path(&format!("{path}/{id}"))).await.ok();
        } else {
            let made = app.post(&app.owner, &app.path(path), body(app, kind)).await.ok();
            let id = if path == "/invites" { &made["inviteId"] } else { &made["id"] };
            if path == "/clusters" {
                let id = id.as_str().and_then(|id| id.parse().ok()).expect("an id");
                app.settle_cluster(id, ClusterStatus::Created).await;
            }
            ids.push(id.as_str().expect("an id").to_owned());
        }
        for (path, name) in KINDS {
            let path = app.path(&path.replace("/invites", "/users"));
            let list = app.get(&app.owner, &format!("{path}?limit=1000")).await.ok();
            assert_eq!(list["totalCount"], list[name].as_array().expect("items").len(), "{name}");
        }
    }
}

fn body(app: &TestApp, kind: usize) -> Value {
    let name = app.world.id::<Id>().to_string();
    match KINDS[kind].0 {
        "/clusters" => json!({
            "cloudProvider": "AWS", "name": name, "region": "us-east-1", "type": "DEDICATED",
            "vpcSubnetRange": "172.20.0.0/20",
        }),
        "/roles" => json!({ "name": name, "scopeType": "DAG", "permissions": ["dag.airflow.dag.get"] }),
        "/tokens" => json!({ "name": name, "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER" }),
        "/allowed-ip-address-ranges" => {
            let counter = u32::from_str_radix(&name[9..13], 36).expect("an id counts");
            json!({ "ipAddressRange": format!("10.{}.{}.0/24", counter / 256 % 256, counter % 256) })
        }
        "/invites" => json!({ "inviteeEmail": format!("{name}@podium.test"), "role": "ORGANIZATION_MEMBER" }),
        _ => json!({ "name": name }),
    }
}
