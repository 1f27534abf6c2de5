//! `/organizations/{organizationId}/plans`

mod effects;

use std::num::NonZeroU32;
use std::time::Duration;

use podium_api::enums::OrganizationRole;
use podium_app::Rates;
use podium_testkit::{Actor, Answer, Engine, TestApp, block_on, on_both_engines};
use serde_json::{Value, json};

fn call(app: &TestApp, method: &str, path: &str, body: impl Into<Value>) -> Value {
    let body: Value = body.into();
    json!({ "method": method, "path": format!("/organizations/{}{path}", app.organization_id), "body": body })
}

async fn plan(app: &TestApp, by: &Actor, calls: &[Value]) -> Value {
    app.post(by, &app.path("/plans"), json!({ "calls": calls })).await.ok()
}

async fn apply(app: &TestApp, by: &Actor, plan: &Value) -> Answer {
    let id = plan["planId"].as_str().expect("a plan that can be applied");
    app.post(by, &app.path(&format!("/plans/{id}/apply")), json!(null)).await
}

fn rename(name: &str) -> Value {
    json!({ "name": name, "description": "", "cicdEnforcedDefault": false })
}

on_both_engines! {
    async fn a_plan_shows_changes_and_makes_none(app) {
        let id = app.workspace("Analytics").await;
        let path = format!("/workspaces/{id}");
        let shown = plan(&app, &app.owner, &[call(&app, "POST", &path, rename("Data"))]).await;
        insta::assert_json_snapshot!(shown["calls"][0]["changes"], @r#"
        [
          {
            "path": "name",
            "from": "Analytics",
            "to": "Data"
          }
        ]
        "#);
        assert_eq!(shown["calls"][0]["result"]["name"], "Data");
        assert_eq!(shown["expiresAt"], "2027-01-15T09:00:00.000Z");
        assert_eq!(app.get(&app.owner, &app.path(&path)).await.ok()["name"], "Analytics");
        let applied = apply(&app, &app.owner, &shown).await.ok();
        assert_eq!(applied["calls"][0]["result"]["name"], "Data");
        assert_eq!(app.get(&app.owner, &app.path(&path)).await.ok()["name"], "Data");
    }

    async fn later_calls_refer_to_what_earlier_ones_make(app) {
        let calls = [
            call(&app, "POST", "/workspaces", json!({ "name": "Made" })),
            call(&app, "POST", "/deployments", json!({ "name": "d", "workspaceId": { "$call": 0, "field": "id" } })),
            call(&app, "POST", "/workspaces/{0.id}", rename("Renamed")),
        ];
        let shown = plan(&app, &app.owner, &calls).await;
        let statuses: Vec<&Value> = shown["calls"].as_array().unwrap().iter().map(|call| &call["statusCode"]).collect();
        assert_eq!(statuses, [200, 200, 200], "{shown}");
        assert_eq!(shown["calls"][1]["result"]["status"], "CREATING");
        assert_eq!(shown["calls"][2]["changes"], json!([{ "path": "name", "from": "Made", "to": "Renamed" }]));
        assert_eq!(app.get(&app.owner, &app.path("/deployments")).await.ok()["totalCount"], 0);
        let applied = apply(&app, &app.owner, &shown).await.ok();
        let workspace = &applied["calls"][0]["result"]["id"];
        assert_ne!(workspace, &shown["calls"][0]["result"]["id"], "what is made gets an id of its own");
        let deployments = app.get(&app.owner, &app.path("/deployments")).await.ok();
        assert_eq!(&deployments["deployments"][0]["workspaceId"], workspace);
        assert_eq!(deployments["deployments"][0]["workspaceName"], "Renamed");
    }

    async fn every_refused_call_is_shown_with_its_error(app) {
        app.workspace("Taken").await;
        let calls = [
            call(&app, "POST", "/workspaces", json!({ "name": "Taken" })),
            call(&app, "POST", "/workspaces", json!({ "name": "" })),
            call(&app, "POST", "/workspaces", json!({ "name": "Fine" })),
            call(&app, "DELETE", "/workspaces/{0.id}", Value::Null),
            call(&app, "DELETE", "/nothing", Value::Null),
            call(&app, "POST", "/plans", json!({ "calls": [] })),
            json!({ "method": "POST", "path": "/organizations/cmywpiww00000000000000009/workspaces", "body": { "name": "x" } }),
        ];
        let shown = plan(&app, &app.owner, &calls).await;
        assert_eq!(shown["planId"], Value::Null);
        let line = |call: &Value| {
            let field = call["error"]["fieldErrors"][0]["field"].as_str().unwrap_or("-").to_owned();
            format!("{} {field} {}", call["statusCode"], call["error"]["message"].as_str().unwrap_or("-"))
        };
        let lines: Vec<String> = shown["calls"].as_array().unwrap().iter().map(line).collect();
        insta::assert_json_snapshot!(lines, @r#"
        [
          "409 - A workspace named `Taken` already exists: choose another name.",
          "400 name name must not be empty",
          "200 - -",
          "400 calls[3].path calls[3].path refers to call 0, which has no result",
          "400 calls[4].path calls[4].path leads to no endpoint that takes this method: see /docs for the API",
          "400 calls[5].path calls[5].path leads to an endpoint that cannot be planned: call it by itself",
          "400 calls[6].path calls[6].path must be of the organization of the plan"
        ]
        "#);
        assert_eq!(app.get(&app.owner, &app.path("/workspaces")).await.ok()["totalCount"], 2);
    }

    async fn a_plan_is_refused_if_what_it_changes_has_changed(app) {
        let id = app.workspace("Analytics").await;
        let path = format!("/workspaces/{id}");
        let calls = [
            call(&app, "POST", "/workspaces", json!({ "name": "Other" })),
            call(&app, "POST", &path, rename("Data")),
        ];
        let shown = plan(&app, &app.owner, &calls).await;
        app.post(&app.owner, &app.path(&path), rename("Somebody was faster")).await.ok();
        let message = apply(&app, &app.owner, &shown).await.refused(412);
        assert_eq!(message, "The plan is out of date: for call 1 (UpdateWorkspace), `name` would not change as planned. Nothing was changed; make a new plan.");
        let names = app.get(&app.owner, &app.path("/workspaces?sorts=name:asc")).await.ok();
        assert_eq!(names["totalCount"], 2, "all or nothing: {names}");
        // The plan is still there: a refusal leaves everything as it was.
        apply(&app, &app.owner, &shown).await.refused(412);
    }

    async fn ids_of_what_a_plan_makes_do_not_make_it_stale(app) {
        let workspace = app.workspace("Analytics").await;
        let cluster = json!({
            "cloudProvider": "AWS", "name": "main", "region": "us-east-1", "type": "DEDICATED",
            "vpcSubnetRange": "172.20.0.0/20",
        });
        let update = json!({
            "name": "Analytics", "description": "", "cicdEnforcedDefault": false,
            "defaultClusterId": { "$call": 0, "field": "id" },
        });
        let token = json!({ "name": "t", "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER" });
        let roles = json!({ "roles": [
            { "entityType": "WORKSPACE", "entityId": { "$call": 2, "field": "id" }, "role": "WORKSPACE_MEMBER" },
        ] });
        let calls = [
            call(&app, "POST", "/clusters", cluster),
            call(&app, "POST", &format!("/workspaces/{workspace}"), update),
            call(&app, "POST", "/workspaces", json!({ "name": "Made" })),
            call(&app, "POST", "/tokens", token),
            call(&app, "POST", "/tokens/{3.id}/roles", roles),
        ];
        let shown = plan(&app, &app.owner, &calls).await;
        let applied = apply(&app, &app.owner, &shown).await.ok();
        assert_eq!(applied["calls"][1]["result"]["defaultClusterId"], applied["calls"][0]["result"]["id"]);
        // Another cluster than the planned one is another change.
        let other = json!({
            "name": "Analytics", "description": "", "cicdEnforcedDefault": false, "defaultClusterId": null,
        });
        let shown = plan(&app, &app.owner, &[call(&app, "POST", &format!("/workspaces/{workspace}"), other.clone())]).await;
        app.post(&app.owner, &app.path(&format!("/workspaces/{workspace}")), other).await.ok();
        apply(&app, &app.owner, &shown).await.refused(412);
    }

    async fn all_calls_of_a_plan_are_made_or_none(app) {
        let calls = [
            call(&app, "POST", "/workspaces", json!({ "name": "One" })),
            call(&app, "POST", "/teams", json!({ "name": "Two" })),
        ];
        let shown = plan(&app, &app.owner, &calls).await;
        app.post(&app.owner, &app.path("/teams"), json!({ "name": "two" })).await.ok();
        let message = apply(&app, &app.owner, &shown).await.refused(409);
        assert!(message.starts_with("Call 1 of the plan is refused: "), "{message}");
        assert_eq!(app.get(&app.owner, &app.path("/workspaces")).await.ok()["totalCount"], 1);
    }

    async fn a_plan_is_its_makers_and_needs_the_rights_of_its_calls(app) {
        let member = app.member("plain").await;
        let calls = [call(&app, "POST", "/workspaces", json!({ "name": "One" }))];
        let refused = plan(&app, &member, &calls).await;
        assert_eq!((&refused["planId"], &refused["calls"][0]["statusCode"]), (&Value::Null, &json!(403)));
        let shown = plan(&app, &app.owner, &calls).await;
        let colleague = app.member_as("colleague", OrganizationRole::Owner).await;
        apply(&app, &colleague, &shown).await.refused(404);
        let theirs = plan(&app, &colleague, &calls).await;
        let roles = json!({ "organizationRole": "ORGANIZATION_MEMBER" });
        app.post(&app.owner, &app.path(&format!("/users/{}/roles", colleague.id)), roles).await.ok();
        apply(&app, &colleague, &theirs).await.refused(403);
        let applied = apply(&app, &app.owner, &shown).await.ok();
        assert_eq!(applied["calls"][0]["result"]["createdBy"]["id"], app.owner.id.to_string());
        let stranger = app.stranger().await;
        app.post(&stranger, &app.path("/plans"), json!({ "calls": calls })).await.refused(404);
    }

    async fn applied_again_a_plan_gives_the_same_response_and_changes_nothing(app) {
        let body = json!({ "name": "ci", "scope": "ORGANIZATION", "role": "ORGANIZATION_OWNER" });
        let shown = plan(&app, &app.owner, &[call(&app, "POST", "/tokens", body)]).await;
        let first = apply(&app, &app.owner, &shown).await.ok();
        app.advance(Duration::from_mins(9));
        assert_eq!(apply(&app, &app.owner, &shown).await.ok(), first);
        let tokens = app.get(&app.owner, &app.path("/tokens?search=ci")).await.ok();
        assert_eq!(tokens["totalCount"], 1);
        app.advance(Duration::from_mins(1));
        apply(&app, &app.owner, &shown).await.refused(404);
    }

    async fn each_applied_call_is_audited_and_a_plan_is_not(app) {
        let calls = [
            call(&app, "POST", "/workspaces", json!({ "name": "One" })),
            call(&app, "POST", "/workspaces/{0.id}", rename("Two")),
        ];
        let shown = plan(&app, &app.owner, &calls).await;
        let operations = async || {
            let log = app.get(&app.owner, &app.path("/audit-logs")).await;
            let record = |line: &str| serde_json::from_str::<Value>(line).unwrap()["operationId"].as_str().unwrap().to_owned();
            let mut operations: Vec<String> = log.text().lines().map(record).collect();
            operations.sort();
            operations
        };
        assert_eq!(operations().await, [""; 0]);
        apply(&app, &app.owner, &shown).await.ok();
        assert_eq!(operations().await, ["ApplyPlan", "CreateWorkspace", "UpdateWorkspace"]);
    }

    async fn a_plan_lapses_after_an_hour(app) {
        let calls = [call(&app, "POST", "/workspaces", json!({ "name": "One" }))];
        let shown = plan(&app, &app.owner, &calls).await;
        app.advance(Duration::from_hours(1));
        apply(&app, &app.owner, &shown).await.refused(404);
    }

    async fn a_plan_shows_no_secret_and_applying_it_hands_it_out(app) {
        let body = json!({ "name": "ci", "scope": "ORGANIZATION", "role": "ORGANIZATION_OWNER" });
        let shown = plan(&app, &app.owner, &[call(&app, "POST", "/tokens", body)]).await;
        assert_eq!(shown["calls"][0]["result"]["token"], "");
        let applied = apply(&app, &app.owner, &shown).await.ok();
        let token = applied["calls"][0]["result"]["token"].as_str().unwrap().to_owned();
        let actor = Actor { token, ..app.owner.clone() };
        app.get(&actor, &app.path("/workspaces")).await.ok();
    }

    async fn what_goes_along_with_a_change_is_shown(app) {
        let id = app.workspace("Analytics").await;
        let object = json!({ "objectKey": "k", "objectType": "AIRFLOW_VARIABLE", "scope": "WORKSPACE", "scopeEntityId": id, "airflowVariable": { "value": "v" } });
        app.post(&app.owner, &app.path("/environment-objects"), object).await.ok();
        let shown = plan(&app, &app.owner, &[call(&app, "DELETE", &format!("/workspaces/{id}"), Value::Null)]).await;
        let expected = json!([{ "type": "DELETE", "message": "Its environment objects are deleted.", "names": [], "count": 1 }]);
        assert_eq!(shown["calls"][0]["effects"], expected, "{shown}");
        assert_eq!(shown["calls"][0]["changes"], json!([{ "path": "", "from": { "name": "Analytics", "id": id } }]));
    }

    async fn what_is_added_to_a_list_is_applied_although_its_ids_and_times_are_others(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let path = app.path(&format!("/deployments/{id}"));
        let mut body = app.get(&app.owner, &path).await.ok();
        body["environmentVariables"] = json!([{ "key": "NEW", "value": "1", "isSecret": false }]);
        let shown = plan(&app, &app.owner, &[call(&app, "POST", &format!("/deployments/{id}"), body)]).await;
        assert_eq!(shown["calls"][0]["error"], Value::Null, "{shown}");
        let added = shown["calls"][0]["changes"].as_array().unwrap();
        assert!(added.iter().any(|change| change["path"] == "environmentVariables[NEW]"), "{shown}");
        assert_eq!(shown["calls"][0]["effects"][0]["type"], "RESTART");
        app.advance(Duration::from_secs(1));
        apply(&app, &app.owner, &shown).await.ok();
        let variables = app.get(&app.owner, &path).await.ok()["environmentVariables"].clone();
        assert_eq!((&variables[0]["key"], &variables[0]["value"]), (&json!("NEW"), &json!("1")));
    }

    async fn a_plan_takes_1_to_100_calls(app) {
        let one = call(&app, "POST", "/workspaces", json!({ "name": "One" }));
        let many: Vec<&Value> = std::iter::repeat_n(&one, 101).collect();
        for calls in [json!([]), json!(many), json!([{ "method": "GET", "path": "/x" }]), json!([{ "method": "POST" }])] {
            let answer = app.post(&app.owner, &app.path("/plans"), json!({ "calls": calls })).await;
            assert_eq!(answer.wrong_fields().len(), 1, "{}", answer.text());
        }
    }
}

/// Rates are measured by the machine's clock, so there are far more calls than a burst allows.
fn a_plan_counts_as_its_calls_do(engine: Engine) {
    block_on(async {
        let (one, many) = (NonZeroU32::MIN, NonZeroU32::new(1000).unwrap());
        let app = TestApp::start_with(engine, |config, _| {
            config.rates = Some(Rates { reads: many, writes: one, deletes: one });
        })
        .await;
        let workspaces =
            async || app.get(&app.owner, &app.path("/workspaces")).await.ok()["totalCount"].clone();
        let before = workspaces().await.as_u64().unwrap();
        let mut plans = Vec::new();
        for plan_number in 0..6 {
            let create = |number| {
                call(&app, "POST", "/workspaces", json!({ "name": format!("w{plan_number} {number}") }))
            };
            let calls: Vec<Value> = (0..20).map(create).collect();
            plans.push(plan(&app, &app.owner, &calls).await);
        }
        let mut applied = 0;
        for plan in &plans {
            let answer = apply(&app, &app.owner, plan).await;
            match answer.code() {
                200 => applied += 1,
                _ => drop(answer.refused(429)),
            }
        }
        assert!(applied < 6, "{applied}");
        assert_eq!(workspaces().await, before + 20 * applied, "a refused plan changes nothing");
    });
}

#[test]
fn a_plan_counts_as_its_calls_do_on_sqlite() {
    a_plan_counts_as_its_calls_do(Engine::Sqlite);
}

#[test]
fn a_plan_counts_as_its_calls_do_on_postgres() {
    a_plan_counts_as_its_calls_do(Engine::Postgres);
}
