//! A hostile page inside an environment, and a hostile environment: neither gets near the console, or near another
//! environment.

use podium_testkit::on_one_engine;
use serde_json::{Value, json};

use super::{Behind, SESSION, signed_in};

on_one_engine! {
    async fn nothing_of_the_control_plane_is_sent_to_an_environment(app) {
        let behind = Behind::new(&app).await;
        let browser = behind.browser(&app, &app.owner).await;
        let all = format!("{}; {SESSION}={}; podium_session=x; session=flask; theme=dark; PODIUM_x=y",
            browser.cookie, app.owner.token);
        let told = app.call("GET", &behind.at("/api/v2/dags")).on_port(browser.port)
            .header("cookie", &all)
            .header("x-forwarded-for", "10.0.0.1").header("x-forwarded-user", "admin").header("forwarded", "for=1")
            .header("x-real-ip", "10.0.0.1").header("x-podium-user", "admin").header("x_forwarded_for", "1")
            .header("connection", "x-secret, close").header("x-secret", "1").header("te", "trailers")
            .header("x-own", "kept").send().await.ok();
        let headers = &told["headers"];
        assert_eq!(headers["cookie"], "session=flask; theme=dark");
        assert_eq!((&headers["x-forwarded-for"], &headers["x-own"]), (&json!("127.0.0.1"), &json!("kept")));
        for gone in ["x-forwarded-user", "forwarded", "x-real-ip", "x-podium-user", "x_forwarded_for", "x-secret", "te"] {
            assert_eq!(headers[gone], Value::Null, "{gone}");
        }
        assert!(!told.to_string().contains(&app.owner.token));
        let by_token = app.call("GET", &behind.at("/api/v2/dags")).by(&app.owner).header("cookie", &all).send().await;
        assert!(!by_token.text().contains(&app.owner.token));
    }

    async fn an_environment_cannot_speak_for_the_control_plane(app) {
        let behind = Behind::new(&app).await;
        let browser = behind.browser(&app, &app.owner).await;
        let location = format!("http://{}/airflow/x", behind.environment.address);
        behind.environment.send_headers(&[
            ("set-cookie", "podium_session=evil; Path=/"), ("set-cookie", "__Host-podium_session=evil; Path=/; Secure"),
            ("set-cookie", "a=b; Domain=podium.test"), ("set-cookie", "session=own; Path=/; HttpOnly"),
            ("access-control-allow-origin", "*"), ("access-control-allow-credentials", "true"),
            ("strict-transport-security", "max-age=1"), ("clear-site-data", "\"*\""), ("service-worker-allowed", "/"),
            ("alt-svc", "h2=\"evil.example:443\""), ("location", &location), ("x-own", "kept"),
        ]);
        let gone = ["access-control-allow-origin", "access-control-allow-credentials", "strict-transport-security",
            "clear-site-data", "service-worker-allowed", "alt-svc"];
        let own = browser.get(&behind.at("/")).await;
        let set: Vec<_> = own.headers.get_all("set-cookie").iter().collect();
        assert_eq!(set, [&format!("session=own; HttpOnly; Path=/airflow/{}", behind.namespace)]);
        assert_eq!((own.header("location"), own.header("x-own")), ("/airflow/x", "kept"));
        assert_eq!(own.header("content-security-policy"), "frame-ancestors 'self'");
        let in_place = app.get(&app.owner, &behind.at("/")).await;
        assert_eq!((in_place.header("content-security-policy"), in_place.header("x-content-type-options")),
            ("sandbox", "nosniff"));
        assert_eq!(in_place.header("set-cookie"), "");
        for name in gone {
            assert_eq!((own.header(name), in_place.header(name)), ("", ""), "{name}");
        }
    }

    async fn a_page_cannot_use_the_console_with_its_visitors_cookies(app) {
        let behind = Behind::new(&app).await;
        let browser = behind.browser(&app, &app.owner).await;
        let cookie = format!("{}; {}", signed_in(&app, &app.owner).await, browser.cookie);
        let api = app.call("GET", "/v1/users/self").header("cookie", &cookie).send().await;
        assert!(api.refused(401).contains("missing"), "the API takes tokens, not cookies");
        let fetched = app.call("GET", &behind.at("/")).header("cookie", &cookie).header("accept", "text/html")
            .header("sec-fetch-mode", "no-cors").header("sec-fetch-dest", "image").send().await;
        assert_eq!(fetched.code(), 401);
        let form = app.call("POST", "/sign-in").header("cookie", &cookie).header("origin", &browser.origin())
            .body("token=x").send().await;
        assert_eq!(form.code(), 403);
        let api_there = browser.call("GET", "/v1/users/self").by(&app.owner).send().await;
        api_there.refused(404);
        let page_there = browser.get("/sign-in").await;
        page_there.refused(404);
    }

    async fn a_page_of_one_environment_cannot_use_another(app) {
        let (one, other) = (Behind::new(&app).await, Behind::new(&app).await);
        let (at_one, at_other) = (one.browser(&app, &app.owner).await, other.browser(&app, &app.owner).await);
        let cookie = format!("{}; {}", at_one.cookie, at_other.cookie);
        let runs = other.at("/api/v2/dags/a/dagRuns");
        let post = app.call("POST", &runs).on_port(at_other.port).header("cookie", &cookie);
        post.header("origin", &at_one.origin()).json(&json!({})).send().await.refused(403);
        let post = app.call("POST", &runs).on_port(at_other.port).header("cookie", &cookie);
        post.json(&json!({})).send().await.refused(403);
        let read = app.call("GET", &runs).on_port(at_other.port).header("cookie", &cookie);
        read.header("sec-fetch-site", "same-site").header("sec-fetch-mode", "cors").send().await.refused(403);
        let through = app.call("GET", &other.at("/")).on_port(at_one.port).header("cookie", &cookie).send().await;
        through.refused(404);
        let swapped = at_one.cookie.replace(&one.pass_name(), &other.pass_name());
        let foreign = app.call("GET", &other.at("/")).on_port(at_other.port).header("cookie", &swapped).send().await;
        assert!(foreign.refused(401).contains("revoked"));
        assert!(other.environment.seen().is_empty());
        at_other.post(&runs).await.ok();
    }

    async fn a_link_leads_nowhere_else(app) {
        let behind = Behind::new(&app).await;
        for to in ["https://evil.example/", "//evil.example", "/%5Cevil.example", "/airflow/other/", "javascript:x", ""] {
            let (port, target) = behind.link(&app, &app.owner).await;
            let link = format!("{}&to={to}", target.split("&to=").next().unwrap());
            let entered = app.call("GET", &link).on_port(port).send().await;
            assert_eq!((entered.code(), entered.header("location")), (303, behind.at("/").as_str()), "{to}");
        }
    }

    async fn paths_that_can_be_read_in_two_ways_are_refused(app) {
        let behind = Behind::new(&app).await;
        for path in [
            "/api/v2/../../execution/x", "/api/v2/%2e%2e/%2e%2e/execution/x", "//api/v2/dags", "/api/v2//dags",
            "/api/v2/dags/a%2f..%2fb", "/api/v2/dags/a%5cb", "/api/v2/dags;x=y", "/api/v2/dags/%252e%252e",
            "/api/v2/dags/a%00", "/api/v2/dags/%", "/./api/v2/dags",
        ] {
            let answer = app.get(&app.owner, &behind.at(path)).await;
            assert!(answer.refused(400).contains("cannot be forwarded"), "{path}");
        }
        for path in ["/%65xecution/health", "/AUTH/token", "/api/v2/dags/", "/API/v2/dags"] {
            app.get(&app.owner, &behind.at(path)).await.refused(403);
        }
        assert!(behind.environment.seen().is_empty());
        let told = app.get(&app.owner, &behind.at("/%61pi/v2/dags/my%2Edag")).await.ok();
        assert_eq!(told["target"], behind.at("/api/v2/dags/my.dag"), "what is judged is what is sent");
    }
}
