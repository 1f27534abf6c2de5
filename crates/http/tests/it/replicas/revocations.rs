//! No request that is sent after a revocation was answered succeeds, on any replica.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use podium_api::{SubjectId, WorkspaceId};
use podium_domain::On;
use podium_testkit::{Actor, Answer, Engine, TestApp, block_on, role};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::two_replicas;

const CALLERS: usize = 8;
const CALLS_AFTER: usize = 6;
/// How often a right is given and taken while it is used.
const ROUNDS: usize = 200;

/// What a caller does over and over: reads by key, lists, and writes.
async fn call(app: &TestApp, actor: &Actor, workspace: WorkspaceId, turn: usize) -> Answer {
    let at = app.path(&format!("/workspaces/{workspace}"));
    match turn % 3 {
        0 => app.get(actor, &at).await,
        1 => app.get(actor, &app.path(&format!("/workspaces?workspaceIds={workspace}"))).await,
        _ => {
            let body =
                json!({ "name": "Data", "description": turn.to_string(), "cicdEnforcedDefault": false });
            app.post(actor, &at, body).await
        }
    }
}

/// Whether the caller got what it asked for.
fn succeeded(answer: &Answer) -> bool {
    assert!(answer.code() < 500, "{}", answer.text());
    answer.code() == 200 && answer.json().get("totalCount").is_none_or(|total| *total != 0)
}

/// Calls both replicas without pause while a right is taken away, and for a while after.
async fn hammer(apps: &[Arc<TestApp>; 2], actor: &Actor, workspace: WorkspaceId, revoke: impl AsyncFnOnce()) {
    let (before, revoked) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let callers: Vec<_> = (0..CALLERS)
        .map(|caller| {
            let (app, actor) = (Arc::clone(&apps[caller % 2]), actor.clone());
            let (before, revoked) = (Arc::clone(&before), Arc::clone(&revoked));
            tokio::spawn(async move {
                let mut after = 0;
                for turn in caller.. {
                    let is_revoked = revoked.load(Ordering::SeqCst);
                    let answer = call(&app, &actor, workspace, turn).await;
                    if is_revoked {
                        assert!(!succeeded(&answer), "sent after the revocation: {}", answer.text());
                        after += 1;
                    } else if succeeded(&answer) {
                        before.fetch_add(1, Ordering::SeqCst);
                    }
                    if after == CALLS_AFTER {
                        return;
                    }
                }
            })
        })
        .collect();
    while before.load(Ordering::SeqCst) < 4 * CALLERS {
        assert!(!callers.iter().any(JoinHandle::is_finished), "a caller gave up");
        tokio::task::yield_now().await;
    }
    revoke().await;
    revoked.store(true, Ordering::SeqCst);
    for caller in callers {
        caller.await.unwrap();
    }
}

async fn post(app: &TestApp, path: &str, body: Value) {
    let call = app.call("POST", &app.path(path)).by(&app.owner);
    let call = if body.is_null() { call } else { call.json(&body) };
    call.send().await.ok();
}

async fn delete(app: &TestApp, path: &str) {
    assert_eq!(app.delete(&app.owner, &app.path(path)).await.code(), 204);
}

/// Reads a list without pause until it is told to stop.
fn keep_listing(app: &Arc<TestApp>, actor: &Actor, is_over: &Arc<AtomicBool>) -> JoinHandle<()> {
    let (app, actor, is_over) = (Arc::clone(app), actor.clone(), Arc::clone(is_over));
    tokio::spawn(async move {
        while !is_over.load(Ordering::SeqCst) {
            app.get(&actor, &app.path("/workspaces")).await.ok();
            tokio::task::yield_now().await;
        }
    })
}

/// A member with these roles in workspaces.
fn roles(workspace_roles: &Value) -> Value {
    json!({ "organizationRole": "ORGANIZATION_MEMBER", "workspaceRoles": workspace_roles })
}

/// Changes the rights of somebody else over and over, so that nothing that is remembered stays fresh.
fn make_noise(app: &Arc<TestApp>, bystander: SubjectId) -> JoinHandle<()> {
    let app = Arc::clone(app);
    tokio::spawn(async move {
        for turn in 0.. {
            let role = ["ORGANIZATION_MEMBER", "ORGANIZATION_BILLING_ADMIN"][turn % 2];
            post(&app, &format!("/users/{bystander}/roles"), json!({ "organizationRole": role })).await;
        }
    })
}

async fn revocations(apps: &[Arc<TestApp>; 2], is_noisy: bool) {
    let [a, b] = [&apps[0], &apps[1]];
    let bystander = a.member("bystander").await.id;
    let noise = is_noisy.then(|| make_noise(b, bystander));
    let organization = a.organization_id;
    let keeper =
        |id| vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(On::Workspace(id), "WORKSPACE_OWNER")];
    let workspace = a.workspace("Data").await;

    let token = a.token("deleted", "ORGANIZATION", organization, "ORGANIZATION_OWNER").await;
    hammer(apps, &token, workspace, async || delete(a, &format!("/tokens/{}", token.id)).await).await;

    let token = a.token("rotated", "ORGANIZATION", organization, "ORGANIZATION_OWNER").await;
    let rotate = format!("/tokens/{}/rotate", token.id);
    hammer(apps, &token, workspace, async || post(b, &rotate, Value::Null).await).await;

    let token = a.token("weakened", "ORGANIZATION", organization, "ORGANIZATION_OWNER").await;
    let weaker = json!({ "roles": [
        { "entityType": "ORGANIZATION", "entityId": organization, "role": "ORGANIZATION_MEMBER" },
    ] });
    let path = format!("/tokens/{}/roles", token.id);
    hammer(apps, &token, workspace, async || post(b, &path, weaker).await).await;

    let demoted = b.user_with("demoted", vec![role(On::Organization, "ORGANIZATION_OWNER")]).await;
    let path = format!("/users/{}/roles", demoted.id);
    let member = roles(&json!([]));
    hammer(apps, &demoted, workspace, async || post(a, &path, member.clone()).await).await;

    let removed = a.user_with("removed", keeper(workspace)).await;
    let path = format!("/users/{}/roles", removed.id);
    let leave = json!({ "organizationRole": null });
    hammer(apps, &removed, workspace, async || post(b, &path, leave).await).await;

    let teammate = a.member("teammate").await;
    let team = a.team("Crew", &[&teammate]).await;
    let held = json!([{ "workspaceId": workspace, "role": "WORKSPACE_OWNER" }]);
    let of_team = format!("/teams/{team}/roles");
    post(b, &of_team, roles(&held)).await;
    let path = format!("/teams/{team}/members/{}", teammate.id);
    hammer(apps, &teammate, workspace, async || delete(b, &path).await).await;
    let ids = json!({ "memberIds": [teammate.id] });
    post(b, &format!("/teams/{team}/members"), ids).await;
    hammer(apps, &teammate, workspace, async || post(a, &of_team, member).await).await;
    post(a, &of_team, roles(&held)).await;
    hammer(apps, &teammate, workspace, async || delete(a, &format!("/teams/{team}")).await).await;

    let user = a.user_with("signed out", keeper(workspace)).await;
    let session = a.session_of(&user).await;
    hammer(apps, &session, workspace, async || {
        assert_eq!(b.call("POST", "/v1/auth/sign-out").by(&session).send().await.code(), 204);
    })
    .await;
    let session = b.session_of(&user).await;
    let listed = b.get(&user, "/v1/auth/sessions").await.ok();
    let listed = listed["sessions"].as_array().unwrap().iter().find(|one| one["kind"] == "TERMINAL");
    let of_session = format!("/v1/auth/sessions/{}", listed.unwrap()["id"].as_str().unwrap());
    hammer(apps, &session, workspace, async || {
        assert_eq!(a.delete(&user, &of_session).await.code(), 204);
    })
    .await;
    let session = b.session_of(&user).await;
    hammer(apps, &session, workspace, async || {
        assert_eq!(a.call("POST", "/v1/auth/sessions/end-others").by(&user).send().await.code(), 204);
    })
    .await;
    let session = b.session_of(&user).await;
    hammer(apps, &session, workspace, async || {
        let body = json!({ "currentPassword": "", "newPassword": "correct horse battery" });
        assert_eq!(a.post(&user, "/v1/auth/change-password", body).await.code(), 204);
    })
    .await;

    let closed = b.workspace("Closed").await;
    let token = b.token("closed", "WORKSPACE", closed, "WORKSPACE_MEMBER").await;
    let reader = [Arc::clone(a), Arc::clone(b)];
    hammer(&reader, &token, closed, async || delete(a, &format!("/workspaces/{closed}")).await).await;

    if let Some(noise) = noise {
        assert!(!noise.is_finished());
        noise.abort();
    }
    let outside = a.user_with("outside", keeper(workspace)).await;
    hammer(apps, &outside, workspace, async || {
        let body = json!({ "ipAddressRange": "203.0.113.0/24" });
        let call = b.call("POST", &b.path("/allowed-ip-address-ranges")).by(&b.owner).from("203.0.113.1");
        call.json(&body).send().await.ok();
    })
    .await;
}

#[test]
fn no_request_sent_after_a_revocation_succeeds_on_either_replica() {
    block_on(async { revocations(&two_replicas().await, false).await });
}

#[test]
fn nor_does_one_while_the_rights_of_others_change_all_the_time() {
    block_on(async { revocations(&two_replicas().await, true).await });
}

#[test]
fn no_request_sent_after_a_revocation_succeeds_on_sqlite() {
    block_on(async {
        let app = Arc::new(TestApp::start(Engine::Sqlite).await);
        revocations(&[Arc::clone(&app), app], true).await;
    });
}

#[test]
fn a_list_that_was_read_with_rights_that_are_gone_is_not_given_again() {
    block_on(async {
        let app = Arc::new(TestApp::start(Engine::Sqlite).await);
        let workspace = app.workspace("Data").await;
        let (reader, others) =
            (app.member("reader").await, [app.member("one").await, app.member("two").await]);
        let held = roles(&json!([{ "workspaceId": workspace, "role": "WORKSPACE_MEMBER" }]));
        let lost = roles(&json!([]));
        let [of_reader, of_one, of_two] =
            [&reader, &others[0], &others[1]].map(|actor| format!("/users/{}/roles", actor.id));
        for round in 0..ROUNDS {
            post(&app, &of_reader, held.clone()).await;
            let is_over = Arc::<AtomicBool>::default();
            let readers = [(); 4].map(|()| keep_listing(&app, &reader, &is_over));
            // Commits that share a sync are visible before it, so that reads fall between the two.
            tokio::join!(
                post(&app, &of_one, lost.clone()),
                post(&app, &of_two, lost.clone()),
                post(&app, &of_reader, lost.clone()),
            );
            let listed = app.get(&reader, &app.path("/workspaces")).await.ok();
            assert_eq!(listed["totalCount"], 0, "in round {round}");
            is_over.store(true, Ordering::SeqCst);
            for reader in readers {
                reader.await.unwrap();
            }
        }
    });
}
