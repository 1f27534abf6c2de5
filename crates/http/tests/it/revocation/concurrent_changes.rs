//! Two who take rights away from each other at the same moment: one of them loses, on whichever replica they are.

use std::sync::Arc;

use podium_api::enums::OrganizationRole;
use podium_testkit::{Actor, Answer, Engine, TestApp, block_on};
use serde_json::{Value, json};
use tokio::sync::Barrier;

const ROUNDS: usize = 15;

/// Lets two call at the same moment; their statuses.
async fn at_once(apps: &[Arc<TestApp>; 2], calls: [(&Actor, &'static str, String, Value); 2]) -> [Answer; 2] {
    let start = Arc::new(Barrier::new(2));
    let [one, other] = [0, 1].map(|index| {
        let (by, method, path, body) = &calls[index];
        let (by, method, path, body) = ((*by).clone(), *method, path.clone(), body.clone());
        let (app, start) = (Arc::clone(&apps[index]), Arc::clone(&start));
        tokio::spawn(async move {
            start.wait().await;
            let call = app.call(method, &path).by(&by);
            if body.is_null() { call.send().await } else { call.json(&body).send().await }
        })
    });
    [one.await.unwrap(), other.await.unwrap()]
}

/// On SQLite, on PostgreSQL, and on two replicas of PostgreSQL.
#[expect(clippy::needless_pass_by_value, reason = "a closure reads better where it is called")]
fn everywhere(test: impl AsyncFn(&[Arc<TestApp>; 2])) {
    block_on(async {
        for engine in [Engine::Sqlite, Engine::Postgres] {
            let app = Arc::new(TestApp::start(engine).await);
            test(&[Arc::clone(&app), app]).await;
        }
        let app = Arc::new(TestApp::start(Engine::Postgres).await);
        let replica = Arc::new(app.replica().await);
        test(&[app, replica]).await;
    });
}

fn statuses(answers: &[Answer; 2]) -> [u16; 2] {
    let mut statuses = [answers[0].code(), answers[1].code()];
    statuses.sort_unstable();
    statuses
}

fn roles(app: &TestApp, of: &Actor) -> String {
    app.path(&format!("/users/{}/roles", of.id))
}

async fn role_of(app: &TestApp, by: &Actor, of: &Actor) -> Option<String> {
    let user = app.get(by, &app.path(&format!("/users/{}", of.id))).await;
    (user.code() == 200).then(|| user.json()["organizationRole"].as_str().expect("a role").to_owned())
}

#[test]
fn of_two_owners_who_demote_each_other_one_stays() {
    everywhere(async |apps| {
        let app = &apps[0];
        for round in 0..ROUNDS {
            let a = app.member_as(&format!("a{round}"), OrganizationRole::Owner).await;
            let b = app.member_as(&format!("b{round}"), OrganizationRole::Owner).await;
            // Both are remembered by then.
            for (app, actor) in apps.iter().zip([&a, &b]) {
                app.get(actor, &app.path("/workspaces")).await.ok();
            }
            let body = json!({ "organizationRole": "ORGANIZATION_MEMBER" });
            let calls = [(&a, "POST", roles(app, &b), body.clone()), (&b, "POST", roles(app, &a), body)];
            let answers = at_once(apps, calls).await;
            assert_eq!(statuses(&answers), [200, 403], "round {round}: {}", answers[1].text());
            let mut held = [role_of(app, &app.owner, &a).await, role_of(app, &app.owner, &b).await];
            held.sort();
            let [member, owner] = held;
            assert_eq!(member.as_deref(), Some("ORGANIZATION_MEMBER"));
            assert_eq!(owner.as_deref(), Some("ORGANIZATION_OWNER"));
        }
    });
}

#[test]
fn of_two_owners_who_remove_each_other_one_stays() {
    everywhere(async |apps| {
        let app = &apps[0];
        for round in 0..ROUNDS {
            let a = app.member_as(&format!("a{round}"), OrganizationRole::Owner).await;
            let b = app.member_as(&format!("b{round}"), OrganizationRole::Owner).await;
            let body = json!({ "organizationRole": null });
            let calls = [(&a, "POST", roles(app, &b), body.clone()), (&b, "POST", roles(app, &a), body)];
            let answers = at_once(apps, calls).await;
            assert_eq!(statuses(&answers), [200, 404], "round {round}");
            let left = [role_of(app, &app.owner, &a).await, role_of(app, &app.owner, &b).await];
            assert_eq!(left.iter().flatten().count(), 1);
        }
    });
}

#[test]
fn of_two_owners_through_teams_who_remove_each_other_one_stays() {
    everywhere(async |apps| {
        let app = &apps[0];
        for round in 0..ROUNDS {
            let a = app.member(&format!("a{round}")).await;
            let b = app.member(&format!("b{round}")).await;
            let mut paths = Vec::new();
            for (name, member) in [("of a", &a), ("of b", &b)] {
                let body = json!({
                    "name": format!("{name} {round}"), "memberIds": [member.id],
                    "organizationRole": "ORGANIZATION_OWNER",
                });
                let team = app.post(&app.owner, &app.path("/teams"), body).await.ok();
                paths.push(app.path(&format!(
                    "/teams/{}/members/{}",
                    team["id"].as_str().unwrap(),
                    member.id
                )));
            }
            let calls = [
                (&a, "DELETE", paths[1].clone(), Value::Null),
                (&b, "DELETE", paths[0].clone(), Value::Null),
            ];
            assert_eq!(statuses(&at_once(apps, calls).await), [204, 403], "round {round}");
        }
    });
}

#[test]
fn of_the_last_two_owners_who_leave_one_stays() {
    everywhere(async |apps| {
        let app = &apps[0];
        let mut last = app.owner.clone();
        for round in 0..ROUNDS {
            let other = app.member_as(&format!("other {round}"), OrganizationRole::Owner).await;
            let body = json!({ "organizationRole": null });
            let calls = [
                (&last, "POST", roles(app, &last), body.clone()),
                (&other, "POST", roles(app, &other), body),
            ];
            let answers = at_once(apps, calls).await;
            assert_eq!(statuses(&answers), [200, 400], "round {round}: {}", answers[0].text());
            if answers[0].code() == 200 {
                last = other;
            }
            assert_eq!(role_of(app, &last, &last).await.as_deref(), Some("ORGANIZATION_OWNER"));
        }
    });
}

#[test]
fn the_last_owner_stays_whether_its_team_goes_or_another_owner() {
    everywhere(async |apps| {
        let app = &apps[0];
        let mut last = app.owner.clone();
        for round in 0..ROUNDS {
            // One owns by itself, the other through a team; each gives up what is its own.
            let member = app.member(&format!("member {round}")).await;
            let body = json!({
                "name": format!("owners {round}"), "memberIds": [member.id], "organizationRole": "ORGANIZATION_OWNER",
            });
            let team = app.post(&last, &app.path("/teams"), body).await.ok();
            let team = app.path(&format!("/teams/{}", team["id"].as_str().unwrap()));
            let step_down = json!({ "organizationRole": "ORGANIZATION_MEMBER" });
            let calls = [
                (&last, "POST", roles(app, &last), step_down),
                (&member, "DELETE", team.clone(), Value::Null),
            ];
            let answers = at_once(apps, calls).await;
            let codes = [answers[0].code(), answers[1].code()];
            assert!(codes == [200, 400] || codes == [400, 204], "round {round}: {codes:?}");
            if codes[0] == 200 {
                // The team owns it now: its member takes over by itself for the next round.
                let body = json!({ "organizationRole": "ORGANIZATION_OWNER" });
                app.post(&member, &roles(app, &member), body).await.ok();
                app.delete(&member, &team).await.ok();
                last = member;
            }
        }
    });
}
