//! Which clusters a caller sees, and which of them it asks for.

use podium_api::enums::OrganizationRole;
use podium_api::{Id, WorkspaceId};
use podium_domain::On;
use podium_testkit::{Actor, TestApp, on_both_engines, role};
use serde_json::json;

use super::{made, names, new, path, update};

async fn in_workspace(app: &TestApp, name: &str, workspace: WorkspaceId, held: &str) -> Actor {
    let member = role(On::Organization, "ORGANIZATION_MEMBER");
    app.user_with(name, vec![member, role(On::Workspace(workspace), held)]).await
}

on_both_engines! {
    async fn a_member_sees_clusters_that_are_open_or_for_one_of_its_workspaces(app) {
        let (data, secret) = (app.workspace("Data").await, app.workspace("Secret").await);
        let open = made(&app, "Open", json!({})).await;
        let for_data = made(&app, "For data", json!({ "workspaceIds": [data] })).await;
        let for_both = made(&app, "For both", json!({ "workspaceIds": [secret, data, data] })).await;
        let for_secret = made(&app, "For secret", json!({ "workspaceIds": [secret] })).await;
        let deployment = app.deployment(secret).await;
        let member = role(On::Organization, "ORGANIZATION_MEMBER");
        let on = On::Deployment { id: deployment, workspace_id: secret };
        let guest = app.user_with("guest", vec![member, role(on, "DEPLOYMENT_ACCESSOR")]).await;
        let token = app.token("ci", "WORKSPACE", data, "WORKSPACE_MEMBER").await;
        for (actor, seen) in [
            (&app.owner, vec!["For secret", "For both", "For data", "Open"]),
            (&in_workspace(&app, "reader", data, "WORKSPACE_ACCESSOR").await, vec!["For both", "For data", "Open"]),
            (&token, vec!["For both", "For data", "Open"]),
            (&guest, vec!["For secret", "For both", "Open"]),
            (&app.member("plain").await, vec!["Open"]),
            (&app.member_as("billing", OrganizationRole::BillingAdmin).await, vec!["Open"]),
        ] {
            let list = app.get(actor, &app.path("/clusters")).await.ok();
            assert_eq!(names(&list), seen);
            assert_eq!(list["totalCount"], seen.len());
            for (id, name) in [(open, "Open"), (for_data, "For data"), (for_both, "For both"), (for_secret, "For secret")] {
                let code = app.get(actor, &path(&app, id)).await.code();
                assert_eq!(code, if seen.contains(&name) { 200 } else { 404 }, "{name}");
            }
        }
        let mut both = [data, secret];
        both.sort();
        assert_eq!(app.get(&app.owner, &path(&app, for_both)).await.ok()["workspaceIds"], json!(both));
    }

    async fn an_invisible_resource_reads_as_missing(app) {
        let secret = app.workspace("Secret").await;
        let hidden = made(&app, "Hidden", json!({ "workspaceIds": [secret] })).await;
        let (eve, stranger) = (app.member("eve").await, app.stranger().await);
        for absent in [app.world.id::<Id>().to_string(), "nonsense".into()] {
            for actor in [&eve, &stranger] {
                let ask = async |id: &str| {
                    let call = app.call("GET", &path(&app, id)).by(actor).header("x-request-id", "same");
                    let answer = call.send().await;
                    assert_eq!(answer.code(), 404);
                    (answer.headers.clone(), answer.text())
                };
                assert_eq!(ask(hidden.as_str()).await, ask(&absent).await);
            }
        }
    }

    async fn a_list_is_filtered_sorted_and_paged(app) {
        let all = app.path("/clusters");
        for body in [new("AWS", "b"), new("GCP", "a"), new("AZURE", "C"), new("AWS", "d")] {
            app.post(&app.owner, &all, body).await.ok();
            app.advance(std::time::Duration::from_secs(1));
        }
        let list = async |query: &str| {
            let list = app.get(&app.owner, &format!("{all}?{query}")).await.ok();
            (names(&list).join(" "), list["totalCount"].as_u64().unwrap())
        };
        for (query, expected, total) in [
            ("", "d C a b", 4),
            ("sorts=name:asc", "a b C d", 4),
            ("sorts=name:desc&limit=2", "d C", 4),
            ("sorts=createdAt:asc&offset=1&limit=2", "a C", 4),
            ("sorts=updatedAt:desc", "d C a b", 4),
            ("provider=AWS", "d b", 2),
            ("provider=", "d C a b", 4),
            ("names=A&names=c&names=nothing", "C a", 2),
            ("provider=AWS&names=a", "", 0),
            ("limit=0", "", 4),
        ] {
            assert_eq!(list(query).await, (expected.to_owned(), total), "{query}");
        }
        let wrong = app.get(&app.owner, &format!("{all}?limit=1001&sorts=mood:asc&provider=aws")).await;
        assert_eq!(wrong.wrong_fields(), ["provider: enum", "limit: maximum", "sorts[0]: enum"]);
    }

    async fn a_deleted_workspace_leaves_the_lists_of_clusters(app) {
        let (gone, stays) = (app.workspace("Gone").await, app.workspace("Stays").await);
        let id = made(&app, "Main", json!({ "workspaceIds": [gone, stays] })).await;
        assert_eq!(app.delete(&app.owner, &app.path(&format!("/workspaces/{gone}"))).await.code(), 204);
        assert_eq!(app.get(&app.owner, &path(&app, id)).await.ok()["workspaceIds"], json!([stays]));
    }

    async fn a_workspace_that_is_taken_off_the_list_loses_its_default(app) {
        let (one, two) = (app.workspace("One").await, app.workspace("Two").await);
        let id = made(&app, "Main", json!({})).await;
        let workspace = |id: WorkspaceId| app.path(&format!("/workspaces/{id}"));
        for (workspace_id, name) in [(one, "One"), (two, "Two")] {
            let body = json!({ "name": name, "description": "", "cicdEnforcedDefault": false, "defaultClusterId": id });
            app.post(&app.owner, &workspace(workspace_id), body).await.ok();
        }
        app.post(&app.owner, &path(&app, id), update("Main", json!({ "workspaceIds": [one] }))).await.ok();
        assert_eq!(app.get(&app.owner, &workspace(one)).await.ok()["defaultClusterId"], json!(id));
        assert_eq!(app.get(&app.owner, &workspace(two)).await.ok().get("defaultClusterId"), None);
    }
}
