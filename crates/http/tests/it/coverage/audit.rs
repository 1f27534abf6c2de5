//! Every mutating call leaves one audit record, every read none, and no record holds a secret.

use std::num::NonZeroU32;

use podium_api::{Access, ENDPOINTS, ReplyKind};
use podium_app::Rates;
use podium_testkit::{Actor, Engine, TestApp, block_on, on_both_engines};
use serde_json::{Value, json};

use super::calls::{NEW_PASSWORD, PASSWORD, Prepared, VARIABLE, prepare};

on_both_engines! {
    async fn every_mutating_call_that_succeeds_leaves_one_record_and_every_read_none(app) {
        let mut expected = Vec::new();
        let mut secrets = [PASSWORD, NEW_PASSWORD, VARIABLE].map(str::to_owned).to_vec();
        for endpoint in ENDPOINTS {
            let prepared = prepare(&app, endpoint).await;
            let caller = prepared.owner(&app).await;
            let call = signed(&app, &prepared, &caller).header("x-request-id", endpoint.id);
            let answer = prepared.send(call).await;
            assert!(answer.status.is_success(), "{}: {}", endpoint.id, answer.text());
            let kept = endpoint.audited.then(|| record(&app, &prepared, &caller, answer.code()));
            expected.push((endpoint.id, kept.into_iter().collect::<Vec<_>>()));
            secrets.extend(secrets_of(prepared.body.as_ref()));
            if !matches!(endpoint.reply_kind, ReplyKind::Stream | ReplyKind::Events) {
                secrets.extend(secrets_of(Some(&answer.json())));
            }
            secrets.push(caller.token);
        }
        let records = app.audit().await;
        for (id, mut expected) in expected {
            // Applying a plan leaves a record for each of its calls, too.
            let found = records.iter().filter(|record| record["requestId"] == id && record["operationId"] == id);
            let found = found.map(without_name);
            let found: Vec<Value> = found.collect();
            if id == "AcceptInvite" || id == "SignIn" {
                // Who accepts or signs in has been nobody until now.
                expected[0]["subjectId"] = found[0]["subjectId"].clone();
            }
            assert_eq!(found, expected, "{id}");
        }
        let log = Value::from(records).to_string();
        assert!(secrets.len() > 50);
        for secret in secrets {
            assert!(!log.contains(&secret), "the log holds {secret}");
        }
    }

    async fn a_refused_call_leaves_one_record_with_its_status(app) {
        let (member, stranger) = (app.member("plain").await, app.stranger().await);
        for endpoint in ENDPOINTS.iter().filter(|endpoint| matches!(endpoint.access, Access::Member | Access::Permission(_))) {
            let prepared = prepare(&app, endpoint).await;
            let call = |by: &Actor, step: &str| {
                prepared.call(&app).by(by).header("x-request-id", &format!("{}-{step}", endpoint.id))
            };
            let refused = prepared.send(call(&member, "member")).await.code();
            prepared.send(call(&stranger, "stranger")).await.refused(404);
            let by_nobody = prepared.call(&app).header("x-request-id", &format!("{}-nobody", endpoint.id));
            prepared.send(by_nobody).await.refused(401);
            let here = app.audit().await;
            let there = elsewhere(&app, &stranger).await;
            let of = |log: &[Value], step: &str| -> Vec<(Value, Value)> {
                let id = format!("{}-{step}", endpoint.id);
                let is_own = |record: &&Value| record["operationId"] == endpoint.id;
                let found = log.iter().filter(|record| record["requestId"] == id.as_str()).filter(is_own);
                found.map(|record| (record["subjectId"].clone(), record["statusCode"].clone())).collect()
            };
            let one = |actor: &Actor, status: u16| vec![(json!(actor.id), json!(status))];
            let kept = |record| if endpoint.audited { record } else { Vec::new() };
            assert_eq!(of(&here, "member"), kept(one(&member, refused)), "{}", endpoint.id);
            assert_eq!(of(&here, "stranger"), [], "{}: a stranger is recorded at home", endpoint.id);
            assert_eq!(of(&there, "stranger"), kept(one(&stranger, 404)), "{}", endpoint.id);
            assert_eq!(of(&here, "nobody"), [], "{}: nobody was authenticated", endpoint.id);
        }
    }

    async fn a_record_says_who_did_what_from_where(app) {
        let call = app.call("POST", &app.path("/workspaces"));
        let call = call.by(&app.owner).from("192.0.2.7").header("user-agent", "curl/8");
        let call = call.header("x-request-id", "r1").json(&json!({ "name": "Analytics", "more": "left out" }));
        call.send().await.ok();
        let records = app.audit().await;
        assert_eq!(records, [json!({
            "timestamp": "2027-01-15T08:00:00.000Z",
            "organizationId": app.organization_id,
            "subjectId": app.owner.id,
            "subjectType": "USER",
            "subjectName": "owner@localhost",
            "sourceAddress": "192.0.2.7",
            "userAgent": "curl/8",
            "method": "POST",
            "path": app.path("/workspaces"),
            "operationId": "CreateWorkspace",
            "requestId": "r1",
            "statusCode": 200,
            "requestBody": { "name": "Analytics" },
        })]);
    }

    async fn a_repeat_under_an_idempotency_key_leaves_no_further_record(app) {
        for _ in 0..3 {
            let call = app.call("POST", &app.path("/workspaces")).by(&app.owner);
            let call = call.header("idempotency-key", "once").json(&json!({ "name": "Analytics" }));
            call.send().await.ok();
        }
        assert_eq!(app.audit().await.len(), 1);
    }

    async fn a_body_that_is_large_or_broken_is_recorded_by_size_and_hash(app) {
        let huge = json!({ "name": "x".repeat(16 * 1024) }).to_string();
        let table = [
            ("application/json", "{\"name\": \"planted".to_owned(), 400),
            ("application/json", "[\"planted\"]".to_owned(), 400),
            ("application/json", huge, 400),
            ("text/plain", "planted".to_owned(), 415),
        ];
        for (media, body, status) in table {
            let before = app.audit().await.len();
            let call = app.call("POST", &app.path("/workspaces")).by(&app.owner);
            call.header("content-type", media).body(body.clone()).send().await.refused(status);
            let records = app.audit().await;
            assert_eq!(records.len(), before + 1, "{body:.20}");
            let sha256 = podium_app::secrets::sha256_hex(body.as_bytes());
            let kept = &records.iter().find(|record| record["requestBody"]["sha256"] == sha256.as_str());
            let kept = kept.unwrap_or_else(|| panic!("{body:.20} was not recorded: {records:?}"));
            assert_eq!(kept["requestBody"], json!({ "bytes": body.len(), "sha256": sha256 }));
            assert_eq!(kept["statusCode"], status);
        }
        assert!(!Value::from(app.audit().await).to_string().contains("planted"));
    }

    async fn secrets_are_left_out_even_where_the_call_is_refused(app) {
        let user = app.member("forgetful").await;
        let body = json!({ "currentPassword": "planted: wrong", "newPassword": "planted: short of nothing" });
        app.post(&user, "/v1/auth/change-password", body).await.refused(400);
        let body = json!({ "currentPassword": { "planted": 1 }, "newPassword": ["planted"], "planted": "" });
        app.post(&user, "/v1/auth/change-password", body).await.refused(400);
        let records = app.audit().await;
        let bodies: Vec<&Value> = records.iter().map(|record| &record["requestBody"]).collect();
        assert_eq!(bodies, [&json!({}), &json!({})]);
    }

    async fn an_organization_that_only_invited_a_user_gets_no_audit_records_of_the_user(app) {
        let stranger = app.stranger().await;
        let invite = json!({ "inviteeEmail": "stranger@podium.test", "role": "ORGANIZATION_MEMBER" });
        app.post(&app.owner, &app.path("/invites"), invite).await.ok();
        let before = app.audit().await.len();
        let body = json!({ "currentPassword": "", "newPassword": PASSWORD });
        app.post(&stranger, "/v1/auth/change-password", body).await.ok();
        assert_eq!(app.audit().await.len(), before);
        assert_eq!(elsewhere(&app, &stranger).await.len(), 1);
    }
}

/// Rates are measured by the machine's clock, so there are far more calls than a burst allows.
fn a_call_too_many_leaves_no_record(engine: Engine) {
    block_on(async {
        let (one, many) = (NonZeroU32::MIN, NonZeroU32::new(1000).unwrap());
        let app = TestApp::start_with(engine, |config, _| {
            config.rates = Some(Rates { reads: many, writes: one, deletes: one });
        })
        .await;
        let mut done = 0;
        let mut too_many = 0;
        for number in 0..40 {
            let body = json!({ "name": format!("w{number}") });
            let answer = app.post(&app.owner, &app.path("/workspaces"), body).await;
            match answer.code() {
                200 => done += 1,
                _ => {
                    answer.refused(429);
                    assert!(answer.header("retry-after").parse::<u64>().is_ok());
                    too_many += 1;
                }
            }
        }
        assert!(done >= 10 && too_many > 0, "{done} done, {too_many} too many");
        assert_eq!(app.audit().await.len(), done);
    });
}

#[test]
fn a_call_too_many_leaves_no_record_on_sqlite() {
    a_call_too_many_leaves_no_record(Engine::Sqlite);
}

#[test]
fn a_call_too_many_leaves_no_record_on_postgres() {
    a_call_too_many_leaves_no_record(Engine::Postgres);
}

/// The call by somebody, unless it must be nobody's.
fn signed<'a>(app: &'a TestApp, prepared: &Prepared, caller: &Actor) -> podium_testkit::Call<'a> {
    let call = prepared.call(app);
    if prepared.endpoint.access == Access::Public { call } else { call.by(prepared.caller(caller)) }
}

fn record(app: &TestApp, prepared: &Prepared, caller: &Actor, status: u16) -> Value {
    let mut record = json!({
        "timestamp": app.world.now(),
        "organizationId": app.organization_id,
        "subjectId": caller.id,
        "subjectType": "USER",
        "sourceAddress": "127.0.0.1",
        "userAgent": "",
        "method": prepared.endpoint.method.as_str(),
        "path": prepared.path,
        "operationId": prepared.endpoint.id,
        "requestId": prepared.endpoint.id,
        "statusCode": status,
    });
    if let Some(body) = &prepared.body {
        record["requestBody"] = without_secrets(body);
    }
    record
}

/// What the log may keep of a body.
fn without_secrets(body: &Value) -> Value {
    if let Value::Array(items) = body {
        return items.iter().map(without_secrets).collect();
    }
    let Value::Object(fields) = body else { return body.clone() };
    let secret = ["token", "value", "url"];
    let is_shown = |name: &str| !secret.contains(&name) && !name.to_lowercase().contains("password");
    let shown = fields.iter().filter(|(name, _)| is_shown(name));
    shown.map(|(name, value)| (name.clone(), without_secrets(value))).collect()
}

fn without_name(record: &Value) -> Value {
    let mut record = record.clone();
    record.as_object_mut().expect("a record is an object").remove("subjectName");
    record
}

/// Passwords, tokens and links, wherever they stand.
fn secrets_of(value: Option<&Value>) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
        match value {
            Value::String(hidden) if hidden.is_empty() => {}
            Value::String(text) if ["token", "url", "password"].contains(&name.as_str()) => {
                found.push(text.clone());
            }
            Value::Object(_) => found.extend(secrets_of(Some(value))),
            _ => {}
        }
    }
    found
}

/// The audit log of the organization that a stranger owns.
async fn elsewhere(app: &TestApp, stranger: &Actor) -> Vec<Value> {
    let organizations = app.get(stranger, "/v1/organizations").await.ok();
    let id = organizations["organizations"][0]["id"].as_str().expect("its own").to_owned();
    let export = app.get(stranger, &format!("/v1/organizations/{id}/audit-logs")).await;
    assert_eq!(export.code(), 200, "{}", export.text());
    export.text().lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}
