//! Strict releases go live only if they have no import error that the live version does not have.

use std::fs;

use podium_domain::deployments::plan::{Observed, Rollout};

use super::fixture::Fixture;
use super::projects::{at, with_installer};
use crate::{DataPlane as _, Environment};

fn strict(fixture: &Fixture, generation: i64, version: &str) -> Environment {
    let mut environment = at(fixture, generation, version);
    environment.spec.release.is_strict = true;
    environment
}

fn is_refused(seen: &Observed) -> bool {
    matches!(seen.rollout, Rollout::Refused(_))
}

/// The Python path of each check so far.
fn checks(fixture: &Fixture) -> Vec<String> {
    let all = fs::read_to_string(fixture.path("checked")).unwrap_or_default();
    all.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_strict_release_that_breaks_a_dag_does_not_go_live() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &strict(&fixture, 1, "first")).await;
    assert_eq!(checks(&fixture).len(), 1, "the first one is checked, too");
    let before = fixture.processes();
    plane.apply(&strict(&fixture, 2, "breaks")).await.unwrap();
    let seen = fixture.until(&plane, is_refused).await;
    let Rollout::Refused(why) = &seen.rollout else { unreachable!("it was just refused") };
    assert_eq!(
        *why.user_text(),
        "the deploy is strict, and one of its files cannot be imported: dag.py, line 2: ImportError: no (breaks hello)"
    );
    assert_eq!(seen.running.dag_version.as_deref(), Some("first"));
    let live = fs::read_to_string(fixture.place().code().join("dags/current/dag.py")).unwrap();
    assert_eq!((live.as_str(), fixture.processes()), ("first", before));
    let (generation, report) = plane.rollout_report(&fixture.at()).await.unwrap().unwrap();
    let error = &report.import_errors[0];
    assert_eq!((generation, report.import_error_count), (2, 1));
    assert_eq!(
        (error.file.as_str(), error.line, &error.dag_ids[..]),
        ("dag.py", Some(2), &["hello".to_owned()][..])
    );

    fixture.bring_up(&plane, &at(&fixture, 3, "breaks")).await;
    fixture.bring_up(&plane, &strict(&fixture, 4, "breaks-still")).await;
    let (_, report) = plane.rollout_report(&fixture.at()).await.unwrap().unwrap();
    assert_eq!(report.files.unwrap().changed, ["dag.py"], "what was broken before is not broken by it");
    assert_eq!(fixture.state().starting, None);
}

#[tokio::test]
async fn a_strict_first_release_with_a_broken_file_does_not_go_live() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    plane.apply(&strict(&fixture, 1, "breaks")).await.unwrap();
    let seen = fixture.until(&plane, is_refused).await;
    let Rollout::Refused(why) = &seen.rollout else { unreachable!("it was just refused") };
    assert_eq!(
        *why.user_text(),
        "the deploy is strict, and one of its files cannot be imported: dag.py, line 2: ImportError: no"
    );
    assert_eq!(seen.running.dag_version, None);
    let (_, report) = plane.rollout_report(&fixture.at()).await.unwrap().unwrap();
    assert_eq!((report.import_errors[0].file.as_str(), report.import_error_count), ("dag.py", 1));
    fixture.bring_up(&plane, &strict(&fixture, 2, "first")).await;
}

#[tokio::test]
async fn a_strict_release_is_parsed_with_its_own_modules_and_packages() {
    let fixture = with_installer();
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "project-1-package")).await;
    fixture.bring_up(&plane, &strict(&fixture, 2, "project-2-otherpackage")).await;
    let [check] = &checks(&fixture)[..] else { panic!("{:?}", checks(&fixture)) };
    let entries: Vec<&str> = check.split(':').collect();
    let root = fixture.place().code().join("dags/versions/project-2-otherpackage");
    assert!(entries.contains(&root.to_str().unwrap()), "{check}");
    assert!(!entries.iter().any(|entry| entry.ends_with("/dags/project")), "{check}");
    let layer = entries.iter().find(|entry| entry.contains("/layers/")).expect("its packages");
    assert!(fs::metadata(format!("{layer}/otherpackage.py")).is_ok());
    fixture.bring_up(&plane, &strict(&fixture, 3, "project-2-otherpackage")).await;
    assert_eq!(checks(&fixture).len(), 1, "the same DAGs are not parsed again");
}
