//! `/organizations/{organizationId}/teams`

mod members;
mod roles;

use podium_api::Id;
use podium_api::enums::OrganizationRole;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

fn path(app: &TestApp, id: impl std::fmt::Display) -> String {
    app.path(&format!("/teams/{id}"))
}

fn names(list: &Value) -> Vec<&str> {
    list["teams"].as_array().unwrap().iter().map(|team| team["name"].as_str().unwrap()).collect()
}

/// Switches SCIM on.
async fn turn_scim_on(app: &TestApp) {
    let body = json!({ "name": "My organization", "billingEmail": "", "isScimEnabled": true });
    app.post(&app.owner, &app.path(""), body).await.ok();
}

on_both_engines! {
    async fn a_team_is_created_read_changed_and_deleted(app) {
        let created = app.post(&app.owner, &app.path("/teams"), json!({ "name": " Crew " })).await;
        assert_eq!(created.code(), 200);
        insta::assert_json_snapshot!(created.ok(), @r#"
        {
          "id": "cmywpiww00004000000000000",
          "name": "Crew",
          "description": "",
          "organizationId": "cmywpiww00000000000000000",
          "isIdpManaged": false,
          "organizationRole": "ORGANIZATION_MEMBER",
          "rolesCount": 1,
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
        let at = path(&app, created.id());
        assert_eq!(app.get(&app.owner, &at).await.ok(), created.ok());
        app.advance(std::time::Duration::from_secs(1));
        let body = json!({ "name": "Night crew", "description": "Sleeps by day" });
        let changed = app.post(&app.owner, &at, body).await.ok();
        let mut expected = created.ok();
        expected["name"] = "Night crew".into();
        expected["description"] = "Sleeps by day".into();
        expected["updatedAt"] = "2027-01-15T08:00:01.000Z".into();
        assert_eq!(changed, expected);
        let kept = app.post(&app.owner, &at, json!({ "name": "Night crew", "description": null })).await.ok();
        assert_eq!(kept["description"], "Sleeps by day");
        let cleared =
            app.post(&app.owner, &at, json!({ "name": "Night crew", "description": "" })).await.ok();
        assert_eq!(cleared["description"], "");
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
        for answer in [app.get(&app.owner, &at).await, app.delete(&app.owner, &at).await] {
            assert_eq!(answer.refused(404), "There is no such team, or you may not see it.");
        }
    }

    async fn a_team_can_begin_with_members_and_a_role(app) {
        let (ada, bob) = (app.member("ada").await, app.member("bob").await);
        let body = json!({
            "name": "Owners",
            "description": "Run the place",
            "organizationRole": "ORGANIZATION_OWNER",
            "memberIds": [ada.id, bob.id, ada.id],
        });
        let team = app.post(&app.owner, &app.path("/teams"), body).await.ok();
        assert_eq!(
            (&team["organizationRole"], &team["rolesCount"]),
            (&json!("ORGANIZATION_OWNER"), &json!(1))
        );
        let members = path(&app, format!("{}/members", team["id"].as_str().unwrap()));
        assert_eq!(app.get(&app.owner, &members).await.ok()["totalCount"], 2);
        assert_eq!(app.get(&ada, &app.path("/audit-logs")).await.code(), 200, "a member is an owner now");
    }

    async fn others_are_remembered_when_a_team_begins_without_members(app) {
        let epoch = async || app.column("organizations", app.organization_id, "authorization_epoch").await;
        let (ada, before) = (app.member("ada").await, epoch().await);
        app.post(&app.owner, &app.path("/teams"), json!({ "name": "Empty" })).await.ok();
        app.post(&app.owner, &app.path("/teams"), json!({ "name": "Also empty", "memberIds": [] })).await.ok();
        assert_eq!(epoch().await, before, "nobody has more rights than before");
        let body = json!({ "name": "Crew", "memberIds": [ada.id] });
        app.post(&app.owner, &app.path("/teams"), body).await.ok();
        assert_ne!(epoch().await, before);
    }

    async fn names_are_unique_without_regard_to_case(app) {
        let all = app.path("/teams");
        let crew = app.team("Crew", &[]).await;
        let other = app.team("Other", &[]).await;
        let taken = app.post(&app.owner, &all, json!({ "name": "cREW" })).await.refused(409);
        assert_eq!(taken, "A team named `cREW` already exists: choose another name.");
        assert_eq!(app.post(&app.owner, &path(&app, other), json!({ "name": "CREW" })).await.code(), 409);
        assert_eq!(
            app.post(&app.owner, &path(&app, crew), json!({ "name": "CREW" })).await.ok()["name"],
            "CREW"
        );
        assert_eq!(app.delete(&app.owner, &path(&app, crew)).await.code(), 204);
        app.team("crew", &[]).await;
    }

    async fn every_wrong_field_is_named(app) {
        let unknown = app.world.id::<Id>();
        let stranger = app.stranger().await;
        for (body, wrong) in [
            (json!({}), vec!["name: required"]),
            (json!({ "name": "x".repeat(129) }), vec!["name: maxLength"]),
            (json!({ "name": "x", "description": "x".repeat(501) }), vec!["description: maxLength"]),
            (json!({ "name": "x", "organizationRole": "OWNER" }), vec!["organizationRole: enum"]),
            (json!({ "name": "x", "memberIds": ["y"] }), vec!["memberIds[0]: format"]),
            (
                json!({ "name": " ", "memberIds": [app.owner.id, unknown, stranger.id] }),
                vec!["name: required", "memberIds[1]: notFound", "memberIds[2]: notFound"],
            ),
        ] {
            let answer = app.post(&app.owner, &app.path("/teams"), body.clone()).await;
            assert_eq!(answer.wrong_fields(), wrong, "{body}");
        }
        let empty = json!({ "name": "x", "organizationRole": "", "memberIds": null });
        let team = app.post(&app.owner, &app.path("/teams"), empty).await.ok();
        assert_eq!(team["organizationRole"], "ORGANIZATION_MEMBER");
    }

    async fn a_list_is_filtered_by_names_and_by_where_a_role_is_held(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        for (name, roles) in [
            (
                "Readers",
                json!({ "workspaceRoles": [{ "workspaceId": workspace, "role": "WORKSPACE_MEMBER" }] }),
            ),
            (
                "Admins",
                json!({ "deploymentRoles": [{ "deploymentId": deployment, "role": "DEPLOYMENT_ADMIN" }] }),
            ),
            ("Others", json!({})),
        ] {
            let id = app.team(name, &[]).await;
            let mut body = roles;
            body["organizationRole"] = "ORGANIZATION_MEMBER".into();
            app.post(&app.owner, &path(&app, format!("{id}/roles")), body).await.ok();
        }
        let list = async |query: String| {
            let list = app.get(&app.owner, &app.path(&format!("/teams?sorts=name:asc&{query}"))).await.ok();
            assert_eq!(list["totalCount"], names(&list).len());
            names(&list).join(" ")
        };
        assert_eq!(list(String::new()).await, "Admins Others Readers");
        assert_eq!(list("names=READERS&names=others&names=x".into()).await, "Others Readers");
        assert_eq!(list(format!("workspaceId={workspace}")).await, "Admins Readers");
        assert_eq!(list(format!("deploymentId={deployment}")).await, "Admins");
        assert_eq!(list(format!("deploymentId={deployment}&names=readers")).await, "");
        assert_eq!(list("workspaceId=&deploymentId=".into()).await, "Admins Others Readers");
        assert_eq!(list("workspaceId=nothing".into()).await, "");
    }

    async fn a_list_is_sorted_and_paged(app) {
        for (name, description) in [("b", "2"), ("a", "1"), ("C", "1")] {
            let body = json!({ "name": name, "description": description });
            app.post(&app.owner, &app.path("/teams"), body).await.ok();
            app.advance(std::time::Duration::from_millis(1));
        }
        for (query, expected) in [
            ("", "C a b"),
            ("sorts=name:asc", "a b C"),
            ("sorts=name:desc", "C b a"),
            ("sorts=description:asc&sorts=name:desc", "C a b"),
            ("sorts=description:desc&sorts=name:asc", "b a C"),
            ("sorts=updatedAt:asc&limit=1&offset=1", "a"),
            ("limit=0", ""),
            ("offset=7", ""),
        ] {
            let list = app.get(&app.owner, &app.path(&format!("/teams?{query}"))).await.ok();
            assert_eq!(names(&list).join(" "), expected, "{query}");
            assert_eq!(list["totalCount"], 3);
        }
    }

    async fn members_see_teams_and_owners_keep_them(app) {
        let id = app.team("Crew", &[]).await;
        for role in [OrganizationRole::Member, OrganizationRole::BillingAdmin] {
            let actor = app.member_as(role.as_str(), role).await;
            assert_eq!(names(&app.get(&actor, &app.path("/teams")).await.ok()), ["Crew"]);
            assert_eq!(app.get(&actor, &path(&app, id)).await.code(), 200);
            assert_eq!(app.get(&actor, &path(&app, format!("{id}/members"))).await.code(), 200);
            for answer in [
                app.post(&actor, &app.path("/teams"), json!({ "name": "Mine" })).await,
                app.post(&actor, &path(&app, id), json!({ "name": "Mine" })).await,
                app.post(&actor, &path(&app, format!("{id}/members")), json!({ "memberIds": [actor.id] }))
                    .await,
                app.delete(&actor, &path(&app, format!("{id}/members/{}", actor.id))).await,
                app.delete(&actor, &path(&app, id)).await,
            ] {
                assert_eq!(answer.code(), 403, "{}", answer.text());
            }
        }
    }

    async fn with_scim_on_teams_are_not_created_by_hand(app) {
        let before = app.team("Before", &[]).await;
        turn_scim_on(&app).await;
        let refused = app.post(&app.owner, &app.path("/teams"), json!({ "name": "Crew" })).await.refused(400);
        assert_eq!(refused, "SCIM is on, so the identity provider creates teams: create the group there.");
        let eve = app.member("eve").await;
        let members = path(&app, format!("{before}/members"));
        assert_eq!(app.post(&app.owner, &members, json!({ "memberIds": [eve.id] })).await.code(), 204);
    }
}
