//! What is live is known at every moment: it is what a release that cannot go live is reverted to.

use std::fs;

use podium_api::{DeployId, Id};
use podium_domain::deployments::Bundle;
use podium_domain::deployments::plan::{Observed, Rollout};

use super::fixture::{Fixture, eventually, trouble};
use super::projects::{at, with_installer};
use crate::local::Local;
use crate::{DataPlane as _, Environment};

/// Applies a release that cannot go live; returns what runs then.
async fn refused(fixture: &Fixture, plane: &Local, environment: &Environment) -> Observed {
    plane.apply(environment).await.unwrap();
    fixture.until(plane, |seen| matches!(seen.rollout, Rollout::Refused(_))).await
}

/// The DAGs that are current.
fn current(fixture: &Fixture) -> String {
    fs::read_to_string(fixture.place().code().join("dags/current/dag.py")).unwrap_or_default()
}

/// Applies a release and waits until it is live, but its rollout does not end.
async fn go_live(fixture: &Fixture, plane: &Local, environment: &Environment) {
    let version = environment.spec.release.dag_version.clone().unwrap();
    fixture.set_script("scheduler", "exit 1");
    plane.apply(environment).await.unwrap();
    eventually(|| current(fixture) == version).await;
    // Other packages restart it, and it does not come up.
    fixture.until(plane, |seen| trouble(seen, "scheduler").is_some()).await;
}

#[tokio::test]
async fn a_refused_release_leaves_the_one_that_is_rolling_out() {
    let fixture = with_installer();
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "project-1-package")).await;
    go_live(&fixture, &plane, &at(&fixture, 2, "project-2-otherpackage")).await;
    let bad = at(&fixture, 3, "project-3-badpackage");
    let seen = refused(&fixture, &plane, &bad).await;
    assert_eq!(seen.running.dag_version.as_deref(), Some("project-2-otherpackage"));
    assert_eq!(current(&fixture), "project-2-otherpackage");
    let (generation, report) = plane.rollout_report(&fixture.at()).await.unwrap().unwrap();
    assert_eq!((generation, report.files), (3, None), "nothing of the other release is in its report");

    drop(plane);
    let plane = fixture.open();
    let seen = refused(&fixture, &plane, &bad).await;
    assert_eq!(seen.running.dag_version.as_deref(), Some("project-2-otherpackage"), "after a restart, too");
}

#[tokio::test]
async fn a_rollout_that_is_resumed_after_a_restart_compares_with_what_was_live_before() {
    let fixture = with_installer();
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "project-1-package")).await;
    let second = at(&fixture, 2, "project-2-otherpackage");
    go_live(&fixture, &plane, &second).await;
    drop(plane);
    fixture.clear_script("scheduler");
    let plane = fixture.open();
    fixture.bring_up(&plane, &second).await;
    let (_, report) = plane.rollout_report(&fixture.at()).await.unwrap().unwrap();
    assert_eq!(report.is_parsed, Some(true), "Airflow has been asked");
    assert_eq!(report.files.unwrap().changed, ["dags/dag.py", "requirements.txt"]);
    fixture.bring_up(&plane, &Environment { generation: 3, ..second }).await;
    let (_, report) = plane.rollout_report(&fixture.at()).await.unwrap().unwrap();
    assert_eq!((report.is_parsed, report.files), (None, None), "nothing has changed since");
}

#[tokio::test]
async fn hibernating_before_a_release_is_live_keeps_what_was() {
    let fixture = with_installer();
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "project-1-package")).await;
    // It is never prepared.
    plane.apply(&at(&fixture, 2, "missing")).await.unwrap();
    fixture.until(&plane, |seen| trouble(seen, "code").is_some()).await;
    let asleep = Environment { is_hibernating: true, ..at(&fixture, 3, "project-2-badpackage") };
    plane.apply(&asleep).await.unwrap();
    let seen = fixture.until(&plane, |seen| seen.rollout == Rollout::Done).await;
    assert_eq!(seen.running.dag_version.as_deref(), Some("project-1-package"));
    let seen = refused(&fixture, &plane, &at(&fixture, 4, "project-2-badpackage")).await;
    assert_eq!(
        seen.running.dag_version.as_deref(),
        Some("project-1-package"),
        "there is something to go back to"
    );
    fixture.bring_up(&plane, &at(&fixture, 5, "project-1-package")).await;
}

#[tokio::test]
async fn an_environment_that_is_stopped_before_a_release_is_live_keeps_what_was() {
    let fixture = with_installer();
    let plane = fixture.open_with(|options, _| options.environment_disk = Some(4 << 20));
    fixture.bring_up(&plane, &at(&fixture, 1, "project-1-package")).await;
    fs::write(fixture.place().user_home().join("large"), vec![1; 6 << 20]).unwrap();
    fixture.until(&plane, |seen| trouble(seen, "disk").is_some()).await;
    plane.apply(&at(&fixture, 2, "project-2-badpackage")).await.unwrap();
    let is_stopped = |seen: &Observed| {
        seen.generation == 2 && seen.rollout == Rollout::Done && trouble(seen, "disk").is_some()
    };
    let seen = fixture.until(&plane, is_stopped).await;
    assert_eq!(seen.running.dag_version.as_deref(), Some("project-1-package"));
}

#[tokio::test]
async fn a_bundle_is_there_before_the_dags_that_come_with_it_are_live() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "first")).await;
    let mut second = at(&fixture, 2, "second");
    second.spec.release.bundles = vec![Bundle {
        mount_path: "dbt".into(),
        bundle_type: "dbt".into(),
        version: "missing".into(),
        deploy_id: DeployId::from_raw(Id::from_parts(1, 1, 3)),
    }];
    plane.apply(&second).await.unwrap();
    let seen = fixture.until(&plane, |seen| trouble(seen, "code").is_some()).await;
    assert_eq!(trouble(&seen, "code").unwrap(), "the code of version missing is not in the object store");
    assert_eq!(current(&fixture), "first");
    second.generation = 3;
    second.spec.release.bundles[0].version = "there".into();
    fixture.bring_up(&plane, &second).await;
    assert_eq!(fs::read_to_string(fixture.place().home().join("dbt/dag.py")).unwrap(), "there");
}

#[tokio::test]
async fn an_archive_that_can_never_be_unpacked_is_refused() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "first")).await;
    let seen = refused(&fixture, &plane, &at(&fixture, 2, "impossible")).await;
    assert_eq!(seen.running.dag_version.as_deref(), Some("first"));
    let Rollout::Refused(why) = seen.rollout else { unreachable!("it was just refused") };
    assert!(why.user_text().as_str().contains("not possible here"), "{why}");
    fixture.bring_up(&plane, &at(&fixture, 3, "first")).await;
}
