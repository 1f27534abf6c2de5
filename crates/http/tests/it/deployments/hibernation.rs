//! Hibernation: schedules, the override, and what comes next.

use std::time::Duration;

use podium_api::DeploymentId;
use podium_domain::On;
use podium_domain::deployments::spec::HibernationOverride;
use podium_store::deployments;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{change, create, made, member_with, path, read, settle, with};

fn schedule(hibernate: &str, wake: &str) -> Value {
    json!({ "hibernateAtCron": hibernate, "wakeAtCron": wake, "isEnabled": true })
}

fn scaling(schedules: impl Into<Value>) -> Value {
    json!({ "isDevelopmentMode": true, "scalingSpec": { "hibernationSpec": { "schedules": schedules.into() } } })
}

fn status(deployment: &Value) -> Value {
    deployment["scalingStatus"]["hibernationStatus"].clone()
}

fn at(app: &TestApp, id: DeploymentId) -> String {
    format!("{}/hibernation-override", path(app, id))
}

const HOUR: Duration = Duration::from_hours(1);

on_both_engines! {
    // Every test begins at 08:00 on a Friday.
    async fn the_latest_event_decides_and_the_next_is_shown(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, scaling(json!([schedule("0 20 * * *", "0 6 * * 1-5")]))).await;
        assert_eq!(status(&read(&app, id).await), json!({
            "isHibernating": false, "nextEventAt": "2027-01-15T20:00:00.000Z", "nextEventType": "HIBERNATE",
            "reason": "Its schedules keep it awake.",
        }));
        app.advance(12 * HOUR - Duration::from_secs(2));
        assert_eq!(status(&read(&app, id).await)["isHibernating"], false);
        app.advance(Duration::from_secs(2));
        assert_eq!(status(&read(&app, id).await), json!({
            "isHibernating": true, "nextEventAt": "2027-01-18T06:00:00.000Z", "nextEventType": "WAKE",
            "reason": "Its schedules keep it hibernating.",
        }));
        let listed = app.get(&app.owner, &app.path("/deployments")).await.ok();
        assert_eq!(status(&listed["deployments"][0])["isHibernating"], true);
        app.advance(58 * HOUR);
        assert_eq!(status(&read(&app, id).await)["nextEventType"], "HIBERNATE");
    }

    async fn schedules_are_stored_changed_and_cleared(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({ "isDevelopmentMode": true })).await;
        assert_eq!(read(&app, id).await.get("scalingSpec"), None, "it has neither schedules nor an override");
        assert_eq!(status(&read(&app, id).await), json!({ "isHibernating": false, "reason": "It has no schedule." }));
        let nightly = schedule("0 20 * * *", "0 6 * * *");
        let set = |schedules: Value| json!({ "scalingSpec": { "hibernationSpec": { "schedules": schedules } } });
        let after = change(&app, id, set(json!([nightly]))).await.ok();
        assert_eq!(after["scalingSpec"]["hibernationSpec"]["schedules"], json!([nightly]));
        assert_eq!(after["status"], "DEPLOYING");
        let mut disabled = nightly.clone();
        disabled["isEnabled"] = false.into();
        let after = change(&app, id, set(json!([disabled]))).await.ok();
        assert_eq!(status(&after), json!({ "isHibernating": false, "reason": "It has no schedule." }));
        assert_eq!(change(&app, id, set(json!([]))).await.ok().get("scalingSpec"), None);
    }

    async fn an_update_replaces_all_of_the_scaling(app) {
        let workspace = app.workspace("Analytics").await;
        let nightly = schedule("0 20 * * *", "0 6 * * *");
        let asleep = json!({ "isHibernating": true });
        let shown = json!({ "isActive": true, "isHibernating": true });
        let both = json!({ "hibernationSpec": { "schedules": [nightly], "override": asleep } });
        let id = made(&app, workspace, json!({ "isDevelopmentMode": true, "scalingSpec": both })).await;
        for (sent, expected) in [
            (json!({}), json!({ "hibernationSpec": { "schedules": [nightly], "override": shown } })),
            (json!({ "scalingSpec": null }), json!({ "hibernationSpec": { "schedules": [nightly], "override": shown } })),
            (json!({ "scalingSpec": {} }), Value::Null),
            (json!({ "scalingSpec": { "hibernationSpec": null } }), Value::Null),
            (json!({ "scalingSpec": { "hibernationSpec": {} } }), Value::Null),
            (json!({ "scalingSpec": { "hibernationSpec": { "schedules": [], "override": null } } }), Value::Null),
            (json!({ "scalingSpec": { "hibernationSpec": { "schedules": [nightly] } } }),
                json!({ "hibernationSpec": { "schedules": [nightly] } })),
            (json!({ "scalingSpec": { "hibernationSpec": { "override": asleep } } }),
                json!({ "hibernationSpec": { "override": shown } })),
            (json!({ "scalingSpec": { "hibernationSpec": { "schedules": [], "override": asleep } } }),
                json!({ "hibernationSpec": { "override": shown } })),
        ] {
            change(&app, id, json!({ "scalingSpec": both })).await.ok();
            let after = change(&app, id, sent.clone()).await.ok();
            assert_eq!(after.get("scalingSpec").cloned().unwrap_or_default(), expected, "{sent}");
            let in_force = expected["hibernationSpec"]["override"] == shown;
            assert_eq!(status(&after)["isHibernating"], in_force, "{sent}");
            assert_eq!(read(&app, id).await["scalingSpec"], after["scalingSpec"]);
        }
    }

    async fn there_are_at_most_10_schedules_of_two_valid_and_different_expressions(app) {
        let workspace = app.workspace("Analytics").await;
        let nightly = schedule("0 20 * * *", "0 6 * * *");
        create(&app, workspace, scaling(json!(vec![&nightly; 10]))).await.ok();
        let eleven = create(&app, workspace, scaling(json!(vec![&nightly; 11]))).await;
        assert_eq!(eleven.wrong_fields(), ["scalingSpec.hibernationSpec.schedules: maxItems"]);
        let wrong = json!([nightly, schedule("0 20 * *", "0 0 6 * * *"), schedule("0 6 * * *", "0 6 * * *"),
            schedule("61 * * * *", "@daily"), schedule("0 0 31 2 *", "0 6 * * *")]);
        let wrong = create(&app, workspace, scaling(wrong)).await.wrong_fields();
        let expected = ["[1].hibernateAtCron: format", "[1].wakeAtCron: format", "[2].wakeAtCron: same",
            "[3].hibernateAtCron: format", "[3].wakeAtCron: format", "[4].hibernateAtCron: format"];
        assert_eq!(wrong, expected.map(|it| format!("scalingSpec.hibernationSpec.schedules{it}")));
    }

    async fn an_override_outranks_schedules_until_it_lapses(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, scaling(json!([schedule("0 20 * * *", "0 6 * * *")]))).await;
        let body = json!({ "isHibernating": true, "overrideUntil": "2027-01-15T10:00:00Z" });
        let answer = app.post(&app.owner, &at(&app, id), body).await;
        let shown = json!({ "isActive": true, "isHibernating": true, "overrideUntil": "2027-01-15T10:00:00Z" });
        assert_eq!(answer.ok(), shown);
        assert_eq!(answer.header("etag").split('-').next(), Some("\"2"));
        let deployment = read(&app, id).await;
        assert_eq!(deployment["scalingSpec"]["hibernationSpec"]["override"], shown);
        assert_eq!(deployment["status"], "DEPLOYING");
        assert_eq!(status(&deployment), json!({
            "isHibernating": true, "nextEventAt": "2027-01-15T10:00:00.000Z", "nextEventType": "WAKE",
            "reason": "An override keeps it hibernating until 2027-01-15T10:00:00.000Z.",
        }));
        app.advance(2 * HOUR);
        let deployment = read(&app, id).await;
        assert_eq!(deployment["scalingSpec"]["hibernationSpec"]["override"]["isActive"], false);
        assert_eq!(status(&deployment)["isHibernating"], false);
        assert_eq!(status(&deployment)["nextEventAt"], "2027-01-15T20:00:00.000Z");
    }

    async fn an_end_is_answered_as_it_was_written_and_stored_so(app) {
        let id = made(&app, app.workspace("Analytics").await, json!({ "isDevelopmentMode": true })).await;
        let shown = |it: &Value| it["scalingSpec"]["hibernationSpec"]["override"]["overrideUntil"].clone();
        // One moment, written in three ways.
        let mut tags = Vec::new();
        for until in ["2027-01-15T10:00:00Z", "2027-01-15T11:00:00+01:00", "2027-01-15T04:30:00.000-05:30"] {
            let body = json!({ "isHibernating": true, "overrideUntil": until });
            assert_eq!(app.post(&app.owner, &at(&app, id), body.clone()).await.ok()["overrideUntil"], until);
            let read = app.get(&app.owner, &path(&app, id)).await;
            assert_eq!(shown(&read.ok()), until);
            assert_eq!(status(&read.ok())["nextEventAt"], "2027-01-15T10:00:00.000Z", "what we compute is UTC");
            tags.push(read.header("etag").split('-').nth(1).unwrap().to_owned());
            assert!(app.column("deployments", id, "spec").await.contains(until), "it is stored");
            let set = json!({ "scalingSpec": { "hibernationSpec": { "override": &body } } });
            assert_eq!(shown(&change(&app, id, set).await.ok()), until);
            let call = json!({ "method": "POST", "path": at(&app, id), "body": body });
            let plan = app.post(&app.owner, &app.path("/plans"), json!({ "calls": [call] })).await.ok().to_string();
            assert!(plan.contains(until) && !plan.contains("\"overrideUntil\":\"2027-01-15T10:00:00.000Z\""), "{plan}");
        }
        tags.dedup();
        assert_eq!(tags.len(), 3, "another body has another tag");
        let past = json!({ "isHibernating": true, "overrideUntil": "2027-01-15T09:00:00+01:00" });
        assert_eq!(app.post(&app.owner, &at(&app, id), past).await.wrong_fields(), ["overrideUntil: past"]);
    }

    async fn an_override_without_an_end_lasts_until_it_is_deleted(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, scaling(json!([schedule("0 20 * * *", "0 6 * * *")]))).await;
        for until in [json!({}), json!({ "overrideUntil": null }), json!({ "overrideUntil": "" })] {
            let body = with(json!({ "isHibernating": true }), until);
            let answer = app.post(&app.owner, &at(&app, id), body).await.ok();
            assert_eq!(answer, json!({ "isActive": true, "isHibernating": true }));
        }
        app.advance(42 * 24 * HOUR);
        assert_eq!(status(&read(&app, id).await), json!({
            "isHibernating": true, "reason": "An override keeps it hibernating until it is deleted.",
        }));
        let gone = app.post(&app.owner, &at(&app, id), json!({ "isHibernating": null })).await.ok();
        assert_eq!(gone, json!({ "isActive": false }));
        assert_eq!(status(&read(&app, id).await)["isHibernating"], false);
        app.post(&app.owner, &at(&app, id), json!({ "isHibernating": true })).await.ok();
        for _ in 0..2 {
            assert_eq!(app.delete(&app.owner, &at(&app, id)).await.code(), 204, "deleting none is 204");
        }
        assert_eq!(read(&app, id).await["scalingSpec"]["hibernationSpec"]["override"], Value::Null);
    }

    async fn an_override_is_a_word_and_ends_in_the_future(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({ "isDevelopmentMode": true })).await;
        for (body, wrong) in [
            (json!({}), "isHibernating: required"),
            (json!({ "isHibernating": "yes" }), "isHibernating: type"),
            (json!({ "isHibernating": true, "overrideUntil": "tomorrow" }), "overrideUntil: format"),
            (json!({ "isHibernating": true, "overrideUntil": "2027-01-15T08:00:00Z" }), "overrideUntil: past"),
            (json!({ "isHibernating": false, "overrideUntil": "2020-01-01T00:00:00Z" }), "overrideUntil: past"),
        ] {
            assert_eq!(app.post(&app.owner, &at(&app, id), body.clone()).await.wrong_fields(), [wrong], "{body}");
        }
        assert_eq!(read(&app, id).await["status"], "HEALTHY", "nothing has changed");
    }

    async fn an_update_may_carry_the_override(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({ "isDevelopmentMode": true })).await;
        let set = |it: Value| json!({ "scalingSpec": { "hibernationSpec": { "override": it } } });
        let after = change(&app, id, set(json!({ "isHibernating": true, "overrideUntil": "2027-01-16T00:00:00Z" }))).await.ok();
        assert_eq!(status(&after)["isHibernating"], true);
        let kept = change(&app, id, json!({})).await.ok();
        assert_eq!(status(&kept)["isHibernating"], true);
        let past = set(json!({ "isHibernating": true, "overrideUntil": "2027-01-15T08:00:00Z" }));
        assert_eq!(change(&app, id, past).await.wrong_fields(), ["scalingSpec.hibernationSpec.override.overrideUntil: past"]);
        let after = change(&app, id, set(json!({ "isHibernating": null }))).await.ok();
        assert_eq!(status(&after)["isHibernating"], false);
    }

    async fn only_development_mode_hibernates(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({})).await;
        let plain = read(&app, id).await;
        assert_eq!((&plain["scalingSpec"], &plain["scalingStatus"]), (&Value::Null, &Value::Null));
        let told = "Only deployments in development mode hibernate, and this one is not in development mode.";
        for body in [json!({ "isHibernating": true }), json!({ "isHibernating": false })] {
            assert_eq!(app.post(&app.owner, &at(&app, id), body).await.refused(400), told);
        }
        assert_eq!(app.delete(&app.owner, &at(&app, id)).await.code(), 204);
        let set = json!({ "scalingSpec": scaling(json!([schedule("0 20 * * *", "0 6 * * *")]))["scalingSpec"] });
        assert_eq!(change(&app, id, set).await.wrong_fields(), ["scalingSpec.hibernationSpec: unsupported"]);

        let id = made(&app, workspace, scaling(json!([schedule("0 20 * * *", "0 6 * * *")]))).await;
        app.post(&app.owner, &at(&app, id), json!({ "isHibernating": true })).await.ok();
        let grown = change(&app, id, json!({ "isDevelopmentMode": false })).await.ok();
        assert_eq!((&grown["scalingSpec"], &grown["scalingStatus"]), (&Value::Null, &Value::Null));
    }

    async fn an_override_lapses_whatever_the_deployment_is(app) {
        let id = made(&app, app.workspace("Analytics").await, json!({})).await;
        let (scope, until) = (app.scope(), app.world.now() + HOUR);
        let stored = app.app.db(&app.system).write(None, move |tx| {
            let mut row = deployments::get(tx, &scope, id)?.expect("it exists");
            row.spec.hibernation.override_ = Some(HibernationOverride { is_hibernating: true, until: Some(until.into()) });
            row.stamp.version += 1;
            deployments::update(tx, &scope, &row, &row.name)
        });
        stored.await.unwrap_or_else(|error: podium_db::Error| panic!("{error}"));
        let is_active = async || read(&app, id).await["scalingSpec"]["hibernationSpec"]["override"]["isActive"].clone();
        assert_eq!((is_active().await, is_active().await), (json!(true), json!(true)));
        app.advance(HOUR);
        assert_eq!(is_active().await, false);
    }

    async fn an_override_takes_the_right_to_change_the_deployment(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({ "isDevelopmentMode": true })).await;
        let operator = member_with(&app, On::Workspace(workspace), "WORKSPACE_OPERATOR").await;
        let author = member_with(&app, On::Workspace(workspace), "WORKSPACE_AUTHOR").await;
        let nobody = app.member("plain").await;
        let body = json!({ "isHibernating": true });
        for (actor, code, gone) in [(&operator, 200, 204), (&author, 403, 403), (&nobody, 404, 404)] {
            assert_eq!(app.post(actor, &at(&app, id), body.clone()).await.code(), code);
            assert_eq!(app.delete(actor, &at(&app, id)).await.code(), gone);
        }
    }

    async fn an_override_is_set_on_the_version_that_was_read(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({ "isDevelopmentMode": true })).await;
        let tag = app.get(&app.owner, &path(&app, id)).await.header("etag").to_owned();
        let call = |method: &str| app.call(method, &at(&app, id)).by(&app.owner).header("if-match", &tag);
        call("POST").json(&json!({ "isHibernating": true })).send().await.ok();
        call("POST").json(&json!({ "isHibernating": true })).send().await.refused(412);
        call("DELETE").send().await.refused(412);
    }

    async fn an_override_is_to_be_looked_at_by_a_loop(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({ "isDevelopmentMode": true })).await;
        let work = async || {
            let rows = app.rows("work").await;
            app.forget_work().await;
            settle(&app, id).await;
            rows
        };
        work().await;
        app.post(&app.owner, &at(&app, id), json!({ "isHibernating": true })).await.ok();
        assert_eq!(work().await, 1);
        app.delete(&app.owner, &at(&app, id)).await.ok();
        assert_eq!(work().await, 1);
        app.delete(&app.owner, &at(&app, id)).await.ok();
        assert_eq!(work().await, 0, "there was none");
    }
}
