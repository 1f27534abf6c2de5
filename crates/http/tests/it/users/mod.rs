//! `/organizations/{organizationId}/users` and `/users/self`

mod dag_roles;
mod leaving;
mod own_account;
mod roles;
mod scopes;
mod visibility;

use podium_api::{DeploymentId, SubjectId, WorkspaceId};
use podium_domain::On;
use podium_testkit::{Actor, Answer, TestApp, on_both_engines, role};
use serde_json::{Value, json};

fn path(app: &TestApp, id: impl std::fmt::Display) -> String {
    app.path(&format!("/users/{id}"))
}

/// Changes the roles of a user as an actor.
async fn set_by(app: &TestApp, actor: &Actor, user: SubjectId, body: Value) -> Answer {
    app.post(actor, &path(app, format!("{user}/roles")), body).await
}

/// Changes the roles of a user as the owner.
async fn set(app: &TestApp, user: SubjectId, body: Value) -> Answer {
    set_by(app, &app.owner, user, body).await
}

/// An entry of `workspaceRoles`.
fn in_workspace(workspace_id: WorkspaceId, role: &str) -> Value {
    json!({ "role": role, "workspaceId": workspace_id })
}

/// An entry of `deploymentRoles`.
fn on_deployment(deployment_id: DeploymentId, role: &str) -> Value {
    json!({ "deploymentId": deployment_id, "role": role })
}

fn names(list: &Value) -> Vec<&str> {
    list["users"].as_array().unwrap().iter().map(|user| user["fullName"].as_str().unwrap()).collect()
}

on_both_engines! {
    async fn a_user_is_shown_with_all_its_roles(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let in_deployment = On::Deployment { id: deployment, workspace_id: workspace };
        let dag = On::Dag { deployment_id: deployment, workspace_id: workspace, dag_id: "etl".into() };
        let tag = On::DagTag { deployment_id: deployment, workspace_id: workspace, tag: "daily".into() };
        let eve = app
            .user_with(
                "eve",
                vec![
                    role(On::Organization, "ORGANIZATION_MEMBER"),
                    role(in_deployment, "DEPLOYMENT_ACCESSOR"),
                    role(dag, "DAG_VIEWER"),
                    role(tag, "DAG_AUTHOR"),
                ],
            )
            .await;
        let read = app.get(&app.owner, &path(&app, eve.id)).await;
        insta::assert_json_snapshot!(read.ok(), @r#"
        {
          "id": "cmywpiww00007000000000000",
          "username": "eve@podium.test",
          "fullName": "eve",
          "avatarUrl": "https://podium.test/pictures/E.svg",
          "status": "ACTIVE",
          "organizationRole": "ORGANIZATION_MEMBER",
          "workspaceRoles": [
            {
              "role": "WORKSPACE_ACCESSOR",
              "workspaceId": "cmywpiww00004000000000000"
            }
          ],
          "deploymentRoles": [
            {
              "deploymentId": "cmywpiww00006000000000000",
              "role": "DEPLOYMENT_ACCESSOR"
            }
          ],
          "dagRoles": [
            {
              "dagId": "etl",
              "deploymentId": "cmywpiww00006000000000000",
              "role": "DAG_VIEWER"
            },
            {
              "dagTag": "daily",
              "deploymentId": "cmywpiww00006000000000000",
              "role": "DAG_AUTHOR"
            }
          ],
          "createdAt": "2027-01-15T08:00:00.000Z",
          "updatedAt": "2027-01-15T08:00:00.000Z"
        }
        "#);
        assert_eq!(read.header("etag").split('-').next(), Some("\"1"));
        let list = app.get(&app.owner, &app.path("/users?sorts=id:desc&limit=1")).await.ok();
        assert_eq!(list, json!({ "users": [read.ok()], "limit": 1, "offset": 0, "totalCount": 2 }));
        assert_eq!(app.get(&eve, &path(&app, app.owner.id)).await.ok()["username"], "owner@localhost");
    }

    async fn a_user_of_another_organization_is_not_found(app) {
        let stranger = app.stranger().await;
        for id in [stranger.id, app.world.id()] {
            for answer in [
                app.get(&app.owner, &path(&app, id)).await,
                app.get(&app.owner, &path(&app, format!("{id}/teams"))).await,
                set(&app, id, json!({ "organizationRole": "ORGANIZATION_OWNER" })).await,
                set(&app, id, json!({ "organizationRole": null })).await,
            ] {
                assert_eq!(answer.refused(404), "There is no such user, or you may not see it.");
            }
        }
        assert_eq!(names(&app.get(&app.owner, &app.path("/users")).await.ok()), ["Owner"]);
    }

    async fn users_are_sorted_and_paged(app) {
        for name in ["bob", "Zoe", "ada"] {
            app.advance(std::time::Duration::from_millis(1));
            app.member(name).await;
        }
        for (query, expected) in [
            ("", "ada Zoe bob Owner"),
            ("sorts=createdAt:asc", "Owner bob Zoe ada"),
            ("sorts=fullName:asc", "ada bob Owner Zoe"),
            ("sorts=username:desc", "Zoe Owner bob ada"),
            ("sorts=id:asc", "Owner bob Zoe ada"),
            ("sorts=updatedAt:desc&sorts=id:asc&limit=2&offset=1", "Zoe bob"),
        ] {
            let list = app.get(&app.owner, &app.path(&format!("/users?{query}"))).await.ok();
            assert_eq!(names(&list).join(" "), expected, "{query}");
            assert_eq!(list["totalCount"], 4);
        }
    }

    async fn users_are_filtered_by_where_they_hold_a_role(app) {
        let (workspace, other) = (app.workspace("Data").await, app.workspace("Other").await);
        let id = app.deployment(workspace).await;
        let on = On::Deployment { id, workspace_id: workspace };
        let dag = On::Dag { deployment_id: id, workspace_id: workspace, dag_id: "etl".into() };
        let tag = |tag: &str| On::DagTag { deployment_id: id, workspace_id: workspace, tag: tag.into() };
        for (name, grant) in [
            ("in workspace", role(On::Workspace(workspace), "WORKSPACE_MEMBER")),
            ("in other", role(On::Workspace(other), "WORKSPACE_MEMBER")),
            ("on deployment", role(on, "DEPLOYMENT_ADMIN")),
            ("on dag", role(dag, "DAG_VIEWER")),
            ("on daily", role(tag("daily"), "DAG_VIEWER")),
            ("on hourly", role(tag("hourly"), "DAG_VIEWER")),
        ] {
            app.user_with(name, vec![role(On::Organization, "ORGANIZATION_MEMBER"), grant]).await;
        }
        let via = app.member("via team").await;
        let team = app.team("Crew", &[&via]).await;
        let roles = json!({
            "organizationRole": "ORGANIZATION_MEMBER",
            "workspaceRoles": [in_workspace(workspace, "WORKSPACE_MEMBER")],
        });
        app.post(&app.owner, &app.path(&format!("/teams/{team}/roles")), roles).await.ok();
        for (query, expected) in [
            (
                format!("workspaceId={workspace}"),
                "in workspace, on dag, on daily, on deployment, on hourly, via team",
            ),
            (format!("workspaceId={other}"), "in other"),
            (format!("deploymentId={id}"), "on dag, on daily, on deployment, on hourly"),
            (format!("deploymentId={id}&dagTags=daily"), "on daily"),
            ("dagId=etl".into(), "on dag"),
            ("dagTags=daily".into(), "on daily"),
            ("dagTags=daily&dagTags=hourly".into(), "on daily, on hourly"),
            (format!("workspaceId={other}&deploymentId={id}"), ""),
            ("dagId=nothing".into(), ""),
        ] {
            let list =
                app.get(&app.owner, &app.path(&format!("/users?sorts=fullName:asc&{query}"))).await.ok();
            assert_eq!(names(&list).join(", "), expected, "{query}");
            assert_eq!(list["totalCount"], names(&list).len());
        }
        let all = app.get(&app.owner, &app.path("/users?workspaceId=&deploymentId=&dagId=")).await.ok();
        assert_eq!(all["totalCount"], 8);
    }

    async fn the_teams_of_a_user_are_listed_with_their_roles(app) {
        let (eve, workspace) = (app.member("eve").await, app.workspace("Data").await);
        let teams = path(&app, format!("{}/teams", eve.id));
        let nothing = json!({ "teams": [], "limit": 20, "offset": 0, "totalCount": 0 });
        assert_eq!(app.get(&eve, &teams).await.ok(), nothing);
        let id = app.team("Crew", &[&eve]).await;
        app.team("Without", &[&app.owner]).await;
        let roles = json!({
            "organizationRole": "ORGANIZATION_MEMBER",
            "workspaceRoles": [in_workspace(workspace, "WORKSPACE_AUTHOR")],
        });
        app.post(&app.owner, &app.path(&format!("/teams/{id}/roles")), roles).await.ok();
        assert_eq!(
            app.get(&app.owner, &teams).await.ok(),
            json!({
                "teams": [{
                    "id": id,
                    "name": "Crew",
                    "description": "",
                    "isIdpManaged": false,
                    "organizationRole": "ORGANIZATION_MEMBER",
                    "workspaceRoles": [in_workspace(workspace, "WORKSPACE_AUTHOR")],
                    "deploymentRoles": [],
                    "dagRoles": [],
                    "rolesCount": 2,
                }],
                "limit": 20,
                "offset": 0,
                "totalCount": 1,
            })
        );
    }
}
