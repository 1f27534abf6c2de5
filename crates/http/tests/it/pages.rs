//! What is not an operation: probes, documents and pages for people; and what holds for every path.

use podium_api::openapi::Document;
use podium_domain::On;
use podium_testkit::{Answer, Engine, TestApp, block_on, on_both_engines, role};
use serde_json::json;

on_both_engines! {
    async fn probes_say_whether_the_server_is_alive_and_ready(app) {
        let alive = app.call("GET", "/healthz").send().await;
        assert_eq!((alive.code(), alive.json()), (200, json!({ "status": "ok" })));
        let ready = app.call("GET", "/readyz").send().await;
        assert_eq!((ready.code(), ready.json()), (200, json!({ "status": "ready" })));
    }

    async fn a_server_without_its_database_is_alive_but_not_ready(app) {
        app.app.db(&app.system).close().await;
        assert_eq!(app.call("GET", "/healthz").send().await.code(), 200);
        let ready = app.call("GET", "/readyz").send().await;
        assert_eq!(ready.refused(503), "The database is unavailable: try again in a few seconds.");
        assert_eq!(ready.header("retry-after"), "5");
    }

    async fn without_the_database_a_response_has_a_retry_after(app) {
        app.app.db(&app.system).close().await;
        for path in [app.path("/teams"), "/v1/users/self".to_owned()] {
            let answer = app.get(&app.owner, &path).await;
            assert_eq!(answer.refused(503), "The database is unavailable: try again in a few seconds.", "{path}");
            assert_eq!(answer.header("retry-after"), "5");
        }
    }
}

#[test]
fn numbers_are_for_this_machine_and_for_those_with_a_token() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        app.get(&app.owner, &app.path("/teams")).await.ok();
        app.get(&app.owner, &app.path("/teams/none")).await.refused(404);
        for here in ["127.0.0.1", "::1", "::ffff:127.0.0.1"] {
            let metrics = app.call("GET", "/metrics").from(here).send().await;
            assert_eq!(metrics.code(), 200);
            assert_eq!(metrics.header("content-type"), "text/plain; version=0.0.4");
            assert!(
                metrics.text().contains("podium_requests_total{operation=\"ListTeams\",status=\"2xx\"} 1\n")
            );
            assert!(
                metrics.text().contains("podium_requests_total{operation=\"GetTeam\",status=\"4xx\"} 1\n")
            );
        }
        let there = || app.call("GET", "/metrics").from("192.0.2.1");
        assert!(there().send().await.refused(401).contains("missing"));
        let broken = there().header("authorization", "Bearer not.a.token");
        assert!(broken.send().await.refused(401).contains("malformed"));
        assert_eq!(there().by(&app.owner).send().await.code(), 200);
    });
}

#[test]
fn numbers_of_a_deployment_are_for_this_machine_and_for_those_who_may_see_it() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let id = app.new_deployment(app.workspace("Data").await).await;
        app.settle().await;
        let namespace = app.stored_deployment(id).await.unwrap().namespace;
        let line = format!(
            "podium_deployment_status{{deployment=\"{id}\",namespace=\"{namespace}\",status=\"HEALTHY\"}} 1\n"
        );
        let here = app.call("GET", "/metrics").send().await;
        assert!(here.text().contains(&line), "{}", here.text());
        let there =
            |actor: &podium_testkit::Actor| app.call("GET", "/metrics").from("192.0.2.1").by(actor).send();
        assert!(there(&app.owner).await.text().contains(&line));
        for other in [app.member("bystander").await, app.stranger().await] {
            let answer = there(&other).await;
            assert_eq!(answer.code(), 200);
            assert!(!answer.text().contains(id.as_str()), "{}", answer.text());
        }
    });
}

/// A thousand of others came first: they are left out by the statement, not after it.
#[test]
fn numbers_of_a_deployment_are_shown_however_many_others_have() {
    block_on(async {
        for engine in [Engine::Sqlite, Engine::Postgres] {
            let app = TestApp::start(engine).await;
            let (others, own) = (app.workspace("Others").await, app.workspace("Own").await);
            let [first, id] = [app.deployment(others).await, app.deployment(own).await];
            app.copy_deployment(first, 1000).await;
            let held = vec![
                role(On::Organization, "ORGANIZATION_MEMBER"),
                role(On::Workspace(own), "WORKSPACE_MEMBER"),
            ];
            let reader = app.user_with("reader", held).await;
            let metrics = app.call("GET", "/metrics").from("192.0.2.1").by(&reader).send().await;
            let shown = metrics.text();
            assert!(shown.contains(&format!("podium_deployment_status{{deployment=\"{id}\"")), "{shown}");
            assert_eq!(shown.matches("podium_deployment_status{").count(), 1);
        }
    });
}

#[test]
fn the_document_is_served_as_it_is_written() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let served = app.call("GET", "/openapi.json").send().await;
        assert_eq!(served.header("content-type"), "application/json");
        assert_eq!(served.ok(), Document::collect().to_json("https://podium.test/v1"));
        assert_eq!(served.ok(), app.server.openapi());
    });
}

#[test]
fn static_content_is_compressed_and_has_a_tag_for_each_encoding() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        for path in ["/openapi.json", "/docs", "/docs/reference.js", "/accept-invite"] {
            let plain = app.call("GET", path).send().await;
            let mut tags = vec![plain.header("etag").to_owned()];
            assert_eq!((plain.code(), plain.header("vary")), (200, "accept-encoding"), "{path}");
            for coding in ["gzip", "zstd"] {
                let ask = || app.call("GET", path).header("accept-encoding", coding);
                let answer = ask().send().await;
                assert_eq!((answer.code(), answer.header("content-encoding")), (200, coding), "{path}");
                assert_eq!(answer.header("vary"), "accept-encoding", "{path}");
                assert_eq!(answer.header("content-type"), plain.header("content-type"), "{path}");
                assert!(answer.bytes.len() < plain.bytes.len(), "{path}");
                let tag = answer.header("etag").to_owned();
                let again = ask().header("if-none-match", &format!("\"other\", {tag}")).send().await;
                assert_eq!((again.code(), again.bytes.len(), again.header("etag")), (304, 0, tag.as_str()));
                assert_eq!(again.header("vary"), "accept-encoding", "{path}");
                let other_form = ask().header("if-none-match", &tags[0]).send().await;
                assert_eq!(other_form.code(), 200, "other bytes are known by other tags");
                tags.push(tag);
            }
            assert!(tags.iter().all(|tag| tag.starts_with('"')), "they are strong: {tags:?}");
            tags.sort();
            tags.dedup();
            assert_eq!(tags.len(), 3, "{tags:?}");
        }
    });
}

#[test]
fn the_reference_refers_to_nothing_outside_the_server() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let docs = app.call("GET", "/docs").send().await;
        assert_eq!((docs.code(), docs.header("content-type")), (200, "text/html; charset=utf-8"));
        for outside in ["http:", "https:", "=\"//", "='//"] {
            assert!(!docs.text().contains(outside), "{outside} in {}", docs.text());
        }
        assert!(docs.text().contains("/openapi.json"));
        assert!(docs.text().contains("/docs/reference.js"));
        let policy = docs.header("content-security-policy");
        assert!(policy.starts_with("default-src 'self'; "), "{policy}");
        assert!(!policy.contains("http") && !policy.contains('*'), "{policy}");
        let script = app.call("GET", "/docs/reference.js").send().await;
        assert_eq!((script.code(), script.header("content-type")), (200, "text/javascript; charset=utf-8"));
        assert!(script.bytes.len() > 100_000);
    });
}

#[test]
fn the_keys_that_sign_tokens_are_public() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let keys = app.call("GET", "/.well-known/jwks.json").send().await.ok();
        let keys = keys["keys"].as_array().expect("keys").clone();
        assert_eq!(keys.len(), 1);
        let key = keys[0].as_object().expect("a key");
        let mut members: Vec<&str> = key.keys().map(String::as_str).collect();
        members.sort_unstable();
        assert_eq!(members, ["alg", "crv", "kid", "kty", "use", "x"]);
        assert_eq!(
            (&key["alg"], &key["crv"], &key["kty"]),
            (&json!("EdDSA"), &json!("Ed25519"), &json!("OKP"))
        );
        app.app.rotate_signing_key(&app.system).await.expect("keys can be rotated");
        let both = app.call("GET", "/.well-known/jwks.json").send().await.ok();
        assert_eq!(both["keys"].as_array().map(Vec::len), Some(2));
        assert!(both["keys"].as_array().expect("keys").contains(&keys[0]));
        app.get(&app.owner, "/v1/users/self").await.ok();
    });
}

#[test]
fn people_find_their_way() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let home = app.call("GET", "/").send().await;
        assert_eq!((home.code(), home.header("location")), (302, "/console"));
        let accept = app.call("GET", "/accept-invite?token=secret").send().await;
        assert_eq!((accept.code(), accept.header("content-type")), (200, "text/html; charset=utf-8"));
        assert_eq!(accept.header("referrer-policy"), "no-referrer");
        let policy = accept.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; connect-src 'self'"), "{policy}");
        assert!(accept.text().contains("/v1/auth/accept-invite"));
        assert!(!accept.text().contains("secret") && !accept.text().contains("//"), "{}", accept.text());
    });
}

#[test]
fn an_unknown_path_gets_a_json_response() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        for path in
            ["/nowhere", "/v1", "/v1/", "/v2/organizations", "/v1/organizations/", "/docs/", "/v1/healthz"]
        {
            for method in ["GET", "POST", "DELETE", "PUT"] {
                let answer = app.call(method, path).by(&app.owner).header("x-request-id", "r-1").send().await;
                assert_eq!(answer.header("content-type"), "application/json");
                assert_eq!(
                    answer.json(),
                    json!({
                        "message": "There is no resource at this path: see /docs for the API.",
                        "requestId": "r-1",
                        "statusCode": 404,
                        "code": "not_found",
                    }),
                    "{method} {path}"
                );
            }
        }
    });
}

#[test]
fn every_endpoint_answers_head_requests() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let paths = [
            app.path("/teams?limit=1"),
            app.path(""),
            "/v1/users/self".into(),
            "/users/self".into(),
            app.path("/teams/x"),
            "/openapi.json".into(),
            "/docs".into(),
            "/docs/reference.js".into(),
            "/docs/connection-auth-types.json".into(),
            "/.well-known/jwks.json".into(),
            "/healthz".into(),
            "/readyz".into(),
            "/accept-invite".into(),
            "/sign-in".into(),
            "/sign-out".into(),
            "/".into(),
            "/nowhere".into(),
        ];
        for path in paths {
            let ask = |method| app.call(method, &path).by(&app.owner).header("x-request-id", "same").send();
            let (whole, head) = (ask("GET").await, ask("HEAD").await);
            assert_eq!((head.status, head.text().as_str()), (whole.status, ""), "{path}");
            assert_eq!(head.header("content-length"), whole.bytes.len().to_string(), "{path}");
            let without_length = |mut headers: http::HeaderMap| {
                headers.remove("content-length");
                headers
            };
            assert_eq!(without_length(head.headers), without_length(whole.headers), "{path}");
        }
        let nobody = app.call("HEAD", &app.path("/teams")).send().await;
        assert_eq!((nobody.code(), nobody.header("www-authenticate")), (401, "Bearer"));
        assert_eq!(app.call("HEAD", "/v1/auth/sign-in").send().await.code(), 405);
        assert!(app.audit().await.is_empty(), "a read leaves no record");
    });
}

#[test]
fn a_method_that_a_path_does_not_take_is_refused_with_those_that_it_takes() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let id = app.organization_id;
        let table = [
            ("DELETE", app.path("/teams"), "GET, POST"),
            ("PUT", app.path(&format!("/teams/{id}")), "GET, POST, DELETE"),
            ("PATCH", app.path(&format!("/workspaces/{id}")), "GET, POST, DELETE"),
            ("GET", "/v1/auth/sign-in".into(), "POST"),
            ("GET", app.path(&format!("/invites/{id}")), "DELETE"),
            ("POST", "/healthz".into(), "GET"),
            ("OPTIONS", "/v1/organizations".into(), "GET"),
        ];
        for (method, path, allowed) in table {
            let answer = app.call(method, &path).by(&app.owner).send().await;
            assert_eq!(answer.refused(405), format!("This path supports {allowed} only."), "{method} {path}");
            assert_eq!(answer.header("allow"), allowed);
            assert_eq!(answer.header("content-type"), "application/json");
        }
    });
}

#[test]
fn paths_without_the_version_are_the_current_version() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        for path in
            ["/users/self", "/organizations", &format!("/organizations/{}/workspaces", app.organization_id)]
        {
            let (with, without) =
                (app.get(&app.owner, &format!("/v1{path}")).await, app.get(&app.owner, path).await);
            assert_eq!(with.ok(), without.ok());
            assert_eq!(with.header("etag"), without.header("etag"));
        }
    });
}

#[test]
fn a_minor_version_can_be_pinned() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let read = |version: &str| {
            app.call("GET", "/v1/organizations").by(&app.owner).header("x-api-version", version)
        };
        read("1.0").send().await.ok();
        for unknown in ["1", "1.1", "2.0", "", "latest"] {
            assert_eq!(read(unknown).send().await.wrong_fields(), ["X-API-Version: enum"], "{unknown}");
        }
    });
}

#[test]
fn pages_of_other_origins_are_let_in_only_where_they_are_listed() {
    block_on(async {
        let origin = "https://console.example";
        let closed = TestApp::start(Engine::Sqlite).await;
        let open =
            TestApp::start_with(Engine::Sqlite, |_, settings| settings.cors_origins = vec![origin.into()])
                .await;
        let read = async |app: &TestApp, origin: &str| {
            app.call("GET", "/v1/organizations").by(&app.owner).header("origin", origin).send().await
        };
        let asks = async |app: &TestApp, origin: &str| {
            let call = app.call("OPTIONS", "/v1/organizations").header("origin", origin);
            call.header("access-control-request-method", "GET").send().await
        };
        let allowed = |answer: &Answer| answer.header("access-control-allow-origin").to_owned();
        for (app, origin) in [(&closed, origin), (&open, "https://elsewhere.example"), (&open, "null")] {
            let answer = read(app, origin).await;
            answer.ok();
            assert_eq!(allowed(&answer), "");
            let preflight = asks(app, origin).await;
            assert_eq!((preflight.code(), allowed(&preflight)), (405, String::new()));
        }
        let answer = read(&open, origin).await;
        answer.ok();
        assert_eq!((allowed(&answer).as_str(), answer.header("vary")), (origin, "origin"));
        assert_eq!(
            answer.header("access-control-expose-headers"),
            "etag, podium-operation, retry-after, x-request-id"
        );
        let preflight = asks(&open, origin).await;
        assert_eq!((preflight.code(), allowed(&preflight).as_str()), (204, origin));
        assert_eq!(preflight.header("access-control-allow-methods"), "GET, POST, DELETE");
        assert!(preflight.header("access-control-allow-headers").contains("authorization"));
        assert_eq!(preflight.header("access-control-allow-credentials"), "");
    });
}
