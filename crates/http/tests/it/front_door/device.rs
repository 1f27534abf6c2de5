//! Signing in a terminal with a browser: who approves what, and what others cannot do with its codes.

use std::time::Duration;

use podium_testkit::{Actor, Answer, Engine, TestApp, block_on, on_both_engines};
use serde_json::{Value, json};

use super::{signed_in, visit};
use crate::auth::sessions::end_browsers;

const ORIGIN: &str = "https://podium.test";
const PAGE: &str = "/sign-in/device";

struct Terminal {
    device_code: String,
    user_code: String,
}

impl Terminal {
    async fn at(app: &TestApp, address: &str) -> Self {
        let started = ask(app, address).await.ok();
        let text = |field: &str| started[field].as_str().unwrap().to_owned();
        Self { device_code: text("deviceCode"), user_code: text("userCode") }
    }

    async fn poll(&self, app: &TestApp) -> Answer {
        let call = app.call("POST", "/v1/auth/device/finish").from("192.0.2.1");
        call.json(&json!({ "deviceCode": self.device_code })).send().await
    }

    async fn status(&self, app: &TestApp) -> Value {
        self.poll(app).await.ok()["status"].clone()
    }

    fn page(&self) -> String {
        format!("{PAGE}?code={}", self.user_code)
    }

    fn form(&self, token: &str, decision: &str) -> String {
        format!("code={}&form-token={token}&decision={decision}", self.user_code)
    }
}

async fn ask(app: &TestApp, address: &str) -> Answer {
    let call = app.call("POST", "/v1/auth/device/start").from(address).header("user-agent", "podium/1");
    call.json(&json!({ "clientName": "ada@desk" })).send().await
}

async fn decide(app: &TestApp, cookie: &str, form: String) -> Answer {
    app.call("POST", PAGE).header("origin", ORIGIN).header("cookie", cookie).body(form).send().await
}

fn form_token(page: &str) -> String {
    let after = page.split("name=\"form-token\" value=\"").nth(1);
    after.and_then(|rest| rest.split('"').next()).unwrap_or_else(|| panic!("no token in {page}")).to_owned()
}

/// Opens the page of a terminal and sends its form.
async fn decided(app: &TestApp, cookie: &str, terminal: &Terminal, decision: &str) -> Answer {
    let page = visit(app, &terminal.page(), cookie).await;
    decide(app, cookie, terminal.form(&form_token(&page.text()), decision)).await
}

on_both_engines! {
    async fn a_person_approves_a_terminal_and_it_acts_for_that_person(app) {
        let terminal = Terminal::at(&app, "192.0.2.1").await;
        assert_eq!(terminal.status(&app).await, "PENDING");
        let stranger = app.call("GET", &terminal.page()).header("accept", "text/html").header("sec-fetch-site", "none").send().await;
        assert_eq!((stranger.code(), stranger.header("location")), (303, format!("/sign-in?to={}", terminal.page()).as_str()));
        let ada = app.member("ada").await;
        let cookie = signed_in(&app, &ada).await;
        app.advance(Duration::from_secs(130));
        let page = visit(&app, &terminal.page(), &cookie).await;
        for text in ["ada@desk", "podium/1", "192.0.2.1", "(2 minutes ago)", "ada@podium.test", "8 hours", &terminal.user_code] {
            assert!(page.text().contains(text), "{text}: {}", page.text());
        }
        assert!(page.header("content-security-policy").contains("frame-ancestors 'none'"));
        assert_eq!((terminal.status(&app).await, page.header("cache-control")), (json!("PENDING"), "no-store"));
        let before = app.audit().await.len();
        let done = decided(&app, &cookie, &terminal, "APPROVE").await;
        assert!(done.code() == 200 && done.text().contains("The terminal will be signed in"), "{}", done.text());
        let progress = terminal.poll(&app).await.ok();
        assert_eq!((&progress["status"], &progress["session"]["userId"]), (&json!("APPROVED"), &json!(ada.id)));
        let token = progress["session"]["token"].as_str().unwrap().to_owned();
        let self_user = app.get(&Actor { id: ada.id, token }, "/v1/users/self").await.ok();
        assert_eq!(self_user["username"], "ada@podium.test");
        terminal.poll(&app).await.refused(404);
        let told: Vec<(Value, Value, Value)> = app.audit().await.split_off(before).into_iter()
            .map(|of| (of["operationId"].clone(), of["path"].clone(), of["subjectId"].clone())).collect();
        let id = json!(ada.id);
        assert_eq!(told, [
            (json!("DecideDeviceSignIn"), json!("/auth/device/decide"), id.clone()),
            (json!("SignIn"), json!("/v1/auth/device/finish"), id),
        ]);
    }

    async fn a_terminal_that_is_denied_gets_nothing(app) {
        let terminal = Terminal::at(&app, "192.0.2.1").await;
        let cookie = signed_in(&app, &app.owner).await;
        let done = decided(&app, &cookie, &terminal, "DENY").await;
        assert!(done.text().contains("The sign-in was denied"), "{}", done.text());
        let progress = terminal.poll(&app).await.ok();
        assert_eq!(progress, json!({ "status": "DENIED" }));
        let again = json!({ "userCode": terminal.user_code, "decision": "APPROVE" });
        app.post(&app.owner, "/v1/auth/device/decide", again).await.refused(404);
        assert_eq!(terminal.status(&app).await, "DENIED", "what was denied stays denied");
    }

    async fn a_forged_form_approves_nothing(app) {
        let (own, foreign) = (Terminal::at(&app, "192.0.2.1").await, Terminal::at(&app, "198.51.100.9").await);
        let victim = signed_in(&app, &app.owner).await;
        let attacker = signed_in(&app, &app.member("eve").await).await;
        let token = form_token(&visit(&app, &own.page(), &victim).await.text());
        let theirs = form_token(&visit(&app, &foreign.page(), &attacker).await.text());
        for (origin, token) in [("https://evil.test", token.as_str()), ("null", &token), (ORIGIN, &token), (ORIGIN, &theirs), (ORIGIN, "")] {
            let call = app.call("POST", PAGE).header("origin", origin).header("cookie", &victim);
            let answer = call.body(foreign.form(token, "APPROVE")).send().await;
            assert_eq!(answer.code(), 403, "{origin} {token}: {}", answer.text());
        }
        let by_link = visit(&app, &format!("{}&decision=APPROVE&form-token={theirs}", foreign.page()), &victim).await;
        assert!(by_link.code() == 200 && by_link.text().contains("Sign in this terminal?"), "a link decides nothing");
        let framed = app.call("GET", &foreign.page()).header("cookie", &victim).header("sec-fetch-site", "cross-site")
            .header("sec-fetch-mode", "navigate").header("sec-fetch-dest", "iframe").send().await;
        assert_eq!(framed.code(), 403);
        let without = app.call("POST", PAGE).header("origin", ORIGIN).body(foreign.form(&theirs, "APPROVE")).send().await;
        assert_eq!(without.header("location"), "/sign-in?to=/sign-in/device");
        assert_eq!(foreign.status(&app).await, "PENDING");
        assert_eq!(decide(&app, &victim, own.form(&token, "PERHAPS")).await.code(), 400);
        assert_eq!(own.status(&app).await, "PENDING");
    }

    async fn an_approval_that_arrives_after_its_session_has_ended_is_worth_nothing(app) {
        let cookie = signed_in(&app, &app.owner).await;
        let terminal = Terminal::at(&app, "192.0.2.1").await;
        let token = form_token(&visit(&app, &terminal.page(), &cookie).await.text());
        let call = app.call("POST", PAGE).header("origin", ORIGIN).header("cookie", &cookie);
        let call = call.body(terminal.form(&token, "APPROVE"));
        let answer = call.send_with_delayed_body(end_browsers(&app, &app.owner)).await;
        assert_eq!(answer.code(), 401, "{}", answer.text());
        assert_eq!(terminal.status(&app).await, "PENDING");
    }

    async fn a_terminal_keeps_its_name_when_its_session_is_renewed(app) {
        let cookie = signed_in(&app, &app.owner).await;
        let terminal = Terminal::at(&app, "192.0.2.1").await;
        decided(&app, &cookie, &terminal, "APPROVE").await;
        let mut by = app.owner.clone();
        by.token = terminal.poll(&app).await.ok()["session"]["token"].as_str().unwrap().to_owned();
        by.token = app.post(&by, "/v1/auth/renew", json!({})).await.ok()["token"].as_str().unwrap().to_owned();
        let listed = app.get(&by, "/v1/auth/sessions").await.ok();
        let named = listed["sessions"].as_array().unwrap().iter().find(|session| session["isCurrent"] == true);
        assert_eq!(named.unwrap()["clientName"], "ada@desk");
    }

    async fn what_has_expired_is_worth_nothing(app) {
        let cookie = signed_in(&app, &app.owner).await;
        let (waiting, approved) = (Terminal::at(&app, "192.0.2.1").await, Terminal::at(&app, "192.0.2.1").await);
        let token = form_token(&visit(&app, &waiting.page(), &cookie).await.text());
        decided(&app, &cookie, &approved, "APPROVE").await;
        app.advance(Duration::from_mins(10));
        for terminal in [&waiting, &approved] {
            terminal.poll(&app).await.refused(404);
        }
        assert_eq!(decide(&app, &cookie, waiting.form(&token, "APPROVE")).await.code(), 404);
        let page = visit(&app, &waiting.page(), &cookie).await;
        assert!(page.code() == 404 && page.text().contains("No terminal is waiting with this code"), "{}", page.text());
        app.advance(Duration::from_secs(1));
        podium_app::maintenance::once(&app.app).await.unwrap();
        let (system, far) = (app.system, app.world.now() + Duration::from_hours(1));
        let left = app.app.db(&app.system).write(None, move |tx| podium_store::device_sign_ins::prune(tx, &system.housekeeper(), far, 100)).await.unwrap();
        assert_eq!(left, 0, "nothing was left to drop");
    }

    async fn an_approval_in_the_last_second_is_fetched_in_time(app) {
        let terminal = Terminal::at(&app, "192.0.2.1").await;
        let cookie = signed_in(&app, &app.owner).await;
        app.advance(Duration::from_secs(599));
        decided(&app, &cookie, &terminal, "APPROVE").await;
        let late = Terminal::at(&app, "192.0.2.1").await;
        app.advance(Duration::from_secs(29));
        assert_eq!(terminal.status(&app).await, "APPROVED");
        app.advance(Duration::from_secs(570));
        decided(&app, &cookie, &late, "APPROVE").await;
        app.advance(Duration::from_secs(31));
        late.poll(&app).await.refused(404);
    }

    async fn an_approval_ends_with_the_session_that_gave_it(app) {
        let terminal = Terminal::at(&app, "192.0.2.1").await;
        let ada = app.session_of(&app.member("ada").await).await;
        app.post(&ada, "/v1/auth/device/decide", json!({ "userCode": terminal.user_code, "decision": "APPROVE" })).await.ok();
        app.post(&ada, "/v1/auth/sign-out", json!({})).await.ok();
        terminal.poll(&app).await.refused(404);
        terminal.poll(&app).await.refused(404);
    }

    async fn an_approval_is_forgotten_when_its_giver_signs_out_changes_the_password_or_is_removed(app) {
        let ada = app.member("ada").await;
        let cookie = signed_in(&app, &ada).await;
        let terminal = Terminal::at(&app, "192.0.2.1").await;
        decided(&app, &cookie, &terminal, "APPROVE").await;
        let out = app.call("POST", "/sign-out").header("origin", ORIGIN).header("cookie", &cookie).send().await;
        assert!(out.code() < 400, "{}", out.text());
        terminal.poll(&app).await.refused(404);

        let session = app.session_of(&ada).await;
        let approve = async |terminal: &Terminal| {
            let body = json!({ "userCode": terminal.user_code, "decision": "APPROVE" });
            app.post(&session, "/v1/auth/device/decide", body).await.ok();
        };
        let terminal = Terminal::at(&app, "192.0.2.1").await;
        approve(&terminal).await;
        let body = json!({ "currentPassword": "", "newPassword": "correct horse battery staple" });
        app.post(&session, "/v1/auth/change-password", body).await.ok();
        terminal.poll(&app).await.refused(404);

        let terminal = Terminal::at(&app, "192.0.2.1").await;
        approve(&terminal).await;
        let roles = app.path(&format!("/users/{}/roles", ada.id));
        app.post(&app.owner, &roles, json!({ "organizationRole": null })).await.ok();
        terminal.poll(&app).await.refused(404);
    }

    async fn a_terminal_gets_in_although_others_at_its_address_guess(app) {
        let terminal = Terminal::at(&app, "192.0.2.1").await;
        for number in 0..60 {
            let guess = json!({ "deviceCode": format!("guess {number}") });
            app.call("POST", "/v1/auth/device/finish").from("192.0.2.1").json(&guess).send().await;
        }
        assert_eq!(terminal.status(&app).await, "PENDING");
    }

    async fn guesses_are_slowed_down_and_not_those_of_others(app) {
        let terminal = Terminal::at(&app, "192.0.2.1").await;
        let (eve, ada) = (app.member("eve").await, app.member("ada").await);
        let guess = async |by: &Actor, code: &str, address: &str| {
            let body = json!({ "userCode": code, "decision": "APPROVE" });
            app.call("POST", "/v1/auth/device/decide").by(by).from(address).json(&body).send().await.code()
        };
        let mut answers = Vec::new();
        for letter in ["B", "C", "D", "F", "G", "H", "J", "K"] {
            answers.push(guess(&eve, &letter.repeat(8), "198.51.100.1").await);
        }
        assert_eq!(answers, [404, 404, 404, 404, 404, 404, 429, 429]);
        assert_eq!(guess(&eve, &terminal.user_code, "198.51.100.1").await, 429, "nor is the right one taken");
        let cookie = signed_in(&app, &eve).await;
        let page = app.call("GET", &terminal.page()).header("cookie", &cookie).from("198.51.100.1").send().await;
        assert_eq!(page.code(), 429, "the page is no way around it");
        assert_eq!(guess(&eve, "not a code", "198.51.100.2").await, 400);
        assert_eq!(guess(&ada, &terminal.user_code.to_lowercase().replace('-', " "), "198.51.100.1").await, 204);
        let finish = async |code: &str| {
            let call = app.call("POST", "/v1/auth/device/finish").from("203.0.113.1");
            call.json(&json!({ "deviceCode": code })).send().await.code()
        };
        let mut refused = 0;
        for number in 0..60 {
            refused += u32::from(finish(&format!("guess {number}")).await == 429);
        }
        assert!(refused > 0, "an address that guesses at secrets waits");
    }

    async fn one_address_keeps_so_many_open_and_no_more(app) {
        for _ in 0..20 {
            Terminal::at(&app, "2001:db8::1").await;
        }
        let refused = ask(&app, "2001:db8::2").await;
        assert_eq!((refused.code(), refused.header("retry-after")), (429, "600"), "one network is one address");
        let elsewhere = Terminal::at(&app, "192.0.2.1").await;
        assert_eq!(elsewhere.status(&app).await, "PENDING");
        app.advance(Duration::from_mins(10));
        Terminal::at(&app, "2001:db8::1").await;
    }

    async fn one_site_keeps_so_many_open_and_what_is_decided_does_not_count(app) {
        let at = |network: u32, host: u32| format!("2001:db8:1:{network:x}::{host:x}");
        let mut last = Vec::new();
        for network in 0..5 {
            for host in 0..20 {
                last.push(Terminal::at(&app, &at(network, host)).await);
            }
        }
        assert_eq!(ask(&app, &at(5, 1)).await.code(), 429, "many networks of one site are one customer");
        Terminal::at(&app, "2001:db8:2::1").await;
        let decide = json!({ "userCode": last[0].user_code, "decision": "DENY" });
        app.post(&app.owner, "/v1/auth/device/decide", decide).await.ok();
        Terminal::at(&app, &at(5, 1)).await;
        assert_eq!(ask(&app, &at(6, 1)).await.code(), 429);
    }

    async fn an_api_token_is_no_person(app) {
        let body = json!({ "name": "ci", "scope": "ORGANIZATION", "role": "ORGANIZATION_OWNER" });
        let made = app.post(&app.owner, &app.path("/tokens"), body).await.ok();
        let token = Actor { id: made["id"].as_str().unwrap().parse().unwrap(), token: made["token"].as_str().unwrap().to_owned() };
        let terminal = Terminal::at(&app, "192.0.2.1").await;
        let cookie = signed_in(&app, &token).await;
        assert_eq!(visit(&app, &terminal.page(), &cookie).await.code(), 403);
        let decide = json!({ "userCode": terminal.user_code, "decision": "APPROVE" });
        app.post(&token, "/v1/auth/device/decide", decide).await.refused(403);
        assert_eq!(terminal.status(&app).await, "PENDING");
    }

    async fn what_a_terminal_calls_itself_stays_text(app) {
        let call = app.call("POST", "/v1/auth/device/start").header("user-agent", "{{form-token}}");
        let started = call.json(&json!({ "clientName": "<script>alert(1)</script>" })).send().await.ok();
        let cookie = signed_in(&app, &app.owner).await;
        let path = format!("{PAGE}?code={}", started["userCode"].as_str().unwrap());
        let page = visit(&app, &path, &cookie).await.text();
        assert!(!page.contains("<script>") && page.contains("&#60;script&#62;") && page.contains("{{form-token}}"), "{page}");
        let stored = started["deviceCode"].as_str().unwrap();
        let hash = podium_app::secrets::sha256_hex(stored.as_bytes());
        let body = json!({ "deviceCode": hash });
        app.call("POST", "/v1/auth/device/finish").json(&body).send().await.refused(404);
    }
}

#[test]
fn each_step_may_happen_at_another_replica() {
    block_on(async {
        let first = TestApp::start(Engine::Postgres).await;
        let second = first.replica().await;
        let terminal = Terminal::at(&first, "192.0.2.1").await;
        let cookie = signed_in(&first, &first.owner).await;
        assert_eq!(terminal.status(&second).await, "PENDING");
        decided(&second, &cookie, &terminal, "APPROVE").await;
        let (here, there) = tokio::join!(terminal.poll(&first), terminal.poll(&second));
        let mut codes = [here.code(), there.code()];
        codes.sort_unstable();
        assert_eq!(codes, [200, 404], "of two who ask at once, one gets the session");
    });
}
