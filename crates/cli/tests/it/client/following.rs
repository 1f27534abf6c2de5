//! Changes that take time: a command follows its operation, and whoever leaves it is told how to come back.

use std::time::Duration;

use podium_dataplane::Health;
use podium_testkit::{Engine, RolloutStep, TestApp};
use serde_json::json;

use super::on_pipes;
use super::scripted::Scripted;
use super::under_way::UnderWay;
use crate::program::finish;
use crate::terminals::{Terminal, on_terminal};

/// A command on pipes that is under way.
fn follow(scripted: &Scripted, line: &str) -> UnderWay {
    UnderWay::start(scripted.furnish(on_pipes(&format!("exec {line}"))))
}

/// Lets the rollout begin, and end.
async fn ends(app: &TestApp, scripted: &Scripted) {
    app.settle().await;
    app.plane.script().set_progress(scripted.deployment, None);
    app.advance(Duration::from_hours(2));
    app.settle().await;
}

#[test]
fn an_operation_is_followed_live_and_left_with_ctrl_c() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let scripted = Scripted::start(&app).await;
        let on_screen = |line: &str| Terminal::start(scripted.furnish(on_terminal(line, scripted.folder())));
        let mut waiting = on_screen("podium deployment wait nightly");
        waiting.sees("HIBERNATE of nightly: RUNNING, DRAIN (waits for load/scheduled__1/greet)");
        waiting.types("\u{3}");
        assert_eq!(waiting.ends(), Some(7), "{}", waiting.all);
        let said = waiting.all.split_once("podium: ").expect("it says why").1;
        let id = said.trim_end().rsplit(' ').next().unwrap();
        assert_eq!(
            said,
            format!(
                "HIBERNATE of nightly is still RUNNING; it goes on\n\
                 To follow it again: podium operation follow {id}\n\
                 To cancel it: podium operation cancel {id}\n"
            )
        );
        let mut again = on_screen(&format!("podium operation follow {id}"));
        again.sees("HIBERNATE of nightly: RUNNING, DRAIN");
        app.reach(scripted.deployment, RolloutStep::Start, Vec::new()).await;
        again.sees("  DRAIN ");
        ends(&app, &scripted).await;
        assert_eq!(again.ends(), Some(0), "{}", again.all);
        assert!(again.all.contains("SUCCEEDED"), "{}", again.all);
    });
}

#[test]
fn a_change_follows_its_own_operation_and_the_one_that_takes_its_place() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let scripted = Scripted::start(&app).await;
        let mut first = follow(&scripted, "podium deployment wake nightly --wait");
        first.says("Waking nightly.");
        first.says("WAKE of nightly: ");
        let changed = scripted.furnish(on_pipes("podium deployment update nightly --variable A=1 --no-wait"));
        assert_eq!(finish(changed, "").code, Some(0));
        first.says("UPDATE of nightly: ");
        app.reach(scripted.deployment, RolloutStep::Packages, Vec::new()).await;
        first.says("UPDATE of nightly: RUNNING, PACKAGES");
        ends(&app, &scripted).await;
        let (code, said) = first.ends();
        assert!(code == Some(0) && said.ends_with("nightly is HEALTHY.\n"), "{said}");
    });
}

#[test]
fn a_change_that_fails_says_why_and_one_that_is_cancelled_says_so() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let scripted = Scripted::start(&app).await;
        ends(&app, &scripted).await;
        let mut woken = follow(&scripted, "podium deployment wake nightly --wait");
        woken.says("WAKE of nightly: ");
        let down = Health::Down("it exited".into());
        app.plane.script().set_health(scripted.deployment, "scheduler", down);
        ends(&app, &scripted).await;
        let (code, said) = woken.ends();
        let why = "podium: WAKE of nightly failed: Not working: scheduler (it exited).\n\
                   Read the deployment's logs, then update the deployment with corrected settings.\n\
                   Its logs: podium logs --deployment \"nightly\" --since 1h\n";
        assert!(code == Some(7) && said.ends_with(why), "{said}");
        let mut slept = follow(&scripted, "podium deployment hibernate nightly --wait");
        slept.says("HIBERNATE of nightly: ");
        let cancelled =
            "podium operation cancel $(podium operation list --state pending --output name) --yes";
        let cancelled = finish(scripted.furnish(on_pipes(cancelled)), "");
        assert_eq!(cancelled.code, Some(0), "{}", cancelled.stderr);
        let said = "podium: HIBERNATE of nightly was cancelled\nThe previous settings were restored.\n";
        assert_eq!(slept.ends(), (Some(7), said.into()));
    });
}

#[test]
fn a_change_of_an_environment_object_follows_the_deployments_that_it_reaches() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let scripted = Scripted::start(&app).await;
        ends(&app, &scripted).await;
        let path = app.path(&format!("/deployments/{}/hibernation-override", scripted.deployment));
        app.post(&app.owner, &path, json!({ "isHibernating": false })).await.ok();
        ends(&app, &scripted).await;
        let line = "podium env create STAGE --workspace Reports --value test --link-all --wait";
        let mut made = follow(&scripted, line);
        made.says("Created STAGE.");
        made.says("UPDATE of nightly: ");
        ends(&app, &scripted).await;
        assert_eq!(made.ends().0, Some(0));
    });
}

#[test]
fn a_wait_that_takes_too_long_ends_and_what_it_waited_for_goes_on() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let scripted = Scripted::start(&app).await;
        let waited = finish(scripted.furnish(on_pipes("podium deployment wait nightly --timeout 0s")), "");
        assert_eq!(waited.code, Some(7), "{}", waited.stderr);
        assert!(waited.stderr.contains(" goes on\n"), "{}", waited.stderr);
        let path = app.path(&format!("/operations?targetIds={}&states=RUNNING", scripted.deployment));
        assert_eq!(app.get(&app.owner, &path).await.ok()["totalCount"], 1);
    });
}

#[test]
fn a_rollback_is_left_with_ctrl_c() {
    podium_testkit::run(Engine::Sqlite, |app| async move {
        let scripted = Scripted::start(&app).await;
        ends(&app, &scripted).await;
        let deployment = app.path(&format!("/deployments/{}", scripted.deployment));
        let awake = json!({ "isHibernating": false });
        app.post(&app.owner, &format!("{deployment}/hibernation-override"), awake).await.ok();
        for _ in 0..2 {
            let body = json!({ "type": "IMAGE_ONLY" });
            let deploy = app.post(&app.owner, &format!("{deployment}/deploys"), body).await;
            let finalize = format!("{deployment}/deploys/{}/finalize", deploy.id());
            app.post(&app.owner, &finalize, json!({})).await.ok();
            ends(&app, &scripted).await;
        }
        let mut going_back = follow(&scripted, "podium deploy rollback --yes");
        going_back.says("ROLLBACK of nightly: ");
        app.settle().await;
        going_back.says("ROLLBACK of nightly: RUNNING");
        let (code, said) = going_back.interrupt();
        assert_eq!(code, Some(7), "{said}");
        let id = said.trim_end().rsplit(' ').next().unwrap();
        let expected = format!(
            "podium: ROLLBACK of nightly is still RUNNING; it goes on\nTo follow it again: podium operation follow {id}\n"
        );
        assert!(said.ends_with(&expected), "{said}");
    });
}
