//! An environment changes to another runtime and back, with its database.

use std::fs;

use podium_domain::deployments::plan::Rollout;

use super::fixture::{Fixture, detail, eventually, trouble};
use crate::local::database::{Databases, Kind, Location};
use crate::local::identity::Identity;
use crate::local::options::{AirflowDatabase, Options};
use crate::local::postgres::Cluster;
use crate::local::state::State;
use crate::local::timing::Timing;
use crate::{DataPlane as _, Environment, Secret};

fn wanted(fixture: &Fixture, generation: i64, version: &str) -> Environment {
    let mut environment = fixture.environment(generation);
    environment.spec.runtime_version = version.into();
    environment
}

/// What the database was brought through: the runtime that did it, and how.
fn migrations(fixture: &Fixture) -> Vec<(String, String)> {
    fixture.starts("db").into_iter().map(|start| (start.version, start.arguments)).collect()
}

#[tokio::test]
async fn nothing_uses_the_database_during_a_migration() {
    let fixture = Fixture::new().with_runtime("3.3.1").with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &wanted(&fixture, 1, "3.3.1")).await;
    let before = fixture.processes();
    let pids: Vec<String> = before.values().map(|identity| identity.pid.to_string()).collect();
    fixture.set_script(
        "db",
        &format!(
            "for pid in {}; do grep -s '^State:.[RSDT]' /proc/$pid/status >>\"$told/alive\"; done",
            pids.join(" ")
        ),
    );
    let seen = fixture.bring_up(&plane, &wanted(&fixture, 2, "3.3.2")).await;
    assert_eq!(seen.running.runtime_version.as_deref(), Some("3.3.2"));
    assert_eq!(fs::read_to_string(fixture.path("told").join("alive")).unwrap(), "");
    assert!(!before.values().any(Identity::is_alive));
    let forth = ("3.3.2".to_owned(), "db migrate".to_owned());
    assert_eq!(migrations(&fixture), std::slice::from_ref(&forth));
    fixture.bring_up(&plane, &wanted(&fixture, 3, "3.3.1")).await;
    let back = ("3.3.2".to_owned(), "db downgrade --yes --to-version 3.3.1".to_owned());
    assert_eq!(migrations(&fixture), [forth, back]);
    assert_eq!(fixture.state().migrated_for.as_deref(), Some("3.3.1"));
}

#[tokio::test]
async fn a_migration_is_not_interrupted_by_a_new_order() {
    let fixture = Fixture::new().with_runtime("3.3.1").with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &wanted(&fixture, 1, "3.3.1")).await;
    fixture
        .set_script("db", "while [ ! -e \"$told/go\" ]; do sleep 0.01; done; echo done >\"$told/migrated\"");
    plane.apply(&wanted(&fixture, 2, "3.3.2")).await.unwrap();
    eventually(|| fixture.starts("db").len() == 1).await;
    plane.apply(&wanted(&fixture, 3, "3.3.2")).await.unwrap();
    fs::write(fixture.path("told").join("go"), "").unwrap();
    fixture.until(&plane, |seen| seen.rollout == Rollout::Done).await;
    assert!(fixture.path("told").join("migrated").exists());
    assert_eq!(migrations(&fixture).len(), 1);
}

#[tokio::test]
async fn a_failed_migration_is_reported_and_retried() {
    let fixture = Fixture::new().with_runtime("3.3.1").with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &wanted(&fixture, 1, "3.3.1")).await;
    let said =
        "(sqlite3.OperationalError) table dag is locked [SQL: ALTER TABLE dag] at /srv/data/airflow.db";
    fixture.set_script("db", &format!("echo '{said}' >&2; exit 1"));
    plane.apply(&wanted(&fixture, 2, "3.3.2")).await.unwrap();
    let seen =
        fixture.until(&plane, |seen| detail(seen, "database").is_some_and(|why| why.contains(said))).await;
    assert_eq!(trouble(&seen, "database").unwrap(), "the metadata database cannot be migrated");
    assert_eq!(seen.running.runtime_version.as_deref(), Some("3.3.1"), "that is what its database is for");
    fixture.clear_script("db");
    fixture.until(&plane, |seen| seen.rollout == Rollout::Done).await;
    assert!(migrations(&fixture).len() > 1);
}

#[tokio::test]
async fn a_database_stays_where_it_was_created() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    drop(plane);
    let server = |options: &mut Options, _: &mut Timing| {
        options.database =
            AirflowDatabase::Server(Secret::new("postgres://admin@127.0.0.1:1/postgres".into()));
    };
    let plane = fixture.open_with(server);
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert_eq!(fixture.processes(), before, "its file is still its database");
}

#[tokio::test]
async fn a_database_on_a_server_is_not_searched_for_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let databases = |choice: &AirflowDatabase| {
        let cluster =
            Cluster::new(directory.path().into(), None, Secret::new("secret".into()), Timing::default());
        Databases::new(choice, directory.path(), cluster)
    };
    let made = State { server_runtime: Some("3.3.2".into()), ..State::default() };
    let files = databases(&AirflowDatabase::Sqlite);
    let why = files.of(&made).await.unwrap_err();
    assert!(why.user_text().as_str().contains("--airflow-database"), "{why}");
    let url = Secret::new("postgres://admin@127.0.0.1:1/postgres".into());
    let server = databases(&AirflowDatabase::Server(url));
    assert!(matches!(server.of(&made).await, Ok(Location::Server { connections: None, .. })));
    assert!(matches!(server.of(&State::default()).await, Ok(Location::Server { .. })), "a new one");
    let file = State { migrated_for: Some("3.3.2".into()), ..State::default() };
    let private = State { is_private: true, ..made.clone() };
    for databases in [&files, &server, &databases(&AirflowDatabase::Private)] {
        assert_eq!(databases.kind_of(&file), Kind::Files);
        assert_eq!(databases.kind_of(&made), Kind::Server);
        assert_eq!(databases.kind_of(&private), Kind::Private);
    }
}
