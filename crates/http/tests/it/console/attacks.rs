//! What others put into names and links stays text, and what others' pages send is refused.

use podium_testkit::on_one_engine;
use serde_json::json;

use super::crawl::crawl;
use super::{ORIGIN, Person, deployment, field};
use crate::front_door::visit;

const SCRIPT: &str = "<script>alert(1)</script>\"'><img src=x>";

on_one_engine! {
    async fn a_stored_script_stays_text(app) {
        let made = deployment(&app, SCRIPT).await;
        let id = made["id"].as_str().unwrap();
        let post = async |path: &str, body| app.post(&app.owner, &app.path(path), body).await.ok();
        post("/teams", json!({ "name": SCRIPT, "description": SCRIPT })).await;
        post("/tokens", json!({ "name": SCRIPT, "description": SCRIPT, "scope": "ORGANIZATION", "role": "ORGANIZATION_OWNER" })).await;
        app.set_column("deployments", id.parse::<podium_api::DeploymentId>().unwrap(), "status_reason", "'<script>alert(1)</script>'").await;
        app.set_column("deployments", id.parse::<podium_api::DeploymentId>().unwrap(), "status", "'UNHEALTHY'").await;
        let workspace = made["workspaceId"].as_str().unwrap();
        post("/webhooks", json!({ "name": SCRIPT, "description": SCRIPT, "url": "https://127.0.0.1/<script>alert(1)</script>" })).await;
        let hook = app.get(&app.owner, &app.path("/webhooks")).await.ok()["webhooks"][0]["id"].clone();
        post("/alerts", json!({ "name": SCRIPT, "description": SCRIPT, "kind": "DAG_RUN_FAILED", "dagId": SCRIPT, "webhookIds": [hook], "deploymentIds": [id] })).await;
        post("/roles", json!({ "name": SCRIPT, "description": SCRIPT, "scopeType": "DEPLOYMENT", "permissions": ["deployment.get"] })).await;
        post("/environment-objects", json!({ "objectKey": "KEY", "objectType": "ENVIRONMENT_VARIABLE", "scope": "WORKSPACE", "scopeEntityId": workspace,
            "description": SCRIPT, "environmentVariable": { "value": SCRIPT, "isSecret": false } })).await;
        let line = podium_dataplane::LogLine { deployment_id: id.parse().unwrap(), source: "scheduler".into(), timestamp: app.world.now(), text: SCRIPT.into() };
        app.keep_lines(vec![line]).await;
        app.advance(std::time::Duration::from_secs(1));
        let person = Person::new(&app, &app.owner).await;
        crawl(&app, &person).await.assert_complete();
        for path in ["", "/deployments", "/teams", "/tokens", "/operations", "/workspaces", "/audit", "/alerts", "/alerts/new?kind=%22%3E%3Cscript%3Ealert&deploymentIds=%22%3E%3Cscript%3Ealert", "/deployments?workspaceIds=%22%3E%3Cscript%3E"] {
            let page = person.page(path).await;
            assert!(!page.contains("<script>alert") && !page.contains("<img src=x"), "{path}: {page}");
        }
        for tab in ["", "/operations", "/variables", "/settings", "/access", "/deploys", "/deploys/compare?from=%22%3E%3Cscript%3Ealert(1)&to=x", "/dags?q=%22%3E%3Cscript%3Ealert(1)", "/delete", "/logs?q=%3Cscript%3E"] {
            let page = person.page(&format!("/deployments/{id}{tab}")).await;
            assert!(!page.contains("<script>alert") && !page.contains("<img src=x"), "{tab}: {page}");
        }
    }

    async fn a_form_counts_only_from_a_page_of_the_same_session(app) {
        let person = Person::new(&app, &app.owner).await;
        let colleague = app.member_as("colleague", podium_api::enums::OrganizationRole::Owner).await;
        let other = Person::new(&app, &colleague).await;
        let (own, theirs) = (person.form_token().await, other.form_token().await);
        let path = format!("{}/workspaces", person.home);
        let send = async |origin: &str, token: &str| {
            let call = app.call("POST", &path).header("origin", origin).header("cookie", &person.cookie);
            call.body(format!("form-token={token}&name=Forged")).send().await.code()
        };
        for (origin, token) in [("https://evil.test", own.as_str()), ("null", own.as_str()), (ORIGIN, ""), (ORIGIN, theirs.as_str())] {
            assert_eq!(send(origin, token).await, 403, "{origin} {token}");
        }
        assert_eq!(send(ORIGIN, &own).await, 303);
        let without_session = app.call("POST", &path).header("origin", ORIGIN).body(format!("form-token={own}&name=a")).send().await;
        assert_eq!(without_session.header("location"), "/sign-in?to=/console");
    }

    async fn a_page_cannot_be_framed_nor_fetched_by_others_nor_run_foreign_scripts(app) {
        let person = Person::new(&app, &app.owner).await;
        let page = person.read("").await;
        let policy = page.header("content-security-policy");
        for part in ["default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!((page.header("cache-control"), page.header("x-content-type-options")), ("no-store", "nosniff"));
        let text = page.text();
        assert!(!text.contains(" style=") && !text.contains(" onclick=") && !text.contains("http://") && !text.contains("https://"), "{text}");
        let fetched = app.call("GET", &person.home).header("cookie", &person.cookie).header("sec-fetch-site", "cross-site").header("sec-fetch-mode", "no-cors");
        assert_eq!(fetched.send().await.code(), 403);
    }

    async fn applying_a_plan_leads_nowhere_else(app) {
        let person = Person::new(&app, &app.owner).await;
        let id = deployment(&app, "nightly").await["id"].as_str().unwrap().to_owned();
        let form = "name=daily&description=&executor=CELERY&schedulerSize=SMALL&drainGraceSeconds=&contactEmails=";
        let plan = person.send(&format!("/deployments/{id}/settings"), form).await.text();
        let apply = format!("plan={}&then=https://evil.test/", field(&plan, "plan"));
        let answer = person.send("/plans/apply", &apply).await;
        assert_eq!((answer.code(), answer.header("location")), (303, person.home.as_str()));
    }

    async fn an_environments_own_origin_has_no_console(app) {
        let person = Person::new(&app, &app.owner).await;
        let made = deployment(&app, "nightly").await;
        let behind = visit(&app, &format!("/airflow/{}/console", made["namespace"].as_str().unwrap()), &person.cookie).await;
        assert!(!behind.text().contains("form-token"), "{}", behind.text());
    }
}
