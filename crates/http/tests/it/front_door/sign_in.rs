//! `/sign-in`: a form for browsers.

use podium_testkit::{TestApp, on_both_engines};
use serde_json::json;

use super::{Behind, SESSION, cookies, signed_in, visit};

const ORIGIN: &str = "https://podium.test";
const PASSWORD: &str = "correct horse battery staple";

async fn send(app: &TestApp, form: &str) -> podium_testkit::Answer {
    let call = app.call("POST", "/sign-in").header("origin", ORIGIN);
    call.header("content-type", "application/x-www-form-urlencoded").body(form.to_owned()).send().await
}

on_both_engines! {
    async fn the_page_works_without_scripts_and_in_no_frame(app) {
        let page = app.call("GET", "/sign-in?to=/airflow/calm/%3Fa=%22%3E%3Cscript%3E").send().await;
        assert_eq!((page.code(), page.header("content-type")), (200, "text/html; charset=utf-8"));
        let policy = page.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("script-src") && !page.text().contains("<script"));
        assert!(page.text().contains(r#"value="/airflow/calm/?a=&#34;&#62;&#60;script&#62;""#), "{}", page.text());
        app.call("DELETE", "/sign-in").send().await;
    }

    async fn no_page_allows_inline_styles_or_scripts_but_its_own(app) {
        for path in ["/sign-in", "/sign-out", "/device", "/accept-invite", "/sign-in/nowhere", "/airflow/nowhere/"] {
            let page = app.call("GET", path).header("accept", "text/html").send().await;
            let policy = page.header("content-security-policy").to_owned();
            if page.header("content-type").starts_with("text/html") {
                assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
            }
            assert!(!policy.contains("unsafe"), "{path}: {policy}");
            // Each inline block is named by its hash, and no element has a style or a handler of its own.
            let text = page.text();
            for (tag, directive) in [("style", "style-src"), ("script", "script-src")] {
                let (begin, end) = (format!("<{tag}>"), format!("</{tag}>"));
                for block in text.split(&begin).skip(1).filter_map(|rest| rest.split(&end).next()) {
                    let hash = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, block.as_bytes());
                    let hash = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, hash);
                    assert!(policy.contains(&format!("{directive} 'sha256-{hash}'")), "{path}: {policy}");
                }
            }
            assert!(!text.contains(" style=") && !text.contains(" onclick="), "{path}");
        }
    }

    async fn a_token_or_a_password_gives_a_session_that_is_no_token(app) {
        let token = send(&app, &format!("token={}&to=/airflow/calm/", app.owner.token)).await;
        assert_eq!((token.code(), token.header("location")), (303, "/airflow/calm/"));
        let cookie = token.header("set-cookie");
        assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict; Max-Age=28800; Secure"), "{cookie}");
        assert!(!cookie.contains(&app.owner.token) && !token.text().contains(&app.owner.token));
        let change = json!({ "currentPassword": "", "newPassword": PASSWORD });
        app.post(&app.owner, "/v1/auth/change-password", change).await;
        let form = format!("username=owner%40localhost&password={}&to=//evil.example", PASSWORD.replace(' ', "+"));
        let password = send(&app, &form).await;
        assert_eq!((password.code(), password.header("location")), (303, "/"), "{}", password.text());
        assert!(password.header("set-cookie").contains("Max-Age=28800"));
        for answer in [&token, &password] {
            let session = cookies(answer)[SESSION].clone();
            assert_eq!(session.len(), 43, "256 bits");
            let by = podium_testkit::Actor { id: app.owner.id, token: session };
            assert!(app.get(&by, "/v1/users/self").await.refused(401).contains("malformed"), "it is no bearer");
            let behind = Behind::new(&app).await;
            visit(&app, &behind.at("/"), &format!("{SESSION}={}", by.token)).await;
            assert!(app.get(&by, "/v1/users/self").await.refused(401).contains("malformed"), "nor once it was used");
            app.get(&by, &behind.at("/api/v2/dags")).await.refused(401);
        }
        let asked = json!({
            "name": "short", "role": "ORGANIZATION_OWNER", "scope": "ORGANIZATION", "tokenExpiryPeriodInDays": 1,
        });
        let short = app.post(&app.owner, &app.path("/tokens"), asked).await.ok()["token"].as_str().unwrap().to_owned();
        app.advance(std::time::Duration::from_hours(23));
        let last = send(&app, &format!("token={short}")).await;
        assert!(last.header("set-cookie").contains("Max-Age=3600;"), "no longer than the token: {}", last.header("set-cookie"));
    }

    async fn whoever_is_signed_in_goes_on(app) {
        let session = signed_in(&app, &app.owner).await;
        let on = visit(&app, "/sign-in?to=/deployments/x%3Fa", &session).await;
        assert_eq!((on.code(), on.header("location")), (303, "/deployments/x?a"));
        for (path, cookie) in [
            ("/sign-in", session.as_str()), ("/sign-in?to=//evil.example", &session),
            ("/sign-in?to=/x", "__Host-podium_session=guessed"), ("/sign-in?to=/x", ""),
        ] {
            let form = visit(&app, path, cookie).await;
            assert_eq!(form.code(), 200, "{path} {cookie}");
            assert!(form.text().contains("<form"));
        }
    }

    async fn errors_are_shown_on_the_page(app) {
        let wrong = send(&app, "username=owner%40localhost&password=nonsense&to=/x").await;
        assert_eq!(wrong.code(), 401);
        assert!(wrong.text().contains("The e-mail address or password is wrong."));
        assert!(wrong.text().contains(r#"value="/x""#) && !wrong.text().contains("nonsense"));
        let broken = send(&app, "token=a.b.c").await;
        assert_eq!(broken.code(), 401);
        assert!(broken.text().contains("malformed") && broken.headers.get("set-cookie").is_none());
    }

    async fn forms_of_other_pages_are_refused(app) {
        let body = format!("token={}", app.owner.token);
        for origin in ["https://evil.example", "https://podium.test:18000", "null", "http://podium.test"] {
            let sent = app.call("POST", "/sign-in").header("origin", origin).body(body.clone()).send().await;
            assert_eq!(sent.code(), 403, "{origin}");
        }
        assert_eq!(app.call("POST", "/sign-in").body(body.clone()).send().await.code(), 403);
        let own = app.call("POST", "/sign-in").header("sec-fetch-site", "same-origin").body(body).send().await;
        assert_eq!(own.code(), 303);
    }
}
