//! The origin of an environment: how a browser gets there, and what it holds.

use std::time::Duration;

use podium_app::front_door::Environments;
use podium_domain::On;
use podium_testkit::{Engine, TestApp, block_on, on_both_engines, role};
use serde_json::{Value, json};

use super::{Behind, cookies, port_and_target, signed_in, visit};

on_both_engines! {
    async fn a_link_opens_the_environment_once(app) {
        let behind = Behind::new(&app).await;
        let (port, target) = behind.link(&app, &app.owner).await;
        let entered = app.call("GET", &target).on_port(port).send().await;
        assert_eq!((entered.code(), entered.header("location")), (303, behind.at("/").as_str()));
        assert_eq!((entered.header("cache-control"), entered.header("referrer-policy")), ("no-store", "no-referrer"));
        let cookie = entered.header("set-cookie");
        let rest = cookie.split_once("; ").unwrap().1;
        assert_eq!(rest, "Path=/; HttpOnly; SameSite=Lax; Max-Age=28800; Secure");
        let again = app.call("GET", &target).on_port(port).send().await;
        assert!(again.refused(403).contains("used or has expired"));
        let pass = cookies(&entered)[&behind.pass_name()].clone();
        let inside = app.call("GET", &behind.at("/api/v2/dags")).on_port(port)
            .header("cookie", &format!("{}={pass}", behind.pass_name())).send().await;
        assert_eq!(inside.ok()["target"], behind.at("/api/v2/dags"));
        let home = app.call("GET", "/").on_port(port).send().await;
        assert_eq!((home.code(), home.header("location")), (303, behind.at("/").as_str()));
    }

    async fn a_link_ends_after_a_minute_and_is_for_one_environment(app) {
        let (one, other) = (Behind::new(&app).await, Behind::new(&app).await);
        let (_, target) = one.link(&app, &app.owner).await;
        let (port, _) = other.link(&app, &app.owner).await;
        let elsewhere = app.call("GET", &target).on_port(port).send().await;
        assert!(elsewhere.refused(403).contains("used or has expired"));
        let (port, target) = one.link(&app, &app.owner).await;
        app.advance(Duration::from_secs(60));
        app.call("GET", &target).on_port(port).send().await.refused(403);
        app.call("GET", "/.podium/enter?code=guessed").on_port(port).send().await.refused(403);
        app.call("GET", "/.podium/enter").on_port(port).send().await.refused(403);
        app.call("POST", &target).on_port(port).send().await.refused(405);
    }

    async fn opening_takes_the_right_to_see_the_pages(app) {
        let behind = Behind::new(&app).await;
        let path = app.path(&format!("/deployments/{}/open", behind.id));
        let viewer = behind.holder(&app, "viewer", vec![role(behind.on_dag("mine"), "DAG_VIEWER")]).await;
        assert!(app.post(&viewer, &path, json!({})).await.refused(403).contains("website.get"));
        let member = behind.holder(&app, "member", vec![role(On::Workspace(behind.workspace), "WORKSPACE_MEMBER")]).await;
        let url = app.post(&member, &path, json!({})).await.ok()["url"].as_str().unwrap().to_owned();
        let code = url.split("code=").nth(1).unwrap().split('&').next().unwrap();
        assert_eq!(code.len(), 43, "256 bits");
        assert!(!format!("{:?}", app.audit().await).contains(code));
    }

    async fn a_pass_has_the_current_rights_of_its_holder(app) {
        let behind = Behind::new(&app).await;
        let on = On::Workspace(behind.workspace);
        let ada = behind.holder(&app, "ada", vec![role(on.clone(), "WORKSPACE_AUTHOR")]).await;
        let session = app.session_of(&ada).await;
        let browser = behind.browser(&app, &session).await;
        let runs = behind.at("/api/v2/dags/a/dagRuns");
        browser.post(&runs).await.ok();
        let less = vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(on, "WORKSPACE_MEMBER")];
        app.set_grants(podium_store::grants::Subject::User, ada.id, less).await;
        browser.post(&runs).await.refused(403);
        assert_eq!(browser.get(&runs).await.code(), 200);
        let nothing = vec![role(On::Organization, "ORGANIZATION_MEMBER")];
        app.set_grants(podium_store::grants::Subject::User, ada.id, nothing).await;
        browser.get(&runs).await.refused(404);
    }

    async fn a_pass_ends_with_the_session_behind_it(app) {
        let behind = Behind::new(&app).await;
        let ada = behind.holder(&app, "ada", vec![role(On::Workspace(behind.workspace), "WORKSPACE_MEMBER")]).await;
        let session = app.session_of(&ada).await;
        let browser = behind.browser(&app, &session).await;
        assert_eq!(browser.get(&behind.at("/ui/auth/me")).await.code(), 200);
        assert_eq!(app.post(&session, "/v1/auth/sign-out", json!({})).await.code(), 204);
        assert!(browser.get(&behind.at("/ui/auth/me")).await.refused(401).contains("revoked"));
        let lasting = behind.browser(&app, &ada).await;
        assert_eq!(lasting.get(&behind.at("/")).await.code(), 200);
        app.advance(app.app.config.session);
        assert!(lasting.get(&behind.at("/")).await.refused(401).contains("expired"));
    }

    async fn whoever_leaves_has_left(app) {
        let behind = Behind::new(&app).await;
        let browser = behind.browser(&app, &app.owner).await;
        let sign_in = browser.get(&behind.at("/api/v2/auth/login?next=x")).await;
        assert_eq!((sign_in.code(), sign_in.header("location")), (303, behind.at("/").as_str()));
        let cross = browser.call("GET", &behind.at("/api/v2/auth/logout")).header("sec-fetch-site", "cross-site");
        cross.header("sec-fetch-mode", "navigate").send().await.refused(403);
        let out = browser.call("GET", &behind.at("/api/v2/auth/logout")).header("sec-fetch-site", "same-origin");
        let out = out.send().await;
        assert_eq!(out.code(), 200, "{}", out.text());
        assert!(out.header("set-cookie").contains("Max-Age=0"));
        let way = format!("https://podium.test/sign-in?to={}", behind.at("/"));
        assert!(out.text().contains("You are signed out") && out.text().contains(&way), "{}", out.text());
        browser.get(&behind.at("/")).await.refused(401);
        assert!(behind.environment.seen().is_empty());
    }

    async fn a_browser_without_a_pass_is_led_to_the_console_and_back(app) {
        let behind = Behind::new(&app).await;
        let (port, _) = behind.link(&app, &app.owner).await;
        let page = behind.at("/dags/a?tab=x&q=1%202");
        let lost = app.call("GET", &page).on_port(port).header("accept", "text/html").send().await;
        assert_eq!((lost.code(), lost.header("location")), (303, format!("https://podium.test{page}").as_str()));
        let console = app.call("GET", &page).header("accept", "text/html").send().await;
        let expected = "/sign-in?to=".to_owned() + &page.replace('%', "%25").replace('&', "%26");
        assert_eq!((console.code(), console.header("location")), (303, expected.as_str()));
        let known = visit(&app, &page, &signed_in(&app, &app.owner).await).await;
        assert_eq!(known.code(), 303);
        let (back, target) = port_and_target(known.header("location"));
        assert_eq!(back, port, "an environment keeps its port");
        let entered = app.call("GET", &target).on_port(port).send().await;
        assert_eq!((entered.code(), entered.header("location")), (303, page.as_str()));
        assert!(app.call("GET", &page).on_port(port).send().await.refused(401).contains("missing"), "a program is not led");
    }

    async fn the_beginning_of_an_environment_has_a_slash(app) {
        let behind = Behind::new(&app).await;
        let session = signed_in(&app, &app.owner).await;
        let browser = behind.browser_with(&app, &session).await;
        for (query, led_by) in [("", ""), ("?a=b&c=%20", "%3Fa%3Db%26c%3D%2520")] {
            let own = browser.get(&behind.at(query)).await;
            assert_eq!((own.code(), own.header("location")), (303, behind.at(&format!("/{query}")).as_str()));
            let stranger = app.call("GET", &behind.at(query)).on_port(browser.port).send().await;
            assert_eq!((stranger.code(), stranger.header("location")), (303, behind.at(&format!("/{query}")).as_str()));
            let head = browser.call("HEAD", &behind.at(query)).send().await;
            assert_eq!(head.header("location"), behind.at(&format!("/{query}")));
            // What `webServerUrl` says, clicked at the console.
            let console = visit(&app, &behind.at(query), &session).await;
            let (port, target) = port_and_target(console.header("location"));
            let to = target.split_once("&to=").unwrap().1;
            assert_eq!((port, to), (browser.port, format!("{}{led_by}", behind.at("/")).as_str()));
            let entered = app.call("GET", &target).on_port(port).send().await;
            assert_eq!(entered.header("location"), behind.at(&format!("/{query}")));
            let asked = visit(&app, &behind.at(query), "").await;
            assert!(asked.header("location").starts_with(&format!("/sign-in?to={}", behind.at("/"))));
        }
        let (port, target) = behind.link(&app, &app.owner).await;
        let bare = target.replace(&behind.at("/"), &behind.at(""));
        let entered = app.call("GET", &bare).on_port(port).send().await;
        assert_eq!(entered.header("location"), behind.at("/"));
        assert!(behind.environment.seen().is_empty(), "none of it came to Airflow");
    }

    async fn a_head_request_does_not_use_up_a_link(app) {
        let behind = Behind::new(&app).await;
        let (port, target) = behind.link(&app, &app.owner).await;
        let head = app.call("HEAD", &target).on_port(port).send().await;
        assert_eq!((head.code(), head.text().as_str(), head.header("set-cookie")), (200, "", ""));
        assert_eq!(app.call("GET", &target).on_port(port).send().await.code(), 303);
    }

    async fn a_token_works_at_the_environments_origin_too(app) {
        let behind = Behind::new(&app).await;
        let (port, _) = behind.link(&app, &app.owner).await;
        let told = app.call("GET", &behind.at("/api/v2/dags")).on_port(port).by(&app.owner).send().await.ok();
        assert_eq!(told["headers"]["host"], format!("podium.test:{port}"));
        assert_eq!(told["headers"]["x-forwarded-host"], format!("podium.test:{port}"));
        assert_eq!(told["headers"]["x-forwarded-proto"], "https");
        assert_eq!(told["headers"]["x-forwarded-for"], "127.0.0.1");
    }

    async fn what_has_ended_is_dropped(app) {
        let system = app.system;
        let behind = Behind::new(&app).await;
        behind.browser(&app, &app.owner).await;
        behind.link(&app, &app.owner).await;
        app.advance(Duration::from_hours(9));
        podium_app::maintenance::once(&app.app).await.unwrap();
        let left = move |conn: &podium_db::Conn| podium_store::front_door::ports(conn, &system);
        assert_eq!(app.app.db(&app.system).scan(None, left).await.unwrap().len(), 1, "a port stays with its deployment");
        let far = app.world.now() + Duration::from_hours(9);
        let codes = app.app.db(&app.system).write(None, move |tx| podium_store::front_door::prune_codes(tx, &system.housekeeper(), far, 100)).await;
        let passes = app.app.db(&app.system).write(None, move |tx| podium_store::front_door::prune_passes(tx, &system.housekeeper(), far, 100)).await;
        assert_eq!((codes.unwrap(), passes.unwrap()), (0, 0), "nothing was left to drop");
    }
}

#[test]
fn with_a_domain_every_environment_has_a_host_name() {
    block_on(async {
        let app = TestApp::start_with(Engine::Sqlite, |config, _| {
            config.environments = Environments::Domain("apps.podium.test".into());
        })
        .await;
        let behind = Behind::new(&app).await;
        let path = app.path(&format!("/deployments/{}/open", behind.id));
        let url = app.post(&app.owner, &path, json!({})).await.ok()["url"].as_str().unwrap().to_owned();
        let origin = format!("https://{}.apps.podium.test", behind.namespace);
        let target = url.strip_prefix(&origin).unwrap_or_else(|| panic!("{url}"));
        let host = format!("{}.Apps.podium.test:443", behind.namespace);
        let entered = app.call("GET", target).header("host", &host).send().await;
        let pass = cookies(&entered)[&behind.pass_name()].clone();
        let cookie = format!("{}={pass}", behind.pass_name());
        let told =
            app.call("GET", &behind.at("/api/v2/dags")).header("host", &host).header("cookie", &cookie);
        assert_eq!(told.send().await.ok()["headers"]["cookie"], Value::Null);
        let api = app.call("GET", "/v1/users/self").header("host", &host).by(&app.owner).send().await;
        api.refused(404);
        let other = app.call("GET", &behind.at("/")).header("host", "no-such-0000.apps.podium.test");
        other.header("cookie", &cookie).send().await.refused(404);
        assert!(
            app.call("GET", &behind.at("/api/v2/dags")).header("cookie", &cookie).send().await.code() == 401
        );
    });
}

#[test]
fn a_host_without_an_environment_answers_as_one_with_an_environment() {
    block_on(async {
        let app = TestApp::start_with(Engine::Sqlite, |config, _| {
            config.environments = Environments::Domain("apps.podium.test".into());
        })
        .await;
        let behind = Behind::new(&app).await;
        let nobody = "no-such-0000";
        let asked = [
            ("GET", "/", None),
            ("GET", "/other", None),
            ("GET", "/airflow/{}", None),
            ("GET", "/airflow/{}/", None),
            ("GET", "/airflow/{}/", Some(("accept", "text/html"))),
            ("POST", "/airflow/{}/api/v2/dags", None),
            ("GET", "/airflow/{}/api/v2/dags", Some(("cookie", "{pass}=guessed"))),
            ("GET", "/airflow/{}/api/v2/auth/logout", Some(("cookie", "{pass}=guessed"))),
            ("GET", "/airflow/{}/api/v2/dags", Some(("authorization", "Bearer guessed"))),
            ("GET", "/airflow/other-0000/", None),
            ("GET", "/.podium/enter", None),
            ("GET", "/.podium/enter?code=guessed", None),
            ("HEAD", "/.podium/enter?code=guessed", None),
            ("POST", "/.podium/enter?code=guessed", None),
        ];
        let name = behind.pass_name().replace(&behind.namespace, "{}");
        for (method, path, header) in asked {
            let mut answers = Vec::new();
            for namespace in [behind.namespace.as_str(), nobody] {
                let host = format!("{namespace}.apps.podium.test");
                let mut call = app.call(method, &path.replace("{}", namespace)).header("host", &host);
                if let Some((header, value)) = header {
                    let value = value.replace("{pass}", &name).replace("{}", namespace);
                    call = call.header(header, &value);
                }
                let answer = call.send().await;
                let told = format!("{} {} {}", answer.code(), answer.header("location"), answer.text());
                answers.push(told.replace(namespace, "{}").replace(answer.header("x-request-id"), ""));
            }
            assert_eq!(answers[0], answers[1], "{method} {path} {header:?}");
        }
        assert!(behind.environment.seen().is_empty());
    });
}

#[test]
fn a_pass_is_invalid_on_every_replica_once_its_session_has_ended() {
    block_on(async {
        let app = TestApp::start(Engine::Postgres).await;
        let behind = Behind::new(&app).await;
        let ada =
            behind.holder(&app, "ada", vec![role(On::Workspace(behind.workspace), "WORKSPACE_MEMBER")]).await;
        let session = app.session_of(&ada).await;
        let browser = behind.browser(&app, &session).await;
        let replica = app.replica().await;
        let there = || {
            replica
                .call("GET", &behind.at("/ui/auth/me"))
                .on_port(browser.port)
                .header("cookie", &browser.cookie)
                .send()
        };
        assert_eq!(there().await.code(), 200);
        app.set_grants(
            podium_store::grants::Subject::User,
            ada.id,
            vec![role(On::Organization, "ORGANIZATION_MEMBER")],
        )
        .await;
        there().await.refused(404);
        assert_eq!(app.post(&session, "/v1/auth/sign-out", json!({})).await.code(), 204);
        there().await.refused(401);
    });
}
