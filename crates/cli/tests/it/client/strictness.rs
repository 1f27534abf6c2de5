//! Deploys with files that cannot be imported: without a terminal they fail, on one they go live and say so loudly.

use std::time::Duration;

use podium_api::deploy_reports::ReportedImportError;
use podium_testkit::TestApp;
use serde_json::{Value, json};

use super::on_pipes;
use super::scripted::Scripted;
use super::under_way::UnderWay;
use crate::program::finish;
use crate::terminals::{Terminal, on_terminal};

/// A server whose deployment is awake, and a project whose DAG cannot be imported.
async fn with_broken_project() -> (TestApp, Scripted) {
    let (app, scripted) = Scripted::start_with_uploads().await;
    app.plane.script().set_progress(scripted.deployment, None);
    app.plane.script().lock().rollout = Duration::ZERO;
    app.advance(Duration::from_hours(2));
    let path = app.path(&format!("/deployments/{}/hibernation-override", scripted.deployment));
    app.post(&app.owner, &path, json!({ "isHibernating": false })).await.ok();
    app.settle().await;
    std::fs::create_dir_all(scripted.folder().join("hello/dags")).unwrap();
    std::fs::write(scripted.folder().join("hello/dags/hello.py"), "import nothing\n").unwrap();
    break_dags(&app);
    (app, scripted)
}

fn break_dags(app: &TestApp) {
    let message = "ModuleNotFoundError: No module named 'nothing'";
    app.plane.script().lock().import_errors = vec![ReportedImportError {
        file: "hello.py".into(),
        line: Some(1),
        message: message.into(),
        traceback: format!("Traceback\n{message}\n"),
        dag_ids: Vec::new(),
    }];
}

/// What a deploy says and how it ends.
async fn deploy(app: &TestApp, scripted: &Scripted, line: &str) -> (Option<i32>, String) {
    let mut deploying = UnderWay::start(scripted.furnish(on_pipes(&format!("exec {line}"))));
    deploying.says("DEPLOY of nightly: ");
    app.settle().await;
    deploying.ends()
}

async fn live(app: &TestApp, scripted: &Scripted) -> Value {
    let path = app.path(&format!("/deployments/{}", scripted.deployment));
    app.get(&app.owner, &path).await.ok()["dagTarballVersion"].clone()
}

#[test]
fn without_a_terminal_a_first_deploy_that_cannot_be_imported_fails() {
    podium_testkit::block_on(async {
        let (app, scripted) = with_broken_project().await;
        let (code, said) = deploy(&app, &scripted, "podium deploy hello").await;
        assert_eq!(code, Some(7), "{said}");
        for told in [
            "the deploy is strict, and files cannot be imported",
            "Broken: hello.py:1: ModuleNotFoundError: No module named 'nothing'",
            "The deploy did not go live: the previous version is still running.",
            "To go live all the same: podium deploy hello --no-strict",
        ] {
            assert!(said.contains(told), "{told}: {said}");
        }
        assert_eq!(live(&app, &scripted).await, Value::Null);
        let (code, said) = deploy(&app, &scripted, "podium deploy hello --no-strict").await;
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("is live, but BROKEN: 1 file cannot be imported.\n"), "{said}");
        assert_ne!(live(&app, &scripted).await, Value::Null);
    });
}

#[test]
fn on_a_terminal_a_deploy_that_cannot_be_imported_goes_live_and_is_loud() {
    podium_testkit::block_on(async {
        let (app, scripted) = with_broken_project().await;
        let line = "podium deploy hello";
        let mut deploying = Terminal::start(scripted.furnish(on_terminal(line, scripted.folder())));
        deploying.sees("DEPLOY of nightly: ");
        app.settle().await;
        assert_eq!(deploying.ends(), Some(0), "{}", deploying.all);
        let said = &deploying.all;
        assert!(said.contains("Broken: hello.py:1: ModuleNotFoundError"), "{said}");
        assert!(said.contains("is live, but BROKEN: 1 file cannot be imported."), "{said}");
        let mut deploying =
            Terminal::start(scripted.furnish(on_terminal(&format!("{line} --strict"), scripted.folder())));
        deploying.sees("DEPLOY of nightly: ");
        app.settle().await;
        assert_eq!(deploying.ends(), Some(7), "{}", deploying.all);
    });
}

#[test]
fn a_rollback_to_a_deploy_with_import_errors_warns_and_asks() {
    podium_testkit::block_on(async {
        let (app, scripted) = with_broken_project().await;
        assert_eq!(deploy(&app, &scripted, "podium deploy hello --no-strict").await.0, Some(0));
        app.plane.script().lock().import_errors = Vec::new();
        std::fs::write(scripted.folder().join("hello/dags/hello.py"), "").unwrap();
        let (code, said) = deploy(&app, &scripted, "podium deploy hello").await;
        assert_eq!(code, Some(0), "{said}");
        let warning = "When this deploy was live, 1 file could not be imported:\n  \
                       hello.py:1: ModuleNotFoundError: No module named 'nothing'\n";
        let asked = finish(scripted.furnish(on_pipes("podium deploy rollback")), "");
        assert_eq!(asked.code, Some(2), "{}", asked.stderr);
        assert!(
            asked.stderr.starts_with(warning) && asked.stderr.contains("Go back to "),
            "{}",
            asked.stderr
        );
        let mut agreed = UnderWay::start(scripted.furnish(on_pipes("exec podium deploy rollback --yes")));
        agreed.says("When this deploy was live, 1 file could not be imported:");
        agreed.says("ROLLBACK of nightly: ");
        app.settle().await;
        assert_eq!(agreed.ends().0, Some(0));
    });
}
