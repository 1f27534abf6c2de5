//! `/organizations/{organizationId}/declared-sets`

use podium_api::enums::OrganizationRole;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

async fn create(app: &TestApp, name: &str, members: Value) -> Value {
    let body = json!({ "name": name, "members": members });
    app.post(&app.owner, &app.path("/declared-sets"), body).await.ok()
}

fn member(kind: &str, id: impl std::fmt::Display) -> Value {
    json!({ "kind": kind, "id": id.to_string() })
}

on_both_engines! {
    async fn a_set_is_created_read_changed_and_deleted(app) {
        let workspace = app.workspace("Data").await;
        let one = member("WORKSPACE", workspace);
        let made = create(&app, " production ", json!([one, one])).await;
        assert_eq!((&made["name"], &made["members"]), (&json!("production"), &json!([one])), "each member once");
        let path = app.path(&format!("/declared-sets/{}", made["id"].as_str().unwrap()));
        assert_eq!(app.get(&app.owner, &path).await.ok(), made);
        let listed = app.get(&app.owner, &app.path("/declared-sets?names=PRODUCTION&names=other")).await.ok();
        assert_eq!(listed["declaredSets"], json!([made]), "names ignore case");
        assert_eq!(app.get(&app.owner, &app.path("/declared-sets?names=other")).await.ok()["declaredSets"], json!([]));
        let changed = app.post(&app.owner, &path, json!({ "members": [] })).await.ok();
        assert_eq!((&changed["name"], &changed["members"]), (&json!("production"), &json!([])));
        let taken = json!({ "name": "Production", "members": [] });
        app.post(&app.owner, &app.path("/declared-sets"), taken).await.refused(409);
        assert_eq!(app.delete(&app.owner, &path).await.code(), 204);
        app.get(&app.owner, &path).await.refused(404);
        app.get(&app.owner, &app.path(&format!("/workspaces/{workspace}"))).await.ok();
    }

    async fn a_set_remembers_the_variables_that_files_refer_to(app) {
        let workspace = app.workspace("Data").await;
        let mut named = member("WORKSPACE", workspace);
        named["variables"] = json!({ "description": "TEXT" });
        let made = create(&app, "production", json!([named])).await;
        assert_eq!(made["members"], json!([named]));
        let path = app.path(&format!("/declared-sets/{}", made["id"].as_str().unwrap()));
        assert_eq!(app.get(&app.owner, &path).await.ok()["members"], json!([named]));
        let plain = member("WORKSPACE", workspace);
        let changed = app.post(&app.owner, &path, json!({ "members": [plain] })).await.ok();
        assert_eq!(changed["members"], json!([plain]));
    }

    async fn only_owners_keep_sets(app) {
        // What is in a set is deleted by whoever prunes it next, so nobody else may add to it.
        let set = create(&app, "production", json!([])).await;
        let path = app.path(&format!("/declared-sets/{}", set["id"].as_str().unwrap()));
        for role in [OrganizationRole::Member, OrganizationRole::BillingAdmin] {
            let other = app.member_as(role.as_str(), role).await;
            app.get(&other, &app.path("/declared-sets")).await.refused(403);
            app.get(&other, &path).await.refused(403);
            app.post(&other, &path, json!({ "members": [] })).await.refused(403);
            app.post(&other, &app.path("/declared-sets"), json!({ "name": "x", "members": [] })).await.refused(403);
            app.delete(&other, &path).await.refused(403);
        }
    }

    async fn a_plan_records_what_it_makes_and_two_do_not_overwrite_each_other(app) {
        let set = create(&app, "production", json!([])).await;
        let path = |rest: &str| format!("/organizations/{}{rest}", app.organization_id);
        let own = path(&format!("/declared-sets/{}", set["id"].as_str().unwrap()));
        let plan = async |name: &str| {
            let made = json!({ "kind": "WORKSPACE", "id": { "$call": 0, "field": "id" } });
            let calls = json!([
                { "method": "POST", "path": path("/workspaces"), "body": { "name": name } },
                { "method": "POST", "path": own, "body": { "members": [made] } },
            ]);
            let plan = app.post(&app.owner, &app.path("/plans"), json!({ "calls": calls })).await.ok();
            app.path(&format!("/plans/{}/apply", plan["planId"].as_str().unwrap()))
        };
        let (one, other) = (plan("One").await, plan("Other").await);
        let applied = app.post(&app.owner, &one, Value::Null).await.ok();
        let expected = json!([member("WORKSPACE", applied["calls"][0]["result"]["id"].as_str().unwrap())]);
        assert_eq!(app.get(&app.owner, &own).await.ok()["members"], expected);
        app.post(&app.owner, &other, Value::Null).await.refused(412);
        assert_eq!(app.get(&app.owner, &own).await.ok()["members"], expected);
    }
}
