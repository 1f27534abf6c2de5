//! `/organizations/{organizationId}/tokens`

mod acting;
mod create;
mod lists;
mod rights;
mod roles;
mod rotation;
mod values;

use podium_testkit::{Actor, Answer, TestApp, on_both_engines};
use serde_json::{Value, json};

const START: &str = "2027-01-15T08:00:00.000Z";
const REVOKED: &str = "The token is revoked: it was deleted, rotated or signed out.";

fn path(app: &TestApp, id: impl std::fmt::Display) -> String {
    app.path(&format!("/tokens/{id}"))
}

async fn create(app: &TestApp, by: &Actor, body: Value) -> Answer {
    app.post(by, &app.path("/tokens"), body).await
}

/// Who calls with a token that was just made or rotated.
fn bearer(answer: &Answer) -> Actor {
    let token = answer.ok()["token"].as_str().expect("the value is shown").to_owned();
    Actor { id: answer.id().parse().unwrap(), token }
}

/// The part of an `ETag` that only writes of callers advance.
fn version(answer: &Answer) -> String {
    answer.header("etag").split('-').next().unwrap_or_default().to_owned()
}

on_both_engines! {
    async fn a_token_is_created_read_changed_and_deleted(app) {
        let owner = app.owner.clone();
        let created = create(&app, &owner, json!({
            "name": " CI ",
            "description": " Builds ",
            "scope": "ORGANIZATION",
            "role": "ORGANIZATION_MEMBER",
            "tokenExpiryPeriodInDays": 30,
        })).await;
        let value = created.ok()["token"].as_str().unwrap().to_owned();
        let by = json!({
            "id": owner.id,
            "subjectType": "USER",
            "username": "owner@localhost",
            "fullName": "Owner",
            "avatarUrl": "https://podium.test/pictures/O.svg",
        });
        let mut expected = json!({
            "id": created.id(),
            "name": "CI",
            "description": "Builds",
            "scope": "ORGANIZATION",
            "kind": "STANDARD",
            "roles": [{
                "entityType": "ORGANIZATION",
                "entityId": app.organization_id,
                "role": "ORGANIZATION_MEMBER",
            }],
            "token": value,
            "shortToken": &value[value.len() - 6..],
            "startAt": START,
            "endAt": "2027-02-14T08:00:00.000Z",
            "expiryPeriodInDays": 30,
            "createdAt": START,
            "createdBy": by,
            "updatedAt": START,
            "updatedBy": by,
        });
        assert_eq!(created.ok(), expected);

        expected.as_object_mut().unwrap().remove("token");
        let at = path(&app, created.id());
        let read = app.get(&owner, &at).await;
        assert_eq!(read.ok(), expected);
        assert_eq!((version(&created), version(&read)), ("\"1".into(), "\"1".into()));
        let list = json!({ "tokens": [expected], "limit": 20, "offset": 0, "totalCount": 1 });
        assert_eq!(app.get(&owner, &app.path("/tokens")).await.ok(), list);

        app.advance(std::time::Duration::from_secs(60));
        let changed = app.post(&owner, &at, json!({ "name": "Builds" })).await;
        expected["name"] = "Builds".into();
        expected["updatedAt"] = "2027-01-15T08:01:00.000Z".into();
        assert_eq!(changed.ok(), expected);
        assert_eq!(version(&changed), "\"2");
        let changed = app.post(&owner, &at, json!({ "name": "Builds", "description": "" })).await;
        expected["description"] = "".into();
        assert_eq!(changed.ok(), expected);
        assert_eq!(app.get(&owner, &at).await.ok(), expected);

        assert_eq!(app.delete(&owner, &at).await.code(), 204);
        assert_eq!(app.get(&owner, &at).await.refused(404), "There is no such API token, or you may not see it.");
        assert_eq!(app.delete(&owner, &at).await.code(), 404);
        assert_eq!(app.get(&owner, &app.path("/tokens")).await.ok()["totalCount"], 0);
    }

    async fn an_update_touches_name_and_description_only(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let at = path(&app, token.id);
        let mut before = app.get(&app.owner, &at).await.ok();
        let body = json!({
            "name": "ci",
            "kind": "DIRECT_ACCESS",
            "scope": "WORKSPACE",
            "role": "ORGANIZATION_OWNER",
            "tokenExpiryPeriodInDays": 1,
        });
        app.post(&app.owner, &at, body).await.ok();
        let after = app.get(&app.owner, &at).await.ok();
        before["updatedAt"] = after["updatedAt"].clone();
        assert_eq!(after, before);
        for (body, wrong) in [
            (json!({}), "name: required"),
            (json!({ "name": "" }), "name: minLength"),
            (json!({ "name": "  " }), "name: required"),
            (json!({ "name": "x".repeat(257) }), "name: maxLength"),
            (json!({ "name": "x", "description": "x".repeat(501) }), "description: maxLength"),
        ] {
            assert_eq!(app.post(&app.owner, &at, body.clone()).await.wrong_fields(), [wrong], "{body}");
        }
        let longest = json!({ "name": "ü".repeat(256), "description": "ü".repeat(500) });
        assert_eq!(app.post(&app.owner, &at, longest.clone()).await.ok()["name"], longest["name"]);
    }

    async fn a_stale_version_changes_nothing(app) {
        let token = app.token("ci", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let at = path(&app, token.id);
        let stale = app.get(&app.owner, &at).await.header("etag").to_owned();
        app.post(&app.owner, &at, json!({ "name": "CI" })).await.ok();
        let roles = json!({ "roles": [{
            "entityType": "ORGANIZATION", "entityId": app.organization_id, "role": "ORGANIZATION_OWNER",
        }] });
        let name = json!({ "name": "late" });
        let (update, rotate) = (at.clone(), format!("{at}/rotate"));
        for (method, path, body) in [
            ("POST", update.clone(), &name),
            ("POST", format!("{at}/roles"), &roles),
            ("POST", rotate, &Value::Null),
            ("DELETE", update, &Value::Null),
        ] {
            let call = app.call(method, &path).by(&app.owner).header("if-match", &stale);
            let call = if body.is_null() { call } else { call.json(body) };
            assert_eq!(call.send().await.code(), 412, "{method} {path}");
        }
        let read = app.get(&app.owner, &at).await;
        assert_eq!(read.ok()["name"], "CI");
        assert_eq!(read.ok()["roles"][0]["role"], "ORGANIZATION_MEMBER");
        assert_eq!(app.get(&token, &app.path("")).await.code(), 200);
        let fresh = app.call("DELETE", &at).by(&app.owner).header("if-match", read.header("etag"));
        assert_eq!(fresh.send().await.code(), 204);
    }
}
