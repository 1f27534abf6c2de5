//! The caller's own sessions: listed, and ended.

use std::collections::BTreeSet;

use podium_api::enums::LogSource;
use podium_app::maintenance;
use podium_db::Migration;
use podium_testkit::{Engine, START, run};

use super::*;
use crate::deployment_logs::{line, write};
use crate::front_door::{SESSION, cookies, signed_in, visit};

const SESSIONS: &str = "/v1/auth/sessions";
const OTHERS: &str = "/v1/auth/sessions/end-others";
const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

/// The caller's sessions, oldest first.
async fn sessions(app: &TestApp, by: &Actor) -> Vec<Value> {
    let listed = app.get(by, &format!("{SESSIONS}?sorts=createdAt:asc")).await.ok();
    let all = listed["sessions"].as_array().unwrap().clone();
    assert_eq!(listed["totalCount"], all.len());
    all
}

fn kinds(sessions: &[Value]) -> Vec<&str> {
    sessions.iter().map(|session| session["kind"].as_str().unwrap()).collect()
}

fn at(session: &Value) -> String {
    format!("{SESSIONS}/{}", session["id"].as_str().unwrap())
}

/// Signs in at the API, as another terminal of the same person.
async fn terminal(app: &TestApp, person: &Actor, name: &str) -> Actor {
    app.advance(Duration::from_secs(1));
    let body = json!({ "username": format!("{name}@podium.test"), "password": PASSWORD });
    let call = app.call("POST", "/v1/auth/sign-in").from("192.0.2.7").header("user-agent", "podium/1.0");
    let token = call.json(&body).send().await.ok()["token"].as_str().unwrap().to_owned();
    Actor { id: person.id, token }
}

/// Signs in a browser with the password: its cookie.
async fn browser(app: &TestApp, name: &str, user_agent: &str) -> String {
    app.advance(Duration::from_secs(1));
    let form = format!("username={name}%40podium.test&password={}", PASSWORD.replace(' ', "+"));
    let call = app.call("POST", "/sign-in").header("origin", "https://podium.test").from("192.0.2.8");
    let answer = call.header("user-agent", user_agent).body(form).send().await;
    assert_eq!(answer.code(), 303, "{}", answer.text());
    format!("{SESSION}={}", cookies(&answer)[SESSION])
}

async fn is_signed_in(app: &TestApp, cookie: &str) -> bool {
    visit(app, &format!("/console/{}", app.organization_id), cookie).await.code() == 200
}

pub(crate) async fn end_browsers(app: &TestApp, person: &Actor) {
    for session in sessions(app, person).await.iter().filter(|session| session["kind"] == "BROWSER") {
        assert_eq!(app.delete(person, &at(session)).await.code(), 204);
    }
}

/// Takes back the migration that lists sessions, and applies it to what is there now.
async fn upgrade(app: &TestApp) {
    app.execute("DROP TABLE user_sessions").await;
    app.execute("DROP INDEX browser_sessions_id").await;
    app.execute("ALTER TABLE browser_sessions DROP COLUMN id").await;
    app.execute("DROP TABLE schema_migrations").await;
    let forth = Migration::of_file(
        "0032_user_sessions",
        include_str!("../../../../../migrations/sqlite/0032_user_sessions.sql"),
        include_str!("../../../../../migrations/postgres/0032_user_sessions.sql"),
    );
    app.app.db(&app.system).migrate(&[forth]).await.unwrap();
}

on_both_engines! {
    async fn a_person_sees_what_is_signed_in_and_from_where(app) {
        let ada = person(&app, "ada").await;
        terminal(&app, &ada, "ada").await;
        let cookie = browser(&app, "ada", FIREFOX).await;
        app.advance(Duration::from_secs(1));
        let by_token = signed_in(&app, &ada).await;
        let listed = sessions(&app, &ada).await;
        assert_eq!(kinds(&listed), ["TERMINAL", "TERMINAL", "BROWSER", "BROWSER"]);
        let current: Vec<&Value> = listed.iter().map(|session| &session["isCurrent"]).collect();
        assert_eq!(current, [true, false, false, false]);
        assert_eq!((&listed[1]["address"], &listed[1]["userAgent"]), (&json!("192.0.2.7"), &json!("podium/1.0")));
        assert_eq!((&listed[2]["address"], &listed[2]["userAgent"]), (&json!("192.0.2.8"), &json!(FIREFOX)));
        let fields: BTreeSet<&String> = listed.iter().flat_map(|session| session.as_object().unwrap().keys()).collect();
        let public = ["address", "createdAt", "endsCurrent", "expiresAt", "id", "isCurrent", "kind", "lastUsedAt", "userAgent"];
        assert_eq!(fields.into_iter().map(String::as_str).collect::<Vec<_>>(), public, "nothing that opens anything");
        assert!(listed.iter().all(|session| session["endsCurrent"] == session["isCurrent"]));
        assert!(is_signed_in(&app, &cookie).await && is_signed_in(&app, &by_token).await);
    }

    async fn a_session_that_is_ended_works_no_more(app) {
        let ada = person(&app, "ada").await;
        let other = terminal(&app, &ada, "ada").await;
        let cookie = browser(&app, "ada", FIREFOX).await;
        app.advance(Duration::from_secs(1));
        let by_token = signed_in(&app, &ada).await;
        let listed = sessions(&app, &ada).await;
        for session in &listed[1..] {
            assert_eq!(app.delete(&ada, &at(session)).await.code(), 204);
            app.delete(&ada, &at(session)).await.refused(404);
        }
        assert_eq!(app.get(&other, SESSIONS).await.refused(401), REVOKED);
        assert!(!is_signed_in(&app, &cookie).await && !is_signed_in(&app, &by_token).await);
        assert_eq!(sessions(&app, &ada).await.len(), 1);
        let audit = app.audit().await;
        let ended: Vec<&Value> = audit.iter().filter(|record| record["operationId"] == "EndSession").collect();
        assert_eq!(ended.iter().filter(|record| record["statusCode"] == 204).count(), 3);
        assert_eq!(app.delete(&ada, &at(&listed[0])).await.code(), 204, "one's own ends like the others");
        assert_eq!(app.get(&ada, SESSIONS).await.refused(401), REVOKED);
    }

    async fn the_session_that_asks_stays_when_all_others_end(app) {
        let ada = person(&app, "ada").await;
        let lasting = app.lasting_session_of(&ada).await;
        let other = terminal(&app, &ada, "ada").await;
        let cookies = [browser(&app, "ada", FIREFOX).await, signed_in(&app, &ada).await];
        let eve = person(&app, "eve").await;
        assert_eq!(app.call("POST", OTHERS).by(&ada).send().await.code(), 204);
        app.get(&other, SESSIONS).await.refused(401);
        for cookie in &cookies {
            assert!(!is_signed_in(&app, cookie).await);
        }
        let left = sessions(&app, &ada).await;
        assert_eq!(kinds(&left).into_iter().collect::<BTreeSet<_>>(), BTreeSet::from(["TERMINAL", "TOKEN"]));
        assert_eq!(left.len(), 2);
        app.get(&lasting, SESSIONS).await.ok();
        assert_eq!(sessions(&app, &eve).await.len(), 1, "the sessions of others stay");
        let token = left.iter().find(|session| session["kind"] == "TOKEN").unwrap();
        assert_eq!(app.delete(&ada, &at(token)).await.code(), 204);
        app.get(&lasting, SESSIONS).await.refused(401);
    }

    async fn nobody_sees_or_ends_the_sessions_of_others(app) {
        let (ada, eve) = (person(&app, "ada").await, person(&app, "eve").await);
        let own = sessions(&app, &ada).await;
        let unknown = app.delete(&eve, &format!("{SESSIONS}/{}", app.world.id::<podium_api::SessionId>())).await;
        for by in [&eve, &app.owner] {
            assert_eq!(app.delete(by, &at(&own[0])).await.refused(404), unknown.refused(404));
            let theirs = sessions(&app, by).await;
            assert!(theirs.iter().all(|session| session["id"] != own[0]["id"]));
        }
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_OWNER").await;
        app.get(&token, SESSIONS).await.refused(403);
        app.delete(&token, &at(&own[0])).await.refused(403);
        app.call("POST", OTHERS).by(&token).send().await.refused(403);
        assert_eq!(sessions(&app, &ada).await, own);
    }

    async fn a_new_password_ends_the_others_and_the_list_shows_it(app) {
        let ada = person(&app, "ada").await;
        terminal(&app, &ada, "ada").await;
        browser(&app, "ada", FIREFOX).await;
        assert_eq!(sessions(&app, &ada).await.len(), 3);
        let body = json!({ "currentPassword": PASSWORD, "newPassword": "another long password" });
        assert_eq!(app.post(&ada, "/v1/auth/change-password", body).await.code(), 204);
        let left = sessions(&app, &ada).await;
        assert_eq!((left.len(), &left[0]["isCurrent"]), (1, &json!(true)));
    }

    async fn what_has_expired_is_not_listed_and_is_deleted(app) {
        let ada = person(&app, "ada").await;
        let lasting = app.lasting_session_of(&ada).await;
        browser(&app, "ada", FIREFOX).await;
        app.advance(EIGHT_HOURS);
        assert_eq!(kinds(&sessions(&app, &lasting).await), ["TOKEN"]);
        maintenance::once(&app.app).await.unwrap();
        assert_eq!(kinds(&sessions(&app, &lasting).await), ["TOKEN"]);
    }

    async fn a_use_is_noted_to_the_minute(app) {
        let ada = person(&app, "ada").await;
        let other = terminal(&app, &ada, "ada").await;
        let cookie = browser(&app, "ada", FIREFOX).await;
        let used = async || -> Vec<Value> {
            maintenance::flush_uses(&app.app).await.unwrap();
            sessions(&app, &ada).await.into_iter().map(|session| session["lastUsedAt"].clone()).collect()
        };
        used().await;
        app.advance(Duration::from_mins(10));
        let before = used().await;
        app.get(&other, SESSIONS).await.ok();
        let after = used().await;
        assert!(after[1].as_str() > before[1].as_str(), "{before:?} {after:?}");
        assert_eq!(after[2], before[2], "nobody has used the browser");
        assert!(is_signed_in(&app, &cookie).await);
        assert_eq!(used().await[2], after[1]);
    }

    async fn a_long_user_agent_is_cut(app) {
        let ada = person(&app, "ada").await;
        browser(&app, "ada", &"x".repeat(5000)).await;
        assert_eq!(sessions(&app, &ada).await[1]["userAgent"], "x".repeat(256));
    }

    async fn an_open_stream_ends_with_its_session(app) {
        let ada = person(&app, "ada").await;
        let cookies = [browser(&app, "ada", FIREFOX).await, signed_in(&app, &ada).await];
        for cookie in &cookies {
            let path = format!("/console/{}/events", app.organization_id);
            let stream = app.call("GET", &path).header("cookie", cookie).open().await;
            let listed = sessions(&app, &ada).await;
            let session = listed.iter().find(|session| session["kind"] == "BROWSER").unwrap();
            let end = async { assert_eq!(app.delete(&ada, &at(session)).await.code(), 204) };
            let (aborted, ()) = tokio::join!(stream.is_aborted(), end);
            assert!(!aborted, "it ends in an orderly way");
        }
    }

    async fn sessions_from_before_the_upgrade_are_listed_and_can_be_ended(app) {
        let ada = person(&app, "ada").await;
        let lasting = app.lasting_session_of(&ada).await;
        let other = terminal(&app, &ada, "ada").await;
        let cookies = [browser(&app, "ada", FIREFOX).await, signed_in(&app, &lasting).await];
        let known = |all: &[Value]| {
            let of = |session: &Value| (session["kind"].clone(), session["createdAt"].clone(), session["expiresAt"].clone());
            all.iter().map(of).collect::<Vec<_>>()
        };
        let before = known(&sessions(&app, &ada).await);
        upgrade(&app).await;
        let listed = sessions(&app, &ada).await;
        assert_eq!(known(&listed), before);
        assert_eq!((&listed[3]["address"], &listed[3]["userAgent"]), (&json!(null), &json!(null)), "nobody wrote it down");
        for cookie in &cookies {
            assert!(is_signed_in(&app, cookie).await);
        }
        for session in listed[1..].iter().rev() {
            assert_eq!(app.delete(&ada, &at(session)).await.code(), 204);
        }
        app.get(&other, SESSIONS).await.refused(401);
        app.get(&lasting, SESSIONS).await.refused(401);
        for cookie in &cookies {
            assert!(!is_signed_in(&app, cookie).await);
        }
    }

    async fn a_long_response_ends_with_its_session_though_its_token_does_not(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        write(&app, (0..1200).map(|number| line(id, START, LogSource::Worker, &number.to_string())).collect()).await;
        for number in 0..520 {
            app.workspace(&number.to_string()).await;
        }
        let begin = async |path: &str| {
            let cookie = signed_in(&app, &app.owner).await;
            let path = format!("/console/{}/{path}", app.organization_id);
            let mut response = app.call("GET", &path).header("cookie", &cookie).header("last-event-id", "0").open().await;
            assert_eq!(response.status, 200);
            response.next().await.expect("there is a first part");
            end_browsers(&app, &app.owner).await;
            response
        };
        let mut lines = begin(&format!("deployments/{id}/logs/follow?sources=worker")).await;
        assert_eq!(lines.next().await, None);
        assert!(begin("audit/export").await.is_aborted().await);
    }

    async fn a_stream_ends_when_its_session_expires_though_its_token_does_not(app) {
        let ada = person(&app, "ada").await;
        let lasting = app.lasting_session_of(&ada).await;
        let cookie = signed_in(&app, &lasting).await;
        let path = format!("/console/{}/events", app.organization_id);
        let stream = app.call("GET", &path).header("cookie", &cookie).open().await;
        app.advance(Duration::from_hours(24 * 366));
        let (aborted, _) = tokio::join!(stream.is_aborted(), app.workspace("Analytics"));
        assert!(!aborted, "it ends in an orderly way");
        app.get(&lasting, SESSIONS).await.ok();
    }
}

#[test]
fn another_replica_lists_and_ends_the_same_sessions() {
    run(Engine::Postgres, async |app| {
        let replica = app.replica().await;
        let ada = person(&app, "ada").await;
        let other = terminal(&app, &ada, "ada").await;
        let cookie = browser(&app, "ada", FIREFOX).await;
        assert!(is_signed_in(&replica, &cookie).await);
        replica.get(&other, SESSIONS).await.ok();
        let listed = sessions(&app, &ada).await;
        assert_eq!(sessions(&replica, &ada).await, listed);
        for session in &listed[1..] {
            assert_eq!(replica.delete(&ada, &at(session)).await.code(), 204);
        }
        app.get(&other, SESSIONS).await.refused(401);
        assert!(!is_signed_in(&app, &cookie).await);
        // What a third one finds is what is stored: nothing of it is in the memory of the others.
        assert_eq!(sessions(&app.replica().await, &ada).await.len(), 1);
    });
}
