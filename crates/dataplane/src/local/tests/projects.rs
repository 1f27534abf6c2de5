//! Projects: their packages are there before their code is live, and nothing restarts without need.

use std::fs;

use podium_domain::deployments::plan::{Observed, Rollout};
use podium_domain::deployments::rollout::RolloutStep;

use super::fixture::{Fixture, eventually, metrics, program};
use crate::local::unused_runtimes;
use crate::{DataPlane as _, Environment};

/// A plane whose package installer is a script.
pub(super) fn with_installer() -> Fixture {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let uv = fixture.plane().join("tools/uv/bin/uv");
    fs::create_dir_all(uv.parent().unwrap()).unwrap();
    let journal = fixture.path("uv-journal");
    program(&uv, &include_str!("fake_uv.sh").replace("@JOURNAL@", journal.to_str().unwrap()));
    fixture
}

/// What the installer was asked to do.
fn asked(fixture: &Fixture) -> Vec<String> {
    let journal = fs::read_to_string(fixture.path("uv-journal")).unwrap_or_default();
    journal.lines().map(str::to_owned).collect()
}

pub(super) fn at(fixture: &Fixture, generation: i64, version: &str) -> Environment {
    let mut environment = fixture.environment(generation);
    environment.spec.release.dag_version = Some(version.into());
    environment
}

/// The Python path of the scheduler.
fn python_path(fixture: &Fixture) -> String {
    let pid = fixture.processes()["scheduler"].pid;
    let variables = fs::read_to_string(format!("/proc/{pid}/environ")).unwrap();
    let found = variables.split('\0').find_map(|pair| pair.strip_prefix("PYTHONPATH="));
    found.expect("it has one").to_owned()
}

/// The layers in the scheduler's Python path.
fn layers(fixture: &Fixture) -> Vec<String> {
    python_path(fixture).split(':').filter(|path| path.contains("/layers/")).map(str::to_owned).collect()
}

#[tokio::test]
async fn packages_come_with_the_code_and_change_with_it() {
    let fixture = with_installer();
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "bare")).await;
    assert!(!python_path(&fixture).contains("project"));
    fixture.bring_up(&plane, &at(&fixture, 2, "project-1-package")).await;
    let [layer] = &layers(&fixture)[..] else { panic!("{}", python_path(&fixture)) };
    assert!(fs::metadata(format!("{layer}/package.py")).is_ok());
    assert!(python_path(&fixture).contains("/code/dags/project:"));
    let project = fixture.place().code().join("dags/project");
    assert_eq!(fs::read_to_string(project.join("dags/dag.py")).unwrap(), "project-1-package");
    let before = fixture.processes();

    fixture.bring_up(&plane, &at(&fixture, 3, "project-2-package")).await;
    assert_eq!(fixture.processes(), before, "a change of DAGs restarts nothing");
    assert_eq!(fs::read_to_string(project.join("dags/dag.py")).unwrap(), "project-2-package");
    assert_eq!(asked(&fixture), ["resolve", "install"], "the same requirements are the same packages");

    fixture.bring_up(&plane, &at(&fixture, 4, "project-3-package-otherpackage")).await;
    assert_ne!(fixture.processes()["scheduler"], before["scheduler"]);
    assert_ne!(layers(&fixture), std::slice::from_ref(layer));
    fixture.bring_up(&plane, &at(&fixture, 5, "project-1-package")).await;
    assert_eq!(layers(&fixture), std::slice::from_ref(layer), "a rollback brings back the packages");
    assert_eq!(asked(&fixture), ["resolve", "install", "resolve", "install"]);
    assert_eq!(fixture.state().layers.len(), 1, "only what runs is in use");
}

#[tokio::test]
async fn packages_that_do_not_resolve_leave_what_serves_alone() {
    let fixture = with_installer();
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "project-1-package")).await;
    let before = fixture.processes();
    plane.apply(&at(&fixture, 2, "project-2-badpackage")).await.unwrap();
    let seen = fixture.until(&plane, |seen| matches!(seen.rollout, Rollout::Refused(_))).await;
    let Rollout::Refused(why) = seen.rollout else { unreachable!("it was just refused") };
    let told = why.user_text().to_string();
    assert!(
        told.contains(": Because badpackage was not found, your requirements are unsatisfiable."),
        "{told}"
    );
    assert_eq!(seen.running.dag_version.as_deref(), Some("project-1-package"));
    assert_eq!(seen.progress, None);
    assert_eq!(fixture.processes(), before);
    let live = fs::read_to_string(fixture.place().code().join("dags/current/dag.py")).unwrap();
    assert_eq!(live, "project-1-package");
    let (generation, report) = plane.rollout_report(&fixture.at()).await.unwrap().unwrap();
    assert_eq!(generation, 2);
    assert!(!report.steps.is_empty());

    fixture.bring_up(&plane, &at(&fixture, 3, "project-1-package")).await;
    assert_eq!(fixture.processes(), before, "nothing had changed");
}

#[tokio::test]
async fn the_report_has_files_dags_and_steps() {
    let fixture = with_installer();
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "project-1-package")).await;
    let (_, first) = plane.rollout_report(&fixture.at()).await.unwrap().unwrap();
    assert_eq!(first.files.unwrap().added, ["dags/dag.py", "requirements.txt"]);
    assert_eq!(first.dags.map(|dags| dags.removed_count), Some(0), "what was there before is known: nothing");
    fixture.bring_up(&plane, &at(&fixture, 2, "project-2-package")).await;
    let (generation, second) = plane.rollout_report(&fixture.at()).await.unwrap().unwrap();
    let files = second.files.unwrap();
    assert_eq!((generation, files.changed, files.added_count), (2, vec!["dags/dag.py".into()], 0));
    assert_eq!((second.is_parsed, second.import_error_count), (Some(true), 0));
}

#[tokio::test]
async fn an_installation_that_waits_for_others_says_so() {
    let fixture = with_installer();
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "bare")).await;
    let occupied = plane.plane.packages.occupy().await;
    plane.apply(&at(&fixture, 2, "project-1-package")).await.unwrap();
    let waits = |seen: &Observed| {
        let message = seen.progress.as_ref().and_then(|progress| progress.message.as_ref());
        message.is_some_and(|it| *it == "waiting for other environments that install packages")
    };
    fixture.until(&plane, waits).await;
    drop(occupied);
    fixture.bring_up(&plane, &at(&fixture, 2, "project-1-package")).await;
    assert_eq!(asked(&fixture), ["resolve", "install"]);
}

#[tokio::test]
async fn packages_count_for_the_disk_quota_of_each_environment_that_uses_them() {
    let fixture = with_installer();
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "project-1-package")).await;
    let layer = fixture.plane().join("runtimes/layers").join(fixture.state().layers.first().unwrap());
    let size = fs::read_to_string(layer.join("podium-size")).unwrap();
    assert!(size.parse::<u64>().unwrap() >= 4096, "{size}");
    let much = 20_u64 << 30;
    fs::write(layer.join("podium-size"), much.to_string()).unwrap();
    eventually(|| metrics(&plane)[0].disk.is_some_and(|bytes| bytes >= much)).await;
}

#[tokio::test]
async fn what_an_earlier_installation_left_running_is_ended_before_the_next() {
    let fixture = with_installer();
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "project-1-lingeringpackage")).await;
    let pid = fs::read_to_string(fixture.path("uv-journal.lingering")).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    assert!(fs::metadata(&stat).is_ok());
    drop(plane);
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 2, "project-2-package")).await;
    let state = fs::read_to_string(&stat).unwrap_or_else(|_| "gone Z".into());
    assert!(state.contains(" Z"), "{state}");
}

#[tokio::test]
async fn packages_that_nobody_uses_make_room_for_others() {
    let fixture = with_installer();
    let plane = fixture.open();
    fixture.bring_up(&plane, &at(&fixture, 1, "project-1-package")).await;
    fixture.bring_up(&plane, &at(&fixture, 2, "project-2-otherpackage")).await;
    let layers = || -> Vec<String> {
        let entries = fs::read_dir(fixture.plane().join("runtimes/layers")).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    unused_runtimes::make_room_for_layer(&plane.plane).await;
    assert_eq!(layers().len(), 2, "there is room");
    drop(plane);
    let plane = fixture.open_with(|options, _| options.disk_reserve = u64::MAX);
    unused_runtimes::make_room_for_layer(&plane.plane).await;
    assert_eq!(layers(), fixture.state().layers.into_iter().collect::<Vec<_>>());
}

#[tokio::test]
async fn nothing_waits_for_packages_once_they_are_installed() {
    let fixture = with_installer();
    fixture.set_script("db", "while [ ! -e \"$told/go-on\" ]; do sleep 0.02; done");
    let plane = fixture.open();
    plane.apply(&at(&fixture, 1, "project-1-package")).await.unwrap();
    let in_database = |seen: &Observed| {
        seen.progress.as_ref().is_some_and(|progress| progress.step == RolloutStep::Database)
    };
    let seen = fixture.until(&plane, in_database).await;
    assert_eq!(seen.components, [], "the packages are there");
    fixture.set_script("go-on", "");
    fixture.until(&plane, |seen| seen.rollout == Rollout::Done).await;
}
