//! What a session at the console is worth, until when, and where it is not to be used.

use std::time::Duration;

use podium_domain::On;
use podium_testkit::{Actor, Engine, TestApp, block_on, on_both_engines, role};
use serde_json::{Value, json};

use super::{Behind, SESSION, cookies, signed_in, visit};

const PASSWORD: &str = "correct horse battery staple";

/// Signs in with a password: the cookie.
async fn by_password(app: &TestApp, username: &str, password: &str) -> podium_testkit::Answer {
    let form = format!("username={username}&password={}", password.replace(' ', "+"));
    app.call("POST", "/sign-in").header("origin", "https://podium.test").body(form).send().await
}

/// Whether a session still leads into an environment.
async fn works(app: &TestApp, behind: &Behind, session: &str) -> bool {
    let answer = visit(app, &behind.at("/"), session).await;
    assert_eq!(answer.code(), 303, "{}", answer.text());
    !answer.header("location").starts_with("/sign-in")
}

async fn workspace_token(app: &TestApp, behind: &Behind) -> (String, Actor) {
    let body = json!({ "name": "ci", "role": "WORKSPACE_MEMBER", "scope": "WORKSPACE", "entityId": behind.workspace });
    let made = app.post(&app.owner, &app.path("/tokens"), body).await.ok();
    let (id, value) = (made["id"].as_str().unwrap().to_owned(), made["token"].as_str().unwrap().to_owned());
    let actor = Actor { id: id.parse().unwrap(), token: value };
    (id, actor)
}

on_both_engines! {
    async fn a_session_ends_with_its_token(app) {
        let behind = Behind::new(&app).await;
        for how in ["rotate", "delete"] {
            let (id, actor) = workspace_token(&app, &behind).await;
            let session = signed_in(&app, &actor).await;
            let browser = behind.browser_with(&app, &session).await;
            assert!(works(&app, &behind, &session).await);
            let path = app.path(&format!("/tokens/{id}"));
            let ended = match how {
                "rotate" => app.post(&app.owner, &format!("{path}/rotate"), json!({})).await,
                _ => app.delete(&app.owner, &path).await,
            };
            assert!(ended.status.is_success(), "{}", ended.text());
            assert!(!works(&app, &behind, &session).await, "{how}");
            browser.get(&behind.at("/")).await.refused(401);
            if how == "rotate" {
                app.delete(&app.owner, &path).await;
            }
        }
    }

    async fn a_session_ends_with_a_new_password_and_with_its_user(app) {
        let behind = Behind::new(&app).await;
        let ada = behind.holder(&app, "ada", vec![role(On::Workspace(behind.workspace), "WORKSPACE_MEMBER")]).await;
        let change = |from: &str, to: &str| json!({ "currentPassword": from, "newPassword": to });
        app.post(&ada, "/v1/auth/change-password", change("", PASSWORD)).await;
        let password = cookies(&by_password(&app, "ada%40podium.test", PASSWORD).await)[SESSION].clone();
        let sessions = [format!("{SESSION}={password}"), signed_in(&app, &ada).await];
        let browser = behind.browser_with(&app, &sessions[0]).await;
        for session in &sessions {
            assert!(works(&app, &behind, session).await);
        }
        assert_eq!(app.post(&ada, "/v1/auth/change-password", change(PASSWORD, "another long password")).await.code(), 204);
        for session in &sessions {
            assert!(!works(&app, &behind, session).await, "a new password ends it");
        }
        browser.get(&behind.at("/")).await.refused(401);
        let session = signed_in(&app, &ada).await;
        assert!(works(&app, &behind, &session).await);
        let leave = json!({ "organizationRole": null });
        let left = app.post(&app.owner, &app.path(&format!("/users/{}/roles", ada.id)), leave).await;
        assert!(left.status.is_success(), "{}", left.text());
        assert!(!works(&app, &behind, &session).await, "a user who was removed is signed out");
    }

    async fn a_pass_ends_with_the_session_that_its_user_ends(app) {
        let behind = Behind::new(&app).await;
        let ada = behind.holder(&app, "ada", vec![role(On::Workspace(behind.workspace), "WORKSPACE_MEMBER")]).await;
        for others in [false, true] {
            let session = signed_in(&app, &ada).await;
            let browser = behind.browser_with(&app, &session).await;
            assert_ne!(browser.get(&behind.at("/")).await.code(), 401);
            let listed = app.get(&ada, "/v1/auth/sessions").await.ok();
            let of_browser = listed["sessions"].as_array().unwrap().iter().find(|one| one["kind"] == "BROWSER").unwrap();
            let ended = match others {
                true => app.call("POST", "/v1/auth/sessions/end-others").by(&ada).send().await,
                false => app.delete(&ada, &format!("/v1/auth/sessions/{}", of_browser["id"].as_str().unwrap())).await,
            };
            assert_eq!(ended.code(), 204);
            browser.get(&behind.at("/")).await.refused(401);
            assert!(!works(&app, &behind, &session).await);
        }
    }

    async fn a_session_expires_and_is_deleted(app) {
        let system = app.system;
        let behind = Behind::new(&app).await;
        let session = signed_in(&app, &app.owner).await;
        let browser = behind.browser_with(&app, &session).await;
        app.advance(app.app.config.session - Duration::from_secs(1));
        assert!(works(&app, &behind, &session).await);
        let late = behind.browser_with(&app, &session).await;
        app.advance(Duration::from_secs(1));
        assert!(!works(&app, &behind, &session).await);
        browser.get(&behind.at("/")).await.refused(401);
        late.get(&behind.at("/")).await.refused(401);
        app.advance(Duration::from_secs(1));
        podium_app::maintenance::once(&app.app).await.unwrap();
        let far = app.world.now() + Duration::from_hours(24);
        let left = app.app.db(&app.system).write(None, move |tx| podium_store::sessions::prune(tx, &system.housekeeper(), far, 100)).await.unwrap();
        assert_eq!(left, 0, "nothing was left to drop");
    }

    async fn what_is_stored_opens_nothing(app) {
        let system = app.system;
        let session = signed_in(&app, &app.owner).await;
        let value = session.split_once('=').unwrap().1.to_owned();
        let hash = podium_app::secrets::sha256_hex(value.as_bytes());
        let found = app.app.db(&app.system).read(None, move |conn| podium_store::sessions::by_hash(conn, &system, &hash)).await.unwrap().unwrap();
        let behind = Behind::new(&app).await;
        for stored in [&found.credential_hash, &podium_app::secrets::sha256_hex(value.as_bytes())] {
            assert!(!works(&app, &behind, &format!("{SESSION}={stored}")).await);
        }
        let pass = format!("{}={value}", behind.pass_name());
        let (port, _) = behind.link(&app, &app.owner).await;
        app.call("GET", &behind.at("/")).on_port(port).header("cookie", &pass).send().await.refused(401);
        let browser = behind.browser_with(&app, &session).await;
        let pass = browser.cookie.split_once('=').unwrap().1;
        assert!(!works(&app, &behind, &format!("{SESSION}={pass}")).await, "a pass is no session");
    }

    async fn sign_ins_good_and_bad_are_in_the_audit_log(app) {
        let change = json!({ "currentPassword": "", "newPassword": PASSWORD });
        app.post(&app.owner, "/v1/auth/change-password", change).await;
        let before = app.audit().await.len();
        assert_eq!(by_password(&app, "owner%40localhost", PASSWORD).await.code(), 303);
        assert_eq!(by_password(&app, "owner%40localhost", "planted nonsense").await.code(), 401);
        assert_eq!(by_password(&app, "nobody%40localhost", "planted nonsense").await.code(), 401);
        let api = json!({ "username": "owner@localhost", "password": "planted nonsense" });
        app.call("POST", "/v1/auth/sign-in").from("192.0.2.9").json(&api).send().await.refused(401);
        signed_in(&app, &app.owner).await;
        let expected = [("/sign-in", 303), ("/sign-in", 401), ("/v1/auth/sign-in", 401), ("/sign-in", 303)];
        let mut records = Vec::new();
        // Nobody waits for the record of a failure.
        for _ in 0..200 {
            records = app.audit().await.split_off(before);
            if records.len() >= expected.len() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let told: Vec<(&str, u64)> = records.iter()
            .map(|of| (of["path"].as_str().unwrap(), of["statusCode"].as_u64().unwrap())).collect();
        let sorted = |mut list: Vec<(&'static str, u64)>| { list.sort_unstable(); list };
        let mut told_sorted = told.clone();
        told_sorted.sort_unstable();
        assert_eq!(told_sorted, sorted(expected.to_vec()), "none of somebody who is unknown");
        for record in &records {
            assert_eq!((&record["operationId"], &record["subjectId"]), (&json!("SignIn"), &json!(app.owner.id)));
            assert_eq!(record["organizationId"], json!(app.organization_id));
        }
        assert!(records.iter().any(|of| of["sourceAddress"] == "192.0.2.9" && of["requestBody"] == json!({ "username": "owner@localhost" })));
        let log = Value::from(records).to_string();
        assert!(!log.contains("planted") && !log.contains(PASSWORD) && !log.contains(&app.owner.token));
    }

    async fn a_browser_from_another_site_is_made_to_repeat_the_request_from_this_origin(app) {
        let behind = Behind::new(&app).await;
        let from = |site: &str, cookie: &str| {
            let call = app.call("GET", &behind.at("?q=1")).header("accept", "text/html").header("cookie", cookie);
            call.header("sec-fetch-site", site).header("sec-fetch-mode", "navigate").header("sec-fetch-dest", "document").send()
        };
        let again = from("cross-site", "").await;
        assert_eq!((again.code(), again.header("cache-control")), (200, "no-store"));
        let way = format!("/sign-in?to={}", behind.at("/?q=1"));
        assert!(again.text().contains(&format!(r#"<meta http-equiv="refresh" content="0; url={way}">"#)), "{}", again.text());
        assert!(!again.text().contains("<script"));
        let form = visit(&app, &way, "").await;
        assert!(form.code() == 200 && form.text().contains("<form"), "then it is asked to sign in");
        let session = signed_in(&app, &app.owner).await;
        let on = visit(&app, &way, &session).await;
        assert_eq!((on.code(), on.header("location")), (303, behind.at("/?q=1").as_str()), "unless it need not");
        for site in ["same-origin", "same-site", "none"] {
            assert_eq!(from(site, "").await.header("location"), way, "{site}");
        }
        assert_eq!(from("cross-site", &format!("{SESSION}=ended")).await.header("location"), way);
        assert!(from("cross-site", &session).await.header("location").contains("/.podium/enter?"));
    }

    async fn a_deployment_has_a_page_for_those_who_see_it(app) {
        let behind = Behind::new(&app).await;
        let shown = app.get(&app.owner, &app.path(&format!("/deployments/{}", behind.id))).await.ok();
        let path = shown["uiUrl"].as_str().unwrap().strip_prefix("https://podium.test").unwrap().to_owned();
        app.set_column("deployments", behind.id, "status_reason", "'<b>why</b>'").await;
        let asked = visit(&app, &path, "").await;
        assert_eq!((asked.code(), asked.header("location")), (303, format!("/sign-in?to={path}").as_str()));
        let session = signed_in(&app, &app.owner).await;
        let page = visit(&app, &path, &session).await;
        let to = format!("/console/{}/deployments/{}", app.organization_id, behind.id);
        assert_eq!((page.code(), page.header("location"), page.header("cache-control")), (303, to.as_str(), "no-store"));
        let page = visit(&app, &to, &session).await;
        for text in [shown["name"].as_str().unwrap(), "Healthy", &format!("href=\"{}\"", behind.at("/"))] {
            assert!(page.text().contains(text), "{text}: {}", page.text());
        }
        let head = app.call("HEAD", &to).header("accept", "text/html").header("cookie", &session).send().await;
        assert_eq!((head.code(), head.text().as_str()), (200, ""));
        let accessor = behind.holder(&app, "accessor", vec![role(behind.on(), "DEPLOYMENT_ACCESSOR")]).await;
        let theirs = signed_in(&app, &accessor).await;
        assert_eq!((visit(&app, &path, &theirs).await.code(), visit(&app, &to, &theirs).await.code()), (303, 200));
        let nobody = signed_in(&app, &app.member("nobody").await).await;
        let unseen = visit(&app, &path, &nobody).await;
        let missing = visit(&app, "/deployments/cmywpiww00007000000000009", &nobody).await;
        assert_eq!((unseen.code(), missing.code(), unseen.text()), (404, 404, missing.text()));
        assert_eq!(visit(&app, "/deployments/x", &session).await.code(), 404);
        app.call("GET", &path).header("cookie", &session).send().await.refused(401);
        app.call("POST", &path).send().await.refused(405);
    }
}

#[test]
fn over_unencrypted_connections_browsers_sign_in_only_if_the_operator_allows_it() {
    block_on(async {
        for allowed in [false, true] {
            let app = TestApp::start_with(Engine::Sqlite, |config, _| {
                config.public_url = "http://podium.test:8080".into();
                config.allow_insecure_sign_in = allowed;
            })
            .await;
            let page = visit(&app, "/sign-in", "").await;
            let form = app.call("POST", "/sign-in").header("origin", "http://podium.test:8080");
            let sent = form.body(format!("token={}", app.owner.token)).send().await;
            let behind = Behind::new(&app).await;
            let path = app.path(&format!("/deployments/{}/open", behind.id));
            let url = app.post(&app.owner, &path, json!({})).await.ok()["url"].as_str().unwrap().to_owned();
            let (port, target) = url
                .strip_prefix("http://podium.test:")
                .unwrap()
                .split_once('/')
                .map(|(p, t)| (p.parse().unwrap(), t))
                .unwrap();
            let entered = app.call("GET", &format!("/{target}")).on_port(port).send().await;
            if allowed {
                assert_eq!((page.code(), sent.code(), entered.code()), (200, 303, 303));
                assert!(sent.header("set-cookie").starts_with("podium_session="));
                let first = visit(&app, &behind.at("/"), "").await;
                assert!(
                    first.text().contains("http-equiv=\"refresh\""),
                    "browsers do not say where they come from"
                );
                continue;
            }
            assert_eq!((page.code(), sent.code(), entered.code()), (403, 403, 403));
            for said in ["--allow-insecure-sign-in", "--tls-cert", "--public-url"] {
                assert!(page.text().contains(said), "{said}: {}", page.text());
            }
            assert_eq!((sent.header("set-cookie"), entered.header("set-cookie")), ("", ""));
            assert_eq!(app.get(&app.owner, "/v1/users/self").await.code(), 200, "programs use tokens");
            assert_eq!(app.get(&app.owner, &behind.at("/api/v2/dags")).await.code(), 200);
        }
    });
}

#[test]
fn a_session_ends_on_every_replica() {
    block_on(async {
        let app = TestApp::start(Engine::Postgres).await;
        let behind = Behind::new(&app).await;
        let replica = app.replica().await;
        let session = signed_in(&app, &app.owner).await;
        assert!(works(&replica, &behind, &session).await);
        let out =
            app.call("POST", "/sign-out").header("cookie", &session).header("origin", "https://podium.test");
        assert_eq!(out.send().await.code(), 200);
        assert!(!works(&replica, &behind, &session).await);
    });
}
