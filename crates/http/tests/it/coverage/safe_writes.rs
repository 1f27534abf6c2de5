//! `ETag`, `If-Match`, `If-None-Match` and `Idempotency-Key`, for every operation that takes them.

use std::time::Duration;

use futures_util::future::join_all;
use podium_api::{Description, ENDPOINTS};
use podium_app::authority::rights_lock;
use podium_db::{Sql, Tx};
use podium_testkit::{Actor, Answer, Engine, TestApp, on_both_engines, run};
use serde_json::{Value, json};

use super::calls::{Prepared, owner, prepare};

const OTHER_TAG: &str = "\"0-0123456789abcdef\"";
const DAY: Duration = Duration::from_hours(24);

on_both_engines! {
    async fn a_change_applies_only_to_the_version_in_if_match(app) {
        let compares: Vec<&Description> = ENDPOINTS.iter().filter(|endpoint| endpoint.compares_version()).collect();
        assert!(compares.len() >= 46, "{}", compares.len());
        for endpoint in compares {
            let prepared = prepare(&app, endpoint).await;
            let caller = prepared.owner(&app).await;
            let call = |tag: &str| prepared.call(&app).by(&caller).header("if-match", tag);
            let before = changes(&app).await;
            let message = prepared.send(call(OTHER_TAG)).await.refused(412);
            assert!(message.starts_with("The resource has changed since the version in If-Match: "));
            assert_eq!(changes(&app).await, before, "{} changed something", endpoint.id);
            let done = prepared.send(call(&format!("{OTHER_TAG}, {}", prepared.etag))).await;
            assert!(done.status.is_success(), "{} with {}: {}", endpoint.id, prepared.etag, done.text());
            let prepared = prepare(&app, endpoint).await;
            let caller = prepared.owner(&app).await;
            let done = prepared.send(prepared.call(&app).by(&caller).header("if-match", "*")).await;
            assert!(done.status.is_success(), "{}: {}", endpoint.id, done.text());
        }
    }

    async fn a_version_is_compared_only_after_existence_and_permission(app) {
        let (member, stranger) = (app.member("plain").await, app.stranger().await);
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.compares_version()) {
            let prepared = prepare(&app, endpoint).await;
            let call = |by: &Actor| prepared.call(&app).by(by).header("if-match", OTHER_TAG);
            prepared.send(call(&stranger)).await.refused(404);
            let answer = prepared.send(call(&member)).await;
            // A gate lets members in, and these change nothing that they may not change.
            let passes = ["UpdateUserRoles", "UpdateTeamRoles"].contains(&endpoint.id);
            assert!(matches!(answer.code(), 403 | 404) || passes, "{}: {}", endpoint.id, answer.text());
        }
    }

    async fn of_two_changes_to_the_same_version_one_is_refused(app) {
        let path = app.path(&format!("/workspaces/{}", app.workspace("Analytics").await));
        let tag = app.get(&app.owner, &path).await.header("etag").to_owned();
        let change = |name: &str| {
            let body = json!({ "name": name, "description": "", "cicdEnforcedDefault": false });
            app.call("POST", &path).by(&app.owner).header("if-match", &tag).json(&body)
        };
        let first = change("first").send().await;
        assert_eq!(first.ok()["name"], "first");
        change("second").send().await.refused(412);
        let read = app.get(&app.owner, &path).await;
        assert_eq!((read.ok(), read.header("etag")), (first.ok(), first.header("etag")));
    }

    async fn an_unchanged_resource_is_not_sent_again(app) {
        let reads: Vec<&Description> = ENDPOINTS.iter().filter(|endpoint| endpoint.reads_one()).collect();
        assert!(reads.len() >= 17, "{}", reads.len());
        for endpoint in reads {
            let prepared = prepare(&app, endpoint).await;
            let caller = owner(&app).await;
            let read = |tag: &str| prepared.call(&app).by(&caller).header("if-none-match", tag);
            let whole = prepared.send(read(OTHER_TAG)).await;
            assert_eq!(whole.code(), 200, "{}", endpoint.id);
            let tag = whole.header("etag");
            for known in [tag.to_owned(), format!("W/{tag}"), format!("{OTHER_TAG}, {tag}"), "*".to_owned()] {
                let answer = prepared.send(read(&known)).await;
                assert_eq!((answer.code(), answer.header("etag")), (304, tag), "{} {known}", endpoint.id);
                assert!(answer.bytes.is_empty());
            }
        }
    }

    async fn a_request_repeated_with_the_same_key_has_one_effect_and_one_response(app) {
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.takes_idempotency_key()) {
            let keyed = Keyed::prepare(&app, endpoint).await;
            let first = keyed.send("k").await;
            assert!(first.status.is_success(), "{}: {}", endpoint.id, first.text());
            let after = changes(&app).await;
            assert_same(endpoint, &keyed.again("k").await, &first);
            keyed.send_other("k").await.refused(409);
            assert_eq!(changes(&app).await, after, "{} had a second effect", endpoint.id);
            let records = keyed.records().await;
            assert_eq!(records, [json!(endpoint.reply_kind.status()), json!(409)], "{}", endpoint.id);
        }
    }

    async fn an_answer_is_kept_for_a_day(app) {
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.takes_idempotency_key() && !endpoint.secret_reply) {
            let keyed = Keyed::prepare(&app, endpoint).await;
            let first = keyed.send("k").await;
            app.advance(DAY - Duration::from_millis(1));
            assert_same(endpoint, &keyed.again("k").await, &first);
            app.advance(Duration::from_millis(1));
            keyed.again("k").await;
            // The first has left the log's default window, so this one was not given from memory.
            assert_eq!(keyed.records().await.len(), 1, "{} did not run again", endpoint.id);
        }
    }

    async fn an_expired_stored_response_is_replaced(app) {
        let create = |name: &str| {
            let call = app.call("POST", &app.path("/workspaces")).by(&app.owner);
            call.header("idempotency-key", "k").json(&json!({ "name": name }))
        };
        let first = create("a").send().await.id();
        create("b").send().await.refused(409);
        app.advance(DAY);
        let second = create("b").send().await.id();
        assert_ne!(first, second);
        assert_eq!(create("b").send().await.id(), second);
    }

    async fn while_the_first_request_runs_a_second_is_refused_with_retry_after(app) {
        let create = |name: &str| {
            let call = app.call("POST", &app.path("/workspaces")).by(&app.owner);
            call.header("idempotency-key", "k").json(&json!({ "name": name }))
        };
        let locks = vec![rights_lock(app.organization_id.id(), true)];
        // What a transaction holds is taken with its first statement.
        static ONE: Sql = Sql::new("SELECT 1");
        let touch = |tx: &Tx| Ok(tx.query_one(&ONE, &[], |_| Ok(()))?);
        let second = async {
            let answer = create("a").send().await;
            assert_eq!(
                answer.refused(409),
                "The first request with this Idempotency-Key is still running: try again in a second."
            );
            assert_eq!(answer.header("retry-after"), "1");
        };
        let first = app.send_during_change_and(create("a"), locks, touch, second).await;
        assert_eq!(create("a").send().await.id(), first.id());
    }

    async fn a_response_and_its_effect_are_stored_atomically(app) {
        let create = |key: &str| {
            let call = app.call("POST", &app.path("/workspaces")).by(&app.owner);
            call.header("idempotency-key", key).json(&json!({ "name": key }))
        };
        create("first").send().await.ok();
        let before = changes(&app).await;
        // Both workspaces are of version 1: now the answer cannot be kept, which is the last thing to be written.
        app.execute("CREATE UNIQUE INDEX one_version ON kept_answers (version)").await;
        create("second").send().await.refused(500);
        app.execute("DROP INDEX one_version").await;
        assert_eq!(changes(&app).await, before, "there is no effect without its answer");
        assert_eq!(app.get(&app.owner, &app.path("/workspaces")).await.ok()["totalCount"], 2);
        let made = create("second").send().await.id();
        assert_eq!(create("second").send().await.id(), made);
    }

    async fn a_key_has_1_to_255_characters(app) {
        let create = |key: &str| {
            let call = app.call("POST", &app.path("/workspaces")).by(&app.owner);
            call.header("idempotency-key", key).json(&json!({ "name": "a" }))
        };
        for key in ["".to_owned(), "k".repeat(256), "k\u{e9}".to_owned()] {
            assert_eq!(create(&key).send().await.wrong_fields(), ["Idempotency-Key: format"], "{key}");
        }
        create(&"k".repeat(255)).send().await.ok();
    }

    async fn a_key_is_its_callers_own_and_its_paths(app) {
        let other = owner(&app).await;
        let create = |by: &Actor, path: &str, name: &str| {
            let call = app.call("POST", &app.path(path)).by(by).header("idempotency-key", "k");
            call.json(&json!({ "name": name }))
        };
        let first = create(&app.owner, "/workspaces", "a").send().await.id();
        create(&other, "/workspaces", "a").send().await.refused(409);
        assert_ne!(create(&other, "/workspaces", "b").send().await.id(), first);
        create(&app.owner, "/teams", "a").send().await.ok();
    }

    async fn a_stored_response_is_returned_only_to_a_caller_that_still_has_the_rights(app) {
        let colleague = owner(&app).await;
        let create = || {
            let call = app.call("POST", &app.path("/workspaces")).by(&colleague);
            call.header("idempotency-key", "k").json(&json!({ "name": "a" }))
        };
        create().send().await.ok();
        let demoted = json!({ "organizationRole": "ORGANIZATION_MEMBER" });
        app.post(&app.owner, &app.path(&format!("/users/{}/roles", colleague.id)), demoted).await.ok();
        create().send().await.refused(403);
    }

    async fn a_refusal_is_not_kept(app) {
        let create = || {
            let call = app.call("POST", &app.path("/workspaces")).by(&app.owner);
            call.header("idempotency-key", "k").json(&json!({ "name": "Analytics" }))
        };
        let taken = app.workspace("Analytics").await;
        create().send().await.refused(409);
        app.delete(&app.owner, &app.path(&format!("/workspaces/{taken}"))).await.ok();
        create().send().await.ok();
    }

    async fn a_secret_is_repeated_for_ten_minutes_while_it_works(app) {
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.takes_idempotency_key() && endpoint.secret_reply) {
            let keyed = Keyed::prepare(&app, endpoint).await;
            let first = keyed.send("k").await;
            let secret = ["token", "secret"].map(|field| first.ok()[field].is_string());
            assert!(secret.contains(&true), "{}", endpoint.id);
            app.advance(Duration::from_mins(10) - Duration::from_millis(1));
            assert_same(endpoint, &keyed.again("k").await, &first);
            app.advance(Duration::from_millis(1));
            let message = keyed.again("k").await.refused(409);
            assert!(message.ends_with("the secret in its response is not shown again."), "{message}");
        }
    }

    async fn a_secret_that_works_no_more_is_not_repeated(app) {
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.takes_idempotency_key() && endpoint.secret_reply) {
            let keyed = Keyed::prepare(&app, endpoint).await;
            let answer = keyed.send("k").await.ok();
            let id = answer["id"].as_str().unwrap_or_default();
            let (method, path) = match endpoint.id {
                "CreateAgentToken" => ("DELETE", format!("{}/{id}", keyed.prepared.path)),
                "CreateApiToken" => ("POST", format!("{}/{id}/rotate", keyed.prepared.path)),
                "RotateApiToken" => ("DELETE", keyed.prepared.path.replace("/rotate", "")),
                "CreateUserInviteLink" => ("POST", keyed.prepared.path.clone()),
                "CreateWebhook" => ("DELETE", format!("{}/{id}", keyed.prepared.path)),
                "RotateWebhookSecret" => ("DELETE", keyed.prepared.path.replace("/rotate-secret", "")),
                "RenewSession" => ("POST", "/v1/auth/sign-out".to_owned()),
                unknown => panic!("how does the secret of {unknown} end?"),
            };
            let mut ends = app.call(method, &path).by(&keyed.other_session);
            if endpoint.id == "RenewSession" {
                let token = answer["token"].as_str().unwrap().to_owned();
                ends = app.call(method, &path).by(&Actor { id: keyed.caller.id, token });
            }
            assert!(ends.send().await.status.is_success());
            let refused = keyed.again("k").await.code();
            // A token that was deleted is not there to be rotated.
            assert_eq!(refused, if endpoint.id == "RotateApiToken" { 404 } else { 409 }, "{}", endpoint.id);
        }
    }

    async fn of_concurrent_duplicates_one_takes_effect(app) {
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.takes_idempotency_key()) {
            let keyed = Keyed::prepare(&app, endpoint).await;
            let answers = join_all((0..8).map(|_| keyed.send("k"))).await;
            let (done, refused): (Vec<Answer>, Vec<Answer>) =
                answers.into_iter().partition(|answer| answer.status.is_success());
            for answer in &done {
                assert_same(endpoint, answer, &done[0]);
            }
            for answer in refused {
                // The caller's own session may be what the first of them has ended.
                let ended = answer.code() == 401 && ["SignOut", "RenewSession"].contains(&endpoint.id);
                assert!(ended || answer.header("retry-after") == "1", "{}: {}", endpoint.id, answer.text());
            }
            assert_eq!(keyed.records().await, [json!(endpoint.reply_kind.status())], "{}", endpoint.id);
        }
    }
}

#[test]
fn of_duplicates_at_two_replicas_one_has_an_effect() {
    run(Engine::Postgres, async |app| {
        let replica = app.replica().await;
        for round in 0..10 {
            let body = json!({ "name": format!("w{round}") });
            let create = async |at: &TestApp| {
                let call = at.call("POST", &app.path("/workspaces")).by(&app.owner);
                call.header("idempotency-key", &format!("k{round}")).json(&body).send().await
            };
            let answers =
                join_all((0..8).map(|number| create(if number % 2 == 0 { &app } else { &replica }))).await;
            let (done, refused): (Vec<Answer>, Vec<Answer>) =
                answers.into_iter().partition(|answer| answer.status.is_success());
            assert!(done.iter().all(|answer| answer.ok() == done[0].ok()));
            for answer in refused {
                assert_eq!((answer.code(), answer.header("retry-after")), (409, "1"), "{}", answer.text());
            }
            assert_eq!(create(&replica).await.ok(), done[0].ok());
        }
        assert_eq!(app.audit().await.len(), 10);
    });
}

/// A call that is made again and again under a key.
struct Keyed<'a> {
    app: &'a TestApp,
    prepared: Prepared,
    caller: Actor,
    /// The same caller, whose first session may have ended with the call itself.
    other_session: Actor,
}

impl<'a> Keyed<'a> {
    async fn prepare(app: &'a TestApp, endpoint: &'static Description) -> Self {
        let prepared = prepare(app, endpoint).await;
        let user = owner(app).await;
        let caller = app.session_of(&user).await;
        // Days may pass; but what has no end is not renewed.
        let other_session = match endpoint.id {
            "RenewSession" => app.session_of(&user).await,
            _ => app.lasting_session_of(&user).await,
        };
        Self { app, prepared, caller, other_session }
    }

    async fn send(&self, key: &str) -> Answer {
        self.prepared.send(self.prepared.call(self.app).by(&self.caller).header("idempotency-key", key)).await
    }

    async fn again(&self, key: &str) -> Answer {
        let call = self.prepared.call(self.app).by(&self.other_session);
        self.prepared.send(call.header("idempotency-key", key)).await
    }

    /// Another request to the same operation.
    async fn send_other(&self, key: &str) -> Answer {
        let Prepared { endpoint, path, body, .. } = &self.prepared;
        let path = if body.is_some() { path.clone() } else { format!("{path}?another=request") };
        let mut call = self.app.call(endpoint.method.as_str(), &path).by(&self.other_session);
        if let Some(body) = body {
            let mut body = body.clone();
            body["another"] = "request".into();
            call = call.json(&body);
        }
        self.prepared.send(call.header("idempotency-key", key)).await
    }

    /// The statuses of the caller's records of this operation, in order.
    async fn records(&self) -> Vec<Value> {
        let log = self.app.audit().await.into_iter();
        let own = log.filter(|record| {
            record["operationId"] == self.prepared.endpoint.id
                && record["subjectId"] == self.caller.id.as_str()
        });
        own.map(|record| record["statusCode"].clone()).collect()
    }
}

#[track_caller]
fn assert_same(endpoint: &Description, answer: &Answer, first: &Answer) {
    let told = |answer: &Answer| {
        let headers = ["etag", "content-type", "podium-operation"].map(|name| answer.header(name).to_owned());
        (answer.code(), headers, answer.text())
    };
    assert_eq!(told(answer), told(first), "{}", endpoint.id);
}

/// How many changes and events there were: every effect makes one of them at least.
pub(super) async fn changes(app: &TestApp) -> i64 {
    app.rows("changes").await + app.rows("events").await
}
