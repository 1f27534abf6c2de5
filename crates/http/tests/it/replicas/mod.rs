//! Several replicas on one PostgreSQL behave as one server does; so does one server with many callers at once.

mod changes;
mod idempotency;
mod load;
mod revocations;
mod starting;

use std::sync::Arc;

use podium_api::Timestamp;
use podium_domain::On;
use podium_testkit::{Engine, START, TestApp, block_on, role};
use serde_json::json;

/// Two replicas on one PostgreSQL.
async fn two_replicas() -> [Arc<TestApp>; 2] {
    let first = TestApp::start(Engine::Postgres).await;
    let second = first.replica().await;
    [Arc::new(first), Arc::new(second)]
}

#[test]
fn a_right_that_one_replica_gives_is_honoured_by_the_next_request_on_the_other() {
    block_on(async {
        let apps = two_replicas().await;
        let [a, b] = [&apps[0], &apps[1]];
        let workspace = a.workspace("Data").await;
        let eve = a.member("eve").await;
        let crew = a.team("Crew", &[&eve]).await;
        let at = a.path(&format!("/workspaces/{workspace}"));
        let roles = |id: &dyn std::fmt::Display, kind: &str| a.path(&format!("/{kind}/{id}/roles"));
        let (of_user, of_team) = (roles(&eve.id, "users"), roles(&crew, "teams"));
        for round in 0..20 {
            let (here, there) = if round % 2 == 0 { (a, b) } else { (b, a) };
            let path = if round % 4 < 2 { &of_user } else { &of_team };
            let hold = json!({
                "organizationRole": "ORGANIZATION_MEMBER",
                "workspaceRoles": [{ "workspaceId": workspace, "role": "WORKSPACE_MEMBER" }],
            });
            let lose = json!({ "organizationRole": "ORGANIZATION_MEMBER", "workspaceRoles": [] });
            assert_eq!(there.get(&eve, &at).await.code(), 404);
            here.post(&here.owner, path, hold).await.ok();
            assert_eq!(there.get(&eve, &at).await.code(), 200);
            assert_eq!(there.get(&eve, &there.path("/workspaces")).await.ok()["totalCount"], 1);
            assert_eq!(here.get(&eve, &at).await.code(), 200);
            here.post(&here.owner, path, lose).await.ok();
            assert_eq!(there.get(&eve, &at).await.code(), 404);
            assert_eq!(there.get(&eve, &there.path("/workspaces")).await.ok()["totalCount"], 0);
            assert_eq!(here.get(&eve, &at).await.code(), 404);
        }
    });
}

#[test]
fn a_replica_reads_what_another_wrote() {
    block_on(async {
        let apps = two_replicas().await;
        let [a, b] = [&apps[0], &apps[1]];
        for round in 0..20 {
            let (here, there) = if round % 2 == 0 { (a, b) } else { (b, a) };
            here.world.set(Timestamp::from_millis(START + round));
            let made = here
                .post(&here.owner, &here.path("/workspaces"), json!({ "name": format!("W{round}") }))
                .await;
            let at = here.path(&format!("/workspaces/{}", made.id()));
            let read = there.get(&there.owner, &at).await;
            assert_eq!((read.ok(), read.header("etag")), (made.ok(), made.header("etag")));
            let list = there.get(&there.owner, &there.path("/workspaces?limit=1")).await.ok();
            assert_eq!(
                (&list["totalCount"], &list["workspaces"][0]["id"]),
                (&json!(round + 2), &json!(made.id()))
            );
            let taken = there
                .post(&there.owner, &there.path("/workspaces"), json!({ "name": format!("w{round}") }))
                .await;
            assert_eq!(taken.code(), 409);
            let token = here
                .token(&format!("t{round}"), "ORGANIZATION", here.organization_id, "ORGANIZATION_OWNER")
                .await;
            assert_eq!(there.get(&token, &at).await.code(), 200);
        }
    });
}

#[test]
fn a_code_used_on_one_replica_is_used_up_on_the_other() {
    block_on(async {
        let apps = two_replicas().await;
        let [a, b] = [&apps[0], &apps[1]];
        let eve = a.user_with("eve", vec![role(On::Organization, "ORGANIZATION_OWNER")]).await;
        for (here, there) in [(a, b), (b, a)] {
            let session = here.session_of(&eve).await;
            assert_eq!(there.get(&session, "/v1/users/self").await.code(), 200);
            assert_eq!(there.get(&session, &there.path("/workspaces")).await.code(), 200);
            assert_eq!(here.call("POST", "/v1/auth/sign-out").by(&session).send().await.code(), 204);
            assert_eq!(there.get(&session, "/v1/users/self").await.code(), 401);
            assert_eq!(there.get(&session, &there.path("/workspaces")).await.code(), 401);
        }
    });
}
