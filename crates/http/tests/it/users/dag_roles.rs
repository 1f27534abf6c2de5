//! Roles on DAGs and tags: their shape, and what they need.

use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{on_deployment, path, set};

on_both_engines! {
    async fn a_dag_role_names_a_deployment_and_either_a_dag_or_a_tag(app) {
        let (eve, workspace) = (app.member("eve").await, app.workspace("Data").await);
        let id = app.deployment(workspace).await;
        let entry = |others: Value| {
            let mut entry = json!({ "deploymentId": id, "role": "DAG_VIEWER" });
            for (key, value) in others.as_object().unwrap() {
                entry[key] = value.clone();
            }
            entry
        };
        for (given, wrong) in [
            (json!({}), "dagRoles[0].dagTag: required"),
            (json!({ "dagId": "", "dagTag": "" }), "dagRoles[0].dagTag: required"),
            (json!({ "dagId": null }), "dagRoles[0].dagTag: required"),
            (json!({ "dagId": "etl", "dagTag": "daily" }), "dagRoles[0].dagTag: conflict"),
            (json!({ "dagId": "etl", "deploymentId": null }), "dagRoles[0].deploymentId: required"),
            (json!({ "dagId": "etl", "deploymentId": "x" }), "dagRoles[0].deploymentId: format"),
            (json!({ "dagId": "etl", "deploymentId": workspace }), "dagRoles[0].deploymentId: unknown"),
            (json!({ "dagId": "etl", "role": null }), "dagRoles[0].role: required"),
            (json!({ "dagId": "etl", "role": "DEPLOYMENT_ADMIN" }), "dagRoles[0].role: unknown"),
            (json!({ "dagId": "x".repeat(251) }), "dagRoles[0].dagId: maxLength"),
            (json!({ "dagTag": "x".repeat(101) }), "dagRoles[0].dagTag: maxLength"),
            (json!({ "dagTag": "\u{0}" }), "dagRoles[0].dagTag: format"),
        ] {
            let answer = set(&app, eve.id, json!({ "dagRoles": [entry(given.clone())] })).await;
            assert_eq!(answer.wrong_fields(), [wrong], "{given}");
        }
        let (dag, tag) = ("ü".repeat(250), "ü".repeat(100));
        let roles = json!([entry(json!({ "dagId": dag })), entry(json!({ "dagTag": tag, "dagId": "" })),]);
        let answer = set(&app, eve.id, json!({ "dagRoles": roles })).await.ok();
        let expected = json!([entry(json!({ "dagId": dag })), entry(json!({ "dagTag": tag }))]);
        assert_eq!(answer["dagRoles"], expected);
        assert_eq!(app.get(&app.owner, &path(&app, eve.id)).await.ok()["dagRoles"], expected);
    }

    async fn one_dag_takes_any_number_of_roles_but_each_once(app) {
        let (eve, workspace) = (app.member("eve").await, app.workspace("Data").await);
        let id = app.deployment(workspace).await;
        app.custom_role("Watcher", "DAG", &["dag.airflow.dag.get"]).await;
        let entry = |dag: &str, role: &str| json!({ "dagId": dag, "deploymentId": id, "role": role });
        let roles = json!([entry("etl", "DAG_AUTHOR"), entry("etl", "DAG_VIEWER"), entry("etl", "Watcher")]);
        assert_eq!(set(&app, eve.id, json!({ "dagRoles": roles })).await.ok()["dagRoles"], roles);
        let twice =
            json!([entry("etl", "DAG_VIEWER"), entry("other", "DAG_VIEWER"), entry("etl", "DAG_VIEWER")]);
        let wrong = set(&app, eve.id, json!({ "dagRoles": twice })).await.wrong_fields();
        assert_eq!(wrong, ["dagRoles[2]: duplicate"]);
    }

    async fn the_accessor_that_lower_roles_bring_is_shown_and_never_stored(app) {
        let (eve, workspace) = (app.member("eve").await, app.workspace("Data").await);
        let id = app.deployment(workspace).await;
        let accessor = json!([{ "role": "WORKSPACE_ACCESSOR", "workspaceId": workspace }]);
        let dag = json!([{ "dagTag": "daily", "deploymentId": id, "role": "DAG_VIEWER" }]);
        let shown = set(&app, eve.id, json!({ "dagRoles": dag })).await.ok();
        assert_eq!(shown["workspaceRoles"], accessor);
        assert_eq!(app.get(&eve, &app.path(&format!("/workspaces/{workspace}"))).await.code(), 200);

        assert_eq!(set(&app, eve.id, shown.clone()).await.ok(), shown, "what was shown is sent back");
        let bare = set(&app, eve.id, json!({ "dagRoles": [] })).await.ok();
        assert_eq!(bare.get("workspaceRoles"), None, "it was not stored");
        assert_eq!(app.get(&eve, &app.path(&format!("/workspaces/{workspace}"))).await.code(), 404);

        let all =
            json!({ "workspaceRoles": accessor, "deploymentRoles": [on_deployment(id, "DEPLOYMENT_ADMIN")] });
        assert_eq!(set(&app, eve.id, all).await.ok()["workspaceRoles"], accessor);
        assert_eq!(set(&app, eve.id, json!({ "workspaceRoles": [] })).await.ok()["workspaceRoles"], accessor);
        let none = set(&app, eve.id, json!({ "deploymentRoles": [] })).await.ok();
        assert_eq!(none.get("workspaceRoles"), None);

        let held = set(&app, eve.id, json!({ "workspaceRoles": accessor })).await.ok();
        assert_eq!(held["workspaceRoles"], accessor, "given by itself it is held");
        set(&app, eve.id, json!({ "dagRoles": dag })).await.ok();
        assert_eq!(set(&app, eve.id, json!({ "dagRoles": [] })).await.ok()["workspaceRoles"], accessor);
    }
}
