//! Who is in a team, and what that gives.

use podium_api::Id;
use podium_domain::On;
use podium_testkit::{Actor, TestApp, on_both_engines, role};
use serde_json::{Value, json};

use super::{path, turn_scim_on};

async fn add(app: &TestApp, team: impl std::fmt::Display, ids: Value) -> podium_testkit::Answer {
    app.post(&app.owner, &path(app, format!("{team}/members")), json!({ "memberIds": ids })).await
}

async fn remove(app: &TestApp, team: impl std::fmt::Display, member: &Actor) -> podium_testkit::Answer {
    app.delete(&app.owner, &path(app, format!("{team}/members/{}", member.id))).await
}

async fn listed(app: &TestApp, team: impl std::fmt::Display, query: &str) -> Vec<String> {
    let list = app.get(&app.owner, &path(app, format!("{team}/members?{query}"))).await.ok();
    let name = |member: &Value| member["fullName"].as_str().unwrap().to_owned();
    list["teamMembers"].as_array().unwrap().iter().map(name).collect()
}

on_both_engines! {
    async fn members_are_added_listed_and_removed(app) {
        let team = app.team("Crew", &[]).await;
        let members = path(&app, format!("{team}/members"));
        let nobody = json!({ "teamMembers": [], "limit": 20, "offset": 0, "totalCount": 0 });
        assert_eq!(app.get(&app.owner, &members).await.ok(), nobody);
        let eve = app.member("eve").await;
        let added = add(&app, team, json!([eve.id])).await;
        assert_eq!((added.code(), added.bytes.len()), (204, 0));
        insta::assert_json_snapshot!(app.get(&app.owner, &members).await.ok(), @r#"
        {
          "teamMembers": [
            {
              "userId": "cmywpiww00006000000000000",
              "username": "eve@podium.test",
              "fullName": "eve",
              "avatarUrl": "https://podium.test/pictures/E.svg",
              "createdAt": "2027-01-15T08:00:00.000Z"
            }
          ],
          "limit": 20,
          "offset": 0,
          "totalCount": 1
        }
        "#);
        assert_eq!(remove(&app, team, &eve).await.code(), 204);
        assert_eq!(app.get(&app.owner, &members).await.ok(), nobody);
    }

    async fn adding_is_idempotent_and_removing_a_non_member_is_not_found(app) {
        let (ada, bob) = (app.member("ada").await, app.member("bob").await);
        let team = app.team("Crew", &[&ada]).await;
        let before = app.get(&app.owner, &path(&app, team)).await;
        assert_eq!(add(&app, team, json!([ada.id, ada.id])).await.code(), 204);
        assert_eq!(app.get(&app.owner, &path(&app, team)).await.header("etag"), before.header("etag"));
        assert_eq!(add(&app, team, json!([ada.id, bob.id])).await.code(), 204);
        assert_eq!(listed(&app, team, "sorts=fullName:asc").await, ["ada", "bob"]);
        assert_eq!(remove(&app, team, &bob).await.code(), 204);
        let message = remove(&app, team, &bob).await.refused(404);
        assert_eq!(message, "There is no such member of this team, or you may not see it.");
        assert_eq!(app.delete(&app.owner, &path(&app, format!("{team}/members/x"))).await.code(), 404);
        assert_eq!(listed(&app, team, "").await, ["ada"]);
    }

    async fn members_are_users_of_the_organization(app) {
        let (ada, stranger) = (app.member("ada").await, app.stranger().await);
        let team = app.team("Crew", &[]).await;
        let wrong = add(&app, team, json!([stranger.id, ada.id, app.world.id::<Id>()])).await.wrong_fields();
        assert_eq!(wrong, ["memberIds[0]: notFound", "memberIds[2]: notFound"]);
        assert_eq!(add(&app, team, json!([])).await.wrong_fields(), ["memberIds: minItems"]);
        assert_eq!(listed(&app, team, "").await, Vec::<String>::new());
        let invite = json!({ "inviteeEmail": "new@podium.test", "role": "ORGANIZATION_MEMBER" });
        let invite = app.post(&app.owner, &app.path("/invites"), invite).await.ok();
        assert_eq!(add(&app, team, json!([invite["userId"]])).await.code(), 204);
        assert_eq!(add(&app, app.world.id::<Id>(), json!([ada.id])).await.code(), 404);
    }

    async fn members_are_sorted_and_paged(app) {
        let team = app.team("Crew", &[]).await;
        for name in ["bob", "Zoe", "ada"] {
            let member = app.member(name).await;
            add(&app, team, json!([member.id])).await;
            app.advance(std::time::Duration::from_millis(1));
        }
        for (query, expected) in [
            ("", "ada Zoe bob"),
            ("sorts=createdAt:asc", "bob Zoe ada"),
            ("sorts=fullName:asc", "ada bob Zoe"),
            ("sorts=username:desc", "Zoe bob ada"),
            ("sorts=userId:asc", "bob Zoe ada"),
            ("sorts=fullName:asc&limit=1&offset=2", "Zoe"),
        ] {
            assert_eq!(listed(&app, team, query).await.join(" "), expected, "{query}");
        }
        let list = app.get(&app.owner, &path(&app, format!("{team}/members?limit=1001"))).await.ok();
        assert_eq!((&list["limit"], &list["totalCount"]), (&json!(1000), &json!(3)));
    }

    async fn a_team_gives_its_roles_to_its_members_while_they_are_members(app) {
        let (eve, workspace) = (app.member("eve").await, app.workspace("Data").await);
        let team = app.team("Crew", &[]).await;
        let roles = json!({
            "organizationRole": "ORGANIZATION_MEMBER",
            "workspaceRoles": [{ "workspaceId": workspace, "role": "WORKSPACE_MEMBER" }],
        });
        app.post(&app.owner, &path(&app, format!("{team}/roles")), roles).await.ok();
        let sees = async || app.get(&eve, &app.path(&format!("/workspaces/{workspace}"))).await.code();
        assert_eq!(sees().await, 404);
        add(&app, team, json!([eve.id])).await;
        assert_eq!(sees().await, 200);
        remove(&app, team, &eve).await;
        assert_eq!(sees().await, 404);
        add(&app, team, json!([eve.id])).await;
        assert_eq!(app.delete(&app.owner, &path(&app, team)).await.code(), 204);
        assert_eq!(sees().await, 404);
    }

    async fn rights_through_teams_add_to_those_of_the_user(app) {
        let (first, second) = (app.workspace("First").await, app.workspace("Second").await);
        let eve = app
            .user_with(
                "eve",
                vec![
                    role(On::Organization, "ORGANIZATION_MEMBER"),
                    role(On::Workspace(first), "WORKSPACE_OWNER"),
                    role(On::Workspace(second), "WORKSPACE_ACCESSOR"),
                ],
            )
            .await;
        let team = app.team("Crew", &[&eve]).await;
        let roles = json!({
            "organizationRole": "ORGANIZATION_BILLING_ADMIN",
            "workspaceRoles": [
                { "workspaceId": first, "role": "WORKSPACE_ACCESSOR" },
                { "workspaceId": second, "role": "WORKSPACE_OWNER" },
            ],
        });
        app.post(&app.owner, &path(&app, format!("{team}/roles")), roles).await.ok();
        let settings = json!({ "name": "Acme", "billingEmail": "", "isScimEnabled": false });
        assert_eq!(app.post(&eve, &app.path(""), settings).await.code(), 200);
        for (id, name) in [(first, "First"), (second, "Second")] {
            let body = json!({ "name": name, "description": "by eve", "cicdEnforcedDefault": false });
            assert_eq!(app.post(&eve, &app.path(&format!("/workspaces/{id}")), body).await.code(), 200);
        }
    }

    async fn members_of_a_managed_team_are_not_changed_by_hand(app) {
        let (ada, bob) = (app.member("ada").await, app.member("bob").await);
        let team = app.team("Synced", &[&ada]).await;
        app.set_column("teams", team, "is_idp_managed", "TRUE").await;
        turn_scim_on(&app).await;
        let message = "The identity provider manages the members of this team: change the group there.";
        assert_eq!(add(&app, team, json!([bob.id])).await.refused(400), message);
        assert_eq!(remove(&app, team, &ada).await.refused(400), message);
        assert_eq!(listed(&app, team, "").await, ["ada"]);
        assert_eq!(app.get(&app.owner, &path(&app, team)).await.ok()["isIdpManaged"], true);
    }
}
