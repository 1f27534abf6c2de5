//! An environment goes to another runtime and back, and takes its database with it.

use std::fs;

use podium_domain::deployments::plan::Rollout;

use super::bed::{Bed, detail, eventually, trouble};
use crate::local::database::{At, Databases, Kind};
use crate::local::identity::Identity;
use crate::local::options::{AirflowDatabase, Options};
use crate::local::pace::Pace;
use crate::local::postgres::Cluster;
use crate::local::state::State;
use crate::{DataPlane as _, Environment, Hidden};

fn wanted(bed: &Bed, generation: i64, version: &str) -> Environment {
    let mut environment = bed.environment(generation);
    environment.runtime_version = version.into();
    environment
}

/// What the database was brought through: the runtime that did it, and how.
fn migrations(bed: &Bed) -> Vec<(String, String)> {
    bed.starts("db").into_iter().map(|start| (start.version, start.arguments)).collect()
}

#[tokio::test]
async fn nobody_uses_the_database_while_the_newer_runtime_migrates_it() {
    let bed = Bed::new().with_runtime("3.3.1").with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &wanted(&bed, 1, "3.3.1")).await;
    let before = bed.processes();
    let numbers: Vec<String> = before.values().map(|identity| identity.pid.to_string()).collect();
    bed.tell(
        "db",
        &format!(
            "for pid in {}; do grep -s '^State:.[RSDT]' /proc/$pid/status >>\"$told/alive\"; done",
            numbers.join(" ")
        ),
    );
    let seen = bed.bring_up(&plane, &wanted(&bed, 2, "3.3.2")).await;
    assert_eq!(seen.running.runtime_version.as_deref(), Some("3.3.2"));
    assert_eq!(fs::read_to_string(bed.path("told").join("alive")).unwrap(), "");
    assert!(!before.values().any(Identity::is_alive));
    let forth = ("3.3.2".to_owned(), "db migrate".to_owned());
    assert_eq!(migrations(&bed), std::slice::from_ref(&forth));
    bed.bring_up(&plane, &wanted(&bed, 3, "3.3.1")).await;
    let back = ("3.3.2".to_owned(), "db downgrade --yes --to-version 3.3.1".to_owned());
    assert_eq!(migrations(&bed), [forth, back]);
    assert_eq!(bed.state().migrated_for.as_deref(), Some("3.3.1"));
}

#[tokio::test]
async fn a_migration_is_not_cut_off_by_what_is_wanted_meanwhile() {
    let bed = Bed::new().with_runtime("3.3.1").with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &wanted(&bed, 1, "3.3.1")).await;
    bed.tell("db", "while [ ! -e \"$told/go\" ]; do sleep 0.01; done; echo done >\"$told/migrated\"");
    plane.apply(&wanted(&bed, 2, "3.3.2")).await.unwrap();
    eventually(|| bed.starts("db").len() == 1).await;
    plane.apply(&wanted(&bed, 3, "3.3.2")).await.unwrap();
    fs::write(bed.path("told").join("go"), "").unwrap();
    bed.until(&plane, |seen| seen.rollout == Rollout::Done).await;
    assert!(bed.path("told").join("migrated").exists());
    assert_eq!(migrations(&bed).len(), 1);
}

#[tokio::test]
async fn a_migration_that_fails_says_why_and_is_tried_again() {
    let bed = Bed::new().with_runtime("3.3.1").with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &wanted(&bed, 1, "3.3.1")).await;
    let said =
        "(sqlite3.OperationalError) table dag is locked [SQL: ALTER TABLE dag] at /srv/data/airflow.db";
    bed.tell("db", &format!("echo '{said}' >&2; exit 1"));
    plane.apply(&wanted(&bed, 2, "3.3.2")).await.unwrap();
    let seen = bed.until(&plane, |seen| detail(seen, "database").is_some_and(|why| why.contains(said))).await;
    assert_eq!(trouble(&seen, "database").unwrap(), "the metadata database cannot be migrated");
    assert_eq!(seen.running.runtime_version.as_deref(), Some("3.3.1"), "that is what its database is for");
    bed.untell("db");
    bed.until(&plane, |seen| seen.rollout == Rollout::Done).await;
    assert!(migrations(&bed).len() > 1);
}

#[tokio::test]
async fn a_database_stays_where_it_was_made() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let before = bed.processes();
    drop(plane);
    let server = |options: &mut Options, _: &mut Pace| {
        options.database =
            AirflowDatabase::Server(Hidden::new("postgres://admin@127.0.0.1:1/postgres".into()));
    };
    let plane = bed.open_with(server);
    bed.bring_up(&plane, &bed.environment(1)).await;
    assert_eq!(bed.processes(), before, "its file is still its database");
}

#[tokio::test]
async fn a_database_on_a_server_is_not_looked_for_in_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let databases = |choice: &AirflowDatabase| {
        let cluster =
            Cluster::new(directory.path().into(), None, Hidden::new("secret".into()), Pace::default());
        Databases::new(choice, directory.path(), cluster)
    };
    let made = State { server_runtime: Some("3.3.2".into()), ..State::default() };
    let files = databases(&AirflowDatabase::Sqlite);
    let why = files.of(&made).await.unwrap_err();
    assert!(why.user_text().as_str().contains("--airflow-database"), "{why}");
    let url = Hidden::new("postgres://admin@127.0.0.1:1/postgres".into());
    let server = databases(&AirflowDatabase::Server(url));
    assert!(matches!(server.of(&made).await, Ok(At::Server { connections: None, .. })));
    assert!(matches!(server.of(&State::default()).await, Ok(At::Server { .. })), "a new one");
    let file = State { migrated_for: Some("3.3.2".into()), ..State::default() };
    let private = State { is_private: true, ..made.clone() };
    for databases in [&files, &server, &databases(&AirflowDatabase::Private)] {
        assert_eq!(databases.kind_of(&file), Kind::Files);
        assert_eq!(databases.kind_of(&made), Kind::Server);
        assert_eq!(databases.kind_of(&private), Kind::Private);
    }
}
