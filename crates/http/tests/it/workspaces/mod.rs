//! `/organizations/{organizationId}/workspaces`

mod defaults;
mod removal;

use podium_api::enums::OrganizationRole;
use podium_api::{Id, WorkspaceId};
use podium_domain::On;
use podium_testkit::{TestApp, on_both_engines, role};
use serde_json::{Value, json};

fn path(app: &TestApp, id: impl std::fmt::Display) -> String {
    app.path(&format!("/workspaces/{id}"))
}

/// The body of an update that changes nothing but what is given.
fn update(name: &str, others: Value) -> Value {
    let mut body = json!({ "name": name, "description": "", "cicdEnforcedDefault": false });
    if let Value::Object(others) = others {
        others.into_iter().for_each(|(key, value)| body[key] = value);
    }
    body
}

fn names(list: &Value) -> Vec<&str> {
    list["workspaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|workspace| workspace["name"].as_str().unwrap())
        .collect()
}

on_both_engines! {
    async fn a_workspace_is_created_read_changed_and_deleted(app) {
        let owner = app.owner.clone();
        let created = app.post(&owner, &app.path("/workspaces"), json!({ "name": " Analytics " })).await;
        assert_eq!(created.code(), 200);
        insta::assert_json_snapshot!(created.ok(), @r#"
        {
          "id": "cmywpiww00004000000000000",
          "name": "Analytics",
          "description": "",
          "organizationId": "cmywpiww00000000000000000",
          "organizationName": "My organization",
          "cicdEnforcedDefault": false,
          "createdAt": "2027-01-15T08:00:00.000Z",
          "createdBy": {
            "id": "cmywpiww00001000000000000",
            "subjectType": "USER",
            "username": "owner@localhost",
            "fullName": "Owner",
            "avatarUrl": "https://podium.test/pictures/O.svg"
          },
          "updatedAt": "2027-01-15T08:00:00.000Z",
          "updatedBy": {
            "id": "cmywpiww00001000000000000",
            "subjectType": "USER",
            "username": "owner@localhost",
            "fullName": "Owner",
            "avatarUrl": "https://podium.test/pictures/O.svg"
          }
        }
        "#);
        assert_eq!(created.header("etag").split('-').next(), Some("\"1"));
        let path = path(&app, created.id());
        let read = app.get(&owner, &path).await;
        assert_eq!(read.ok(), created.ok());
        assert_eq!(read.header("etag"), created.header("etag"));
        app.advance(std::time::Duration::from_secs(60));
        let change = json!({ "name": "Data", "description": "All of it", "cicdEnforcedDefault": true });
        let changed = app.post(&owner, &path, change).await.ok();
        let mut expected = created.ok();
        expected["name"] = "Data".into();
        expected["description"] = "All of it".into();
        expected["cicdEnforcedDefault"] = true.into();
        expected["updatedAt"] = "2027-01-15T08:01:00.000Z".into();
        assert_eq!(changed, expected);
        assert_eq!(app.get(&owner, &path).await.ok(), expected);
        assert_eq!(app.delete(&owner, &path).await.code(), 204);
        assert_eq!(
            app.get(&owner, &path).await.refused(404),
            "There is no such workspace, or you may not see it."
        );
        assert_eq!(app.delete(&owner, &path).await.code(), 404);
    }

    async fn who_changed_a_workspace_last_is_shown(app) {
        let id = app.workspace("Data").await;
        let eve = app
            .user_with(
                "eve",
                vec![
                    role(On::Organization, "ORGANIZATION_MEMBER"),
                    role(On::Workspace(id), "WORKSPACE_OWNER"),
                ],
            )
            .await;
        let changed = app.post(&eve, &path(&app, id), update("Data", json!({}))).await.ok();
        assert_eq!(changed["createdBy"]["username"], "owner@localhost");
        assert_eq!(
            changed["updatedBy"],
            json!({
                "id": eve.id,
                "subjectType": "USER",
                "username": "eve@podium.test",
                "fullName": "eve",
                "avatarUrl": "https://podium.test/pictures/E.svg",
            })
        );
    }

    async fn names_are_unique_without_regard_to_case(app) {
        let (owner, all) = (app.owner.clone(), app.path("/workspaces"));
        let data = app.workspace("Data").await;
        let other = app.workspace("Other").await;
        let taken = app.post(&owner, &all, json!({ "name": " dATA " })).await;
        assert_eq!(taken.refused(409), "A workspace named `dATA` already exists: choose another name.");
        assert_eq!(app.post(&owner, &path(&app, other), update("DATA", json!({}))).await.code(), 409);
        assert_eq!(app.get(&owner, &path(&app, other)).await.ok()["name"], "Other");
        assert_eq!(app.post(&owner, &path(&app, data), update("DATA", json!({}))).await.ok()["name"], "DATA");
        assert_eq!(app.delete(&owner, &path(&app, data)).await.code(), 204);
        app.workspace("data").await;
        app.workspace("Überblick").await;
        assert_eq!(app.post(&owner, &all, json!({ "name": "überBLICK" })).await.code(), 409);
    }

    async fn another_organization_has_names_of_its_own(app) {
        app.workspace("Data").await;
        let stranger = app.stranger().await;
        let own = app.get(&stranger, "/v1/organizations").await.ok()["organizations"][0]["id"].clone();
        let path = format!("/v1/organizations/{}/workspaces", own.as_str().unwrap());
        assert_eq!(app.post(&stranger, &path, json!({ "name": "Data" })).await.ok()["organizationId"], own);
        assert_eq!(names(&app.get(&stranger, &path).await.ok()), ["Data"]);
    }

    async fn a_name_has_at_most_fifty_characters_and_is_never_blank(app) {
        let (owner, all) = (app.owner.clone(), app.path("/workspaces"));
        let fifty = "ü".repeat(50);
        assert_eq!(app.post(&owner, &all, json!({ "name": fifty })).await.ok()["name"], fifty);
        for (body, wrong) in [
            (json!({ "name": "x".repeat(51) }), "name: maxLength"),
            (json!({ "name": "" }), "name: minLength"),
            (json!({ "name": "   " }), "name: required"),
            (json!({ "name": "two\nlines" }), "name: format"),
            (json!({ "name": null }), "name: required"),
            (json!({}), "name: required"),
            (json!({ "name": 7 }), "name: type"),
            (json!({ "name": "x", "description": "x".repeat(501) }), "description: maxLength"),
        ] {
            assert_eq!(app.post(&owner, &all, body.clone()).await.wrong_fields(), [wrong], "{body}");
        }
    }

    async fn an_update_takes_everything_that_the_contract_requires(app) {
        let id = app.workspace("Data").await;
        let wrong = app.post(&app.owner, &path(&app, id), json!({})).await.wrong_fields();
        assert_eq!(wrong, ["name: required", "description: required", "cicdEnforcedDefault: required"]);
    }

    async fn a_list_contains_what_the_caller_may_see(app) {
        let (data, secret) = (app.workspace("Data").await, app.workspace("Secret").await);
        let on_deployment = On::Deployment { id: app.deployment(secret).await, workspace_id: secret };
        let all = app.path("/workspaces");
        let member = role(On::Organization, "ORGANIZATION_MEMBER");
        let nobody = app.member("nobody").await;
        let reader = app
            .user_with("reader", vec![member.clone(), role(On::Workspace(data), "WORKSPACE_ACCESSOR")])
            .await;
        let guest = app.user_with("guest", vec![member, role(on_deployment, "DEPLOYMENT_ACCESSOR")]).await;
        let billing = app.member_as("billing", OrganizationRole::BillingAdmin).await;
        for (actor, seen) in [
            (&app.owner, vec!["Secret", "Data", "Default"]),
            (&reader, vec!["Data"]),
            (&guest, vec!["Secret"]),
            (&billing, vec![]),
        ] {
            let list = app.get(actor, &all).await.ok();
            assert_eq!(names(&list), seen);
            assert_eq!(list["totalCount"], seen.len());
        }
        let nothing = json!({ "workspaces": [], "limit": 20, "offset": 0, "totalCount": 0 });
        assert_eq!(app.get(&nobody, &all).await.ok(), nothing);
    }

    async fn a_list_is_filtered_by_ids_and_by_names(app) {
        let (a, b) = (app.workspace("Alpha").await, app.workspace("Beta").await);
        let list = async |query: String| {
            let list =
                app.get(&app.owner, &app.path(&format!("/workspaces?sorts=name:asc&{query}"))).await.ok();
            assert_eq!(list["totalCount"], names(&list).len());
            names(&list).join(" ")
        };
        assert_eq!(list(format!("workspaceIds={a}")).await, "Alpha");
        assert_eq!(
            list(format!("workspaceIds={a}&workspaceIds={b}&workspaceIds=nothing")).await,
            "Alpha Beta"
        );
        assert_eq!(list("names=aLPHA&names=gamma".into()).await, "Alpha");
        assert_eq!(list(format!("workspaceIds={a}&names=Beta")).await, "");
        assert_eq!(list("workspaceIds=".into()).await, "Alpha Beta Default");
        let eve = app.member("eve").await;
        let unseen = app.get(&eve, &app.path(&format!("/workspaces?workspaceIds={a}"))).await.ok();
        assert_eq!(unseen["totalCount"], 0);
    }

    async fn a_role_in_the_workspace_decides_who_may_do_what(app) {
        let id = app.workspace("Data").await;
        let at = path(&app, id);
        let table = [
            ("", 404, 404, 404),
            ("WORKSPACE_ACCESSOR", 200, 403, 403),
            ("WORKSPACE_MEMBER", 200, 403, 403),
            ("WORKSPACE_AUTHOR", 200, 403, 403),
            ("WORKSPACE_OPERATOR", 200, 403, 403),
            ("WORKSPACE_OWNER", 200, 200, 204),
        ];
        for (name, read, changed, deleted) in table {
            let mut held = vec![role(On::Organization, "ORGANIZATION_MEMBER")];
            held.extend((!name.is_empty()).then(|| role(On::Workspace(id), name)));
            let actor = app.user_with(&format!("the {name}"), held).await;
            assert_eq!(app.get(&actor, &at).await.code(), read, "{name}");
            assert_eq!(app.post(&actor, &at, update("Data", json!({}))).await.code(), changed, "{name}");
            let create = app.post(&actor, &app.path("/workspaces"), json!({ "name": "Mine" })).await;
            assert_eq!(
                create.refused(403),
                "You need the permission `organization.workspaces.create` in this organization. \
                 An organization owner can give you a role that has it."
            );
            assert_eq!(app.delete(&actor, &at).await.code(), deleted, "{name}");
        }
    }

    async fn an_invisible_resource_reads_as_missing(app) {
        let (eve, stranger) = (app.member("eve").await, app.stranger().await);
        let hidden: WorkspaceId = app.workspace("Hidden").await;
        for absent in [app.world.id::<Id>().to_string(), "nonsense".into(), "..%2f".into()] {
            for method in ["GET", "POST", "DELETE"] {
                for actor in [&eve, &stranger] {
                    let ask = async |id: &str| {
                        let call = app.call(method, &path(&app, id)).by(actor).header("x-request-id", "same");
                        let answer = call.json(&update("x", json!({}))).send().await;
                        assert_eq!(answer.code(), 404);
                        (answer.headers.clone(), answer.text())
                    };
                    assert_eq!(ask(hidden.as_str()).await, ask(&absent).await, "{method} {absent}");
                }
            }
        }
    }
}
