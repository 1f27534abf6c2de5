//! Headers of requests and answers.

use podium_testkit::on_one_engine;
use serde_json::json;

on_one_engine! {
    async fn a_sane_request_id_is_echoed(app) {
        for id in ["r", "0aZ-_.9", &"x".repeat(128)] {
            for (path, status) in
                [("/v1/users/self", 200), ("/v1/organizations/x", 404), ("/nothing", 404), ("/healthz", 200)]
            {
                let answer = app.call("GET", path).by(&app.owner).header("x-request-id", id).send().await;
                assert_eq!((answer.code(), answer.header("x-request-id")), (status, id), "{path}");
                if status == 404 {
                    assert_eq!(answer.json()["requestId"], id);
                }
            }
        }
    }

    async fn any_other_request_id_is_replaced_by_a_uuid(app) {
        let mut seen = Vec::new();
        for id in
            [None, Some(""), Some("two words"), Some("semi;colon"), Some(&*"x".repeat(129)), Some("<script>")]
        {
            let call = app.call("GET", "/v1/users/self").by(&app.owner);
            let call = if let Some(id) = id { call.header("x-request-id", id) } else { call };
            let made = call.send().await.header("x-request-id").to_owned();
            let parts: Vec<usize> = made.split('-').map(str::len).collect();
            assert_eq!(parts, [8, 4, 4, 4, 12], "{made}");
            seen.push(made);
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 6);
    }

    async fn the_request_id_is_that_of_the_audit_record(app) {
        let call = app.call("POST", &app.path("/workspaces")).by(&app.owner).header("x-request-id", "mine");
        call.json(&json!({ "name": "Data" })).send().await.ok();
        let made = app.post(&app.owner, &app.path("/workspaces"), json!({ "name": "data" })).await;
        made.refused(409);
        let ids: Vec<_> = app.audit().await.iter().map(|record| record["requestId"].clone()).collect();
        assert_eq!(ids, [json!("mine"), json!(made.header("x-request-id"))]);
    }

    async fn who_is_not_known_is_told_why(app) {
        let eve = app.member("eve").await;
        let get = async |header: Option<&str>| {
            let call = app.call("GET", "/v1/users/self");
            let call = if let Some(value) = header { call.header("authorization", value) } else { call };
            let answer = call.send().await;
            assert_eq!(answer.header("www-authenticate"), if answer.code() == 401 { "Bearer" } else { "" });
            answer
        };
        let missing = "The token is missing: send it as `Authorization: Bearer <token>`.";
        let malformed = "The token is malformed: it was not issued by this server, or it is incomplete.";
        assert_eq!(get(None).await.refused(401), missing);
        let (head, _) = eve.token.rsplit_once('.').unwrap();
        for header in
            ["Bearer", "Bearer ", "Basic b3duZXI6", "Bearer nonsense", &format!("Bearer {head}.AAAA")]
        {
            assert_eq!(get(Some(header)).await.refused(401), malformed, "{header}");
        }
        assert_eq!(get(Some(&format!("bearer  {}", eve.token))).await.code(), 200, "the scheme has no case");
        app.call("POST", "/v1/auth/sign-out").by(&eve).send().await;
        let revoked = get(Some(&format!("Bearer {}", eve.token))).await.refused(401);
        assert_eq!(revoked, "The token is revoked: it was deleted, rotated or signed out.");
        let late = app.session_of(&app.owner).await;
        app.advance(std::time::Duration::from_secs(8 * 3600));
        let expired = get(Some(&format!("Bearer {}", late.token))).await.refused(401);
        assert_eq!(expired, "The token is expired: sign in again, or rotate the API token.");
    }

    async fn a_method_that_a_path_does_not_take_is_refused_with_those_it_takes(app) {
        for (method, path, allowed) in [
            ("PUT", app.path("/workspaces"), "GET, POST"),
            ("PATCH", app.path("/workspaces/x"), "GET, POST, DELETE"),
            ("DELETE", "/v1/users/self".into(), "GET"),
            ("GET", app.path("/invites"), "POST"),
            ("POST", "/healthz".into(), "GET"),
        ] {
            let answer = app.call(method, &path).by(&app.owner).send().await;
            let mut allow: Vec<&str> = answer.header("allow").split(", ").collect();
            let mut expected: Vec<&str> = allowed.split(", ").collect();
            allow.sort_unstable();
            expected.sort_unstable();
            assert_eq!(allow, expected, "{method} {path}");
            assert!(answer.refused(405).starts_with("This path supports "));
            assert_eq!(answer.header("content-type"), "application/json");
        }
        assert_eq!(
            app.call("PUT", &app.path("/workspaces")).send().await.code(),
            405,
            "known before the token is"
        );
    }

    async fn the_version_can_be_pinned(app) {
        let get = async |version: &str| {
            app.call("GET", "/v1/users/self").by(&app.owner).header("x-api-version", version).send().await
        };
        assert_eq!(get("1.0").await.code(), 200);
        for version in ["1.1", "2.0", "1", "", "latest"] {
            let answer = get(version).await;
            assert_eq!(answer.wrong_fields(), ["X-API-Version: enum"], "{version}");
            assert_eq!(answer.refused(400), "X-API-Version must be 1.0");
        }
    }

    async fn addresses_come_from_the_public_url_and_never_from_the_host(app) {
        let served = app.call("GET", "/openapi.json").header("host", "evil.test").send().await.ok();
        assert_eq!(served["servers"], json!([{ "url": "https://podium.test/v1" }]));
        let body = json!({ "inviteeEmail": "new@podium.test", "role": "ORGANIZATION_MEMBER" });
        let invite = app.post(&app.owner, &app.path("/invites"), body).await.ok();
        let path = app.path(&format!("/invites/{}/link", invite["inviteId"].as_str().unwrap()));
        let call = app.call("POST", &path).by(&app.owner).header("host", "evil.test");
        let link = call.header("x-forwarded-host", "evil.test").send().await.ok();
        assert!(
            link["url"].as_str().unwrap().starts_with("https://podium.test/accept-invite?token="),
            "{link}"
        );
    }

    async fn every_error_is_json(app) {
        let nobody = app.call("GET", "/v1/users/self").send().await;
        let nowhere = app.call("GET", "/nowhere").send().await;
        let wrong = app.post(&app.owner, &app.path("/workspaces"), json!({})).await;
        let eve = app.member("eve").await;
        let forbidden = app.get(&eve, &app.path("/audit-logs")).await;
        for (answer, status, fields) in
            [(nobody, 401, 4), (nowhere, 404, 4), (wrong, 400, 5), (forbidden, 403, 4)]
        {
            answer.refused(status);
            assert_eq!(answer.header("content-type"), "application/json");
            assert_eq!(answer.json().as_object().unwrap().len(), fields, "{}", answer.text());
        }
    }
}
