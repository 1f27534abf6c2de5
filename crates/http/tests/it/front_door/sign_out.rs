//! `/sign-out`, and signing out from inside an environment.

use podium_testkit::{Answer, TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{Behind, SESSION, cookies, port_and_target, signed_in, visit};

const ORIGIN: &str = "https://podium.test";

async fn sign_out(app: &TestApp, cookie: &str, origin: &str) -> Answer {
    app.call("POST", "/sign-out").header("cookie", cookie).header("origin", origin).send().await
}

/// Operation, path and status of what the audit log says of signing in and out.
async fn recorded(app: &TestApp) -> Vec<(Value, Value, Value)> {
    let is_it = |record: &Value| record["operationId"] == "SignIn" || record["operationId"] == "SignOut";
    let records = app.audit().await.into_iter().filter(is_it);
    records.map(|of| (of["operationId"].clone(), of["path"].clone(), of["statusCode"].clone())).collect()
}

on_both_engines! {
    async fn a_form_of_ones_own_ends_the_session_and_every_pass(app) {
        let (one, other) = (Behind::new(&app).await, Behind::new(&app).await);
        let session = signed_in(&app, &app.owner).await;
        let (at_one, at_other) = (one.browser_with(&app, &session).await, other.browser_with(&app, &session).await);
        let apart = one.browser(&app, &app.owner).await;
        let page = visit(&app, "/sign-out", &session).await;
        assert_eq!(page.code(), 200);
        assert!(page.text().contains(r#"<form method="post" action="/sign-out">"#));
        assert_eq!(at_one.get(&one.at("/")).await.code(), 200, "looking at the form ends nothing");
        for origin in ["https://evil.example", "null", &at_one.origin()] {
            assert_eq!(sign_out(&app, &session, origin).await.code(), 403, "{origin}");
        }
        assert_eq!(visit(&app, &one.at("/"), &session).await.code(), 303);
        let out = sign_out(&app, &session, ORIGIN).await;
        assert_eq!((out.code(), cookies(&out)[SESSION].as_str()), (200, ""));
        assert!(out.header("set-cookie").contains("Max-Age=0"), "{}", out.header("set-cookie"));
        at_one.get(&one.at("/")).await.refused(401);
        at_other.get(&other.at("/")).await.refused(401);
        let asked = visit(&app, &one.at("/"), &session).await;
        assert!(asked.header("location").starts_with("/sign-in?to="), "{}", asked.header("location"));
        assert_eq!(apart.get(&one.at("/")).await.code(), 200, "a link that a program made has its own life");
        assert_eq!(app.get(&app.owner, "/v1/users/self").await.code(), 200, "the token is not the session");
        assert_eq!(sign_out(&app, &session, ORIGIN).await.code(), 200, "again is fine");
        assert_eq!(sign_out(&app, "", ORIGIN).await.code(), 200);
        assert_eq!(recorded(&app).await, [
            (json!("SignIn"), json!("/sign-in"), json!(303)),
            (json!("SignOut"), json!("/sign-out"), json!(200)),
        ]);
    }

    async fn a_link_to_an_environment_is_invalid_after_signing_out(app) {
        let behind = Behind::new(&app).await;
        let session = signed_in(&app, &app.owner).await;
        let led = visit(&app, &behind.at("/"), &session).await;
        let (port, target) = port_and_target(led.header("location"));
        sign_out(&app, &session, ORIGIN).await;
        assert!(app.call("GET", &target).on_port(port).send().await.refused(403).contains("used or has expired"));
    }

    async fn logging_out_of_airflow_signs_out(app) {
        let (one, other) = (Behind::new(&app).await, Behind::new(&app).await);
        let session = signed_in(&app, &app.owner).await;
        let (at_one, at_other) = (one.browser_with(&app, &session).await, other.browser_with(&app, &session).await);
        let out = at_one.call("GET", &one.at("/api/v2/auth/logout")).header("sec-fetch-site", "same-origin").send().await;
        assert_eq!(out.code(), 200);
        assert!(out.text().contains("You are signed out"), "{}", out.text());
        at_one.get(&one.at("/")).await.refused(401);
        at_other.get(&other.at("/")).await.refused(401);
        let asked = visit(&app, &one.at("/"), &session).await;
        assert!(asked.header("location").starts_with("/sign-in?to="), "it does not let one in again silently");
        let form = visit(&app, asked.header("location"), &session).await;
        assert!(form.code() == 200 && form.text().contains("<form"));
        assert_eq!(recorded(&app).await, [
            (json!("SignIn"), json!("/sign-in"), json!(303)),
            (json!("SignOut"), json!(one.at("/api/v2/auth/logout")), json!(200)),
        ]);
        assert!(one.environment.seen().is_empty() && other.environment.seen().is_empty());
    }
}
