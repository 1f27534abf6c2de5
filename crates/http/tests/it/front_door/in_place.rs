//! At the control plane's own URL: programs with a token.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use podium_dataplane::Line;
use podium_domain::On;
use podium_testkit::{on_both_engines, role};
use serde_json::{Value, json};

use super::{Behind, Browser};
use crate::deployments::{path, read};

fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("a token has parts");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

on_both_engines! {
    async fn the_urls_of_a_deployment_lead_to_its_environment(app) {
        let behind = Behind::new(&app).await;
        let deployment = read(&app, behind.id).await;
        let api = deployment["webServerAirflowApiUrl"].as_str().unwrap().strip_prefix("https://podium.test").unwrap();
        let told = app.get(&app.owner, &format!("{api}/dags?limit=3&order_by=dag_id")).await.ok();
        assert_eq!((&told["method"], &told["target"]),
            (&json!("GET"), &json!(behind.at("/api/v2/dags?limit=3&order_by=dag_id"))));
        let body = json!({ "logical_date": null });
        let told = app.post(&app.owner, &behind.at("/api/v2/dags/a/dagRuns"), body.clone()).await.ok();
        assert_eq!((&told["method"], &told["body"]), (&json!("POST"), &json!(body.to_string())));
    }

    async fn a_caller_is_identified_to_airflow_3_by_a_token_valid_for_a_minute(app) {
        let behind = Behind::new(&app).await;
        let viewer = behind.holder(&app, "ada", vec![role(On::Workspace(behind.workspace), "WORKSPACE_MEMBER")]).await;
        for (actor, name, role) in [(&app.owner, "owner@localhost", "ADMIN"), (&viewer, "ada@podium.test", "VIEWER")] {
            let told = app.get(actor, &behind.at("/api/v2/dags")).await.ok();
            let token = told["headers"]["authorization"].as_str().unwrap().strip_prefix("Bearer ").unwrap();
            assert_ne!(token, actor.token);
            let claims = claims(token);
            assert_eq!((&claims["sub"], &claims["role"]), (&json!(name), &json!(role)));
            assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 60);
        }
        // Whatever a token is named, it is nobody else.
        for name in ["CI", "owner@localhost", "ada@podium.test"] {
            let token = app.token(name, "WORKSPACE", behind.workspace, "WORKSPACE_AUTHOR").await;
            let told = app.get(&token, &behind.at("/api/v2/dags")).await.ok();
            let claims = claims(told["headers"]["authorization"].as_str().unwrap());
            let shown = format!("token:{}:{name}", token.id);
            assert_eq!((&claims["sub"], &claims["role"]), (&json!(shown), &json!("OP")));
        }
    }

    async fn a_caller_is_identified_to_airflow_2_by_a_signed_header(app) {
        let behind = Behind::of_line(&app, Line::Two).await;
        let told = app.call("GET", &behind.at("/api/v1/dags")).by(&app.owner)
            .header("x-podium-user", "forged").header("x_podium_user", "forged").send().await.ok();
        assert_eq!(told["headers"]["authorization"], Value::Null);
        assert_eq!(told["headers"]["x_podium_user"], Value::Null);
        let claims = claims(told["headers"]["x-podium-user"].as_str().unwrap());
        assert_eq!((&claims["sub"], &claims["role"]), (&json!("owner@localhost"), &json!("Admin")));
    }

    async fn rights_on_the_deployment_decide_by_method_and_path(app) {
        let behind = Behind::new(&app).await;
        let member = behind.holder(&app, "member", vec![role(On::Workspace(behind.workspace), "WORKSPACE_MEMBER")]).await;
        let accessor = behind.holder(&app, "accessor", vec![role(behind.on(), "DEPLOYMENT_ACCESSOR")]).await;
        let runs = behind.at("/api/v2/dags/a/dagRuns");
        assert_eq!(app.get(&member, &runs).await.code(), 200);
        let refused = app.post(&member, &runs, json!({})).await.refused(403);
        assert!(refused.contains("`deployment.airflow.dagRun.create`"), "{refused}");
        assert_eq!(app.get(&accessor, &behind.at("/api/v2/version")).await.code(), 200);
        app.get(&accessor, &runs).await.refused(403);
        for closed in ["/execution/health", "/auth/token", "/ui/auth/token", "/auth/login", "/internal_api/v1/rpcapi"] {
            assert!(app.post(&app.owner, &behind.at(closed), json!({})).await.refused(403).contains("closed"), "{closed}");
        }
        let unknown = app.get(&app.owner, &behind.at("/nowhere")).await.refused(403);
        assert!(unknown.contains("GET /nowhere is not allowed"), "{unknown}");
        assert_eq!(behind.environment.seen().len(), 2, "what is refused is not sent on");
    }

    async fn who_may_not_see_a_deployment_cannot_tell_it_from_none(app) {
        let behind = Behind::new(&app).await;
        let outsider = app.member("outsider").await;
        let stranger = app.stranger().await;
        for actor in [&outsider, &stranger] {
            let unseen = app.call("GET", &behind.at("/api/v2/dags")).by(actor).header("x-request-id", "same").send().await;
            let absent = app.call("GET", "/airflow/no-such-0000/api/v2/dags").by(actor)
                .header("x-request-id", "same").send().await;
            assert_eq!(unseen.refused(404), "There is no such deployment, or you may not see it.");
            assert_eq!((unseen.headers, unseen.bytes), (absent.headers, absent.bytes));
        }
        assert!(app.call("GET", &behind.at("/api/v2/dags")).send().await.refused(401).contains("missing"));
        let broken = app.call("GET", &behind.at("/api/v2/dags")).header("authorization", "Basic x").send().await;
        assert!(broken.refused(401).contains("malformed"));
        assert!(behind.environment.seen().is_empty());
    }

    async fn allowed_addresses_apply_at_the_front_door(app) {
        let behind = Behind::new(&app).await;
        let range = json!({ "ipAddressRange": "192.0.2.0/24" });
        let add = app.call("POST", &app.path("/allowed-ip-address-ranges")).by(&app.owner).from("192.0.2.7");
        add.json(&range).send().await.ok();
        let from = |address: &'static str| app.call("GET", &behind.at("/api/v2/dags")).by(&app.owner).from(address).send();
        assert_eq!(from("192.0.2.8").await.code(), 200);
        assert!(from("198.51.100.1").await.refused(403).contains("198.51.100.1"));
    }

    async fn changes_are_recorded_and_reads_are_not(app) {
        let behind = Behind::new(&app).await;
        let member = behind.holder(&app, "member", vec![role(On::Workspace(behind.workspace), "WORKSPACE_MEMBER")]).await;
        let runs = behind.at("/api/v2/dags/a/dagRuns");
        app.get(&app.owner, &runs).await.ok();
        app.post(&app.owner, &behind.at("/api/v2/dags/~/dagRuns/list"), json!({})).await.ok();
        let secret = json!({ "conf": { "password": "hunter2" } });
        app.call("PATCH", &behind.at("/api/v2/dags/a")).by(&app.owner).json(&secret).send().await.ok();
        app.post(&member, &runs, json!({})).await.refused(403);
        behind.environment.answer_with(409, "{}");
        assert_eq!(app.post(&app.owner, &runs, json!({})).await.code(), 409);
        let records = app.audit().await;
        let mut passed: Vec<_> = records.iter().filter(|record| record["operationId"] == "AirflowRequest").collect();
        passed.sort_by_key(|record| record["statusCode"].as_u64());
        let shown = |record: &&Value| {
            let text = |field: &str| record[field].as_str().unwrap_or_default().to_owned();
            (text("subjectName"), text("method"), text("path"), record["statusCode"].as_u64().unwrap())
        };
        assert_eq!(passed.iter().map(shown).collect::<Vec<_>>(), [
            ("owner@localhost".into(), "PATCH".into(), behind.at("/api/v2/dags/a"), 200),
            ("member@podium.test".into(), "POST".into(), runs.clone(), 403),
            ("owner@localhost".into(), "POST".into(), runs, 409),
        ]);
        assert!(!format!("{records:?}").contains("hunter2"));
    }

    async fn the_response_for_an_environment_that_is_not_up_says_what_to_do(app) {
        let behind = Behind::new(&app).await;
        let workspace = behind.workspace;
        let bare = crate::deployments::made(&app, workspace, json!({})).await;
        let at = |namespace: &Value| format!("/airflow/{}/api/v2/dags", namespace.as_str().unwrap());
        let bare_path = at(&read(&app, bare).await["namespace"]);
        let answer = app.get(&app.owner, &bare_path).await;
        let message = answer.refused(503);
        assert!(message.contains("web server is not up") && !message.contains("simulated"), "{message}");
        assert_eq!(answer.header("retry-after"), "10");
        app.set_column("deployments", bare, "status", "'CREATING'").await;
        assert!(app.get(&app.owner, &bare_path).await.refused(503).contains("still being created"));
        app.set_column("deployments", behind.id, "status", "'HIBERNATING'").await;
        assert!(app.get(&app.owner, &behind.at("/api/v2/dags")).await.refused(503).contains("wake it"));
        app.set_column("deployments", behind.id, "status", "'HEALTHY'").await;
        let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let door = podium_dataplane::WebServer {
            upstream: nobody.into(), line: Line::Three, key: podium_dataplane::Secret::new("k".into()),
        };
        app.plane.script().lock().web_servers.insert(behind.id, door);
        let away = app.get(&app.owner, &behind.at("/api/v2/dags")).await;
        assert!(away.refused(502).contains("does not respond"));
        assert_eq!(away.header("retry-after"), "5");
        let page = app.call("GET", &behind.at("/")).by(&app.owner).header("accept", "text/html").send().await;
        assert_eq!((page.code(), page.header("content-type")), (502, "text/html; charset=utf-8"));
        assert!(page.text().contains("does not respond"));
    }

    async fn an_environment_with_another_key_is_no_reason_to_sign_in_again(app) {
        let behind = Behind::new(&app).await;
        behind.environment.answer_with(401, "{}");
        assert!(app.get(&app.owner, &behind.at("/api/v2/dags")).await.refused(502).contains("does not recognize"));
        let older = Behind::of_line(&app, Line::Two).await;
        older.environment.answer_with(302, "");
        older.environment.send_headers(&[("location", "/airflow/x/login/?next=y")]);
        assert!(app.get(&app.owner, &older.at("/home")).await.refused(502).contains("does not recognize"));
    }

    async fn a_deleted_deployment_is_not_reachable_through_the_front_door(app) {
        let behind = Behind::new(&app).await;
        let browser = behind.browser(&app, &app.owner).await;
        assert_eq!(browser.get(&behind.at("/")).await.code(), 200);
        assert_eq!(app.delete(&app.owner, &path(&app, behind.id)).await.code(), 204);
        app.get(&app.owner, &behind.at("/")).await.refused(404);
        assert_eq!(browser.get(&behind.at("/")).await.code(), 404);
        let other = Behind::new(&app).await;
        let (port, _) = other.link(&app, &app.owner).await;
        assert_ne!(port, browser.port, "its port rests: pages of it may still be open there");
        let browser = Browser { port, ..browser };
        let at_other = browser.get(&other.at("/")).await;
        assert!(at_other.refused(401).contains("missing"), "and what opened it opens nothing else");
    }

    async fn other_protocols_and_large_bodies_are_refused(app) {
        let behind = Behind::new(&app).await;
        let upgrade = app.call("GET", &behind.at("/api/v2/dags")).by(&app.owner).header("upgrade", "websocket");
        assert!(upgrade.send().await.refused(501).contains("Upgrade"));
        let large = app.call("POST", &behind.at("/api/v2/dags/a/dagRuns")).by(&app.owner)
            .header("content-length", "67108865").body("x").send().await;
        assert!(large.refused(413).contains("too large"));
        let trace = app.call("TRACE", &behind.at("/api/v2/dags")).by(&app.owner).send().await;
        trace.refused(403);
        assert!(behind.environment.seen().is_empty());
    }
}
