//! Rights that are revoked while they are used: a body that is delayed until its sender was removed, and owners who
//! remove each other at the same moment.

use std::io::{Read as _, Write as _};
use std::sync::Barrier;

use podium_testkit::Engine;
use serde_json::{Value, json};

use super::strength;
use crate::program::{Installation, Program, read_reply};

/// A new API token that may do everything: its path and its value.
fn owner(program: &Program, organization: &str, by: &str, name: &str) -> (String, String) {
    let body = json!({ "name": name, "scope": "ORGANIZATION", "role": "ORGANIZATION_OWNER" });
    let made = program.call("POST", &format!("{organization}/tokens"), by, Some(&body));
    assert_eq!(made.status, 200, "{:?}", made.json());
    let made = made.json();
    let text = |field: &str| made[field].as_str().expect("a new token shows it").to_owned();
    (format!("{organization}/tokens/{}", text("id")), text("token"))
}

/// Sends a head, waits until the server asks for the body, does something else, and sends the body: the status.
fn held_back(program: &Program, path: &str, token: &str, body: &Value, meanwhile: impl FnOnce()) -> u16 {
    let body = body.to_string();
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: podium\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nExpect: 100-continue\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = program.connect();
    stream.write_all(head.as_bytes()).expect("the head is sent");
    let mut asked = [0; 25];
    stream.read_exact(&mut asked).expect("the server asks for the body");
    assert_eq!(&asked[..], b"HTTP/1.1 100 Continue\r\n\r\n");
    meanwhile();
    stream.write_all(body.as_bytes()).expect("the body is sent");
    read_reply(stream).status
}

fn hold_bodies_back(engine: Engine) {
    let installation = Installation::on(engine);
    let program = installation.serve(&["--log", "error", "--rate-limits", "off"]);
    let token = installation.read("owner-token");
    let (token, organization) = (token.trim(), program.organization(token.trim()));
    for round in 0..strength(2, 50) {
        let (path, thrown_out) = owner(&program, &organization, token, &format!("thrown out {round}"));
        let left_behind = format!("left behind {round}");
        let body = json!({ "name": left_behind, "scope": "ORGANIZATION", "role": "ORGANIZATION_OWNER" });
        let status = held_back(&program, &format!("{organization}/tokens"), &thrown_out, &body, || {
            assert_eq!(program.call("DELETE", &path, token, None).status, 204);
        });
        assert_eq!(status, 401, "round {round}");
        let tokens = program.get(&format!("{organization}/tokens"), token).json();
        assert!(!tokens.to_string().contains(&left_behind), "round {round}");
    }
    program.stop();
}

fn throw_each_other_out(engine: Engine) {
    let installation = Installation::on(engine);
    let program = installation.serve(&["--log", "error", "--rate-limits", "off"]);
    let token = installation.read("owner-token");
    let (token, organization) = (token.trim(), program.organization(token.trim()));
    for round in 0..strength(10, 200) {
        let rivals = ["a", "b"].map(|name| owner(&program, &organization, token, &format!("{name} {round}")));
        let start = Barrier::new(2);
        let strike = &|by: usize| {
            start.wait();
            program.call("DELETE", &rivals[1 - by].0, &rivals[by].1, None).status
        };
        let mut statuses = std::thread::scope(|scope| {
            let [one, other] = [0, 1].map(|by| scope.spawn(move || strike(by)));
            [one.join().unwrap(), other.join().unwrap()]
        });
        statuses.sort_unstable();
        assert_eq!(statuses, [204, 401], "round {round}");
    }
    program.stop();
}

#[test]
fn a_delayed_body_has_no_effect_once_its_sender_is_removed_on_sqlite() {
    hold_bodies_back(Engine::Sqlite);
}

#[test]
fn a_delayed_body_has_no_effect_once_its_sender_is_removed_on_postgres() {
    hold_bodies_back(Engine::Postgres);
}

#[test]
fn of_two_callers_who_remove_each_other_one_stays_on_sqlite() {
    throw_each_other_out(Engine::Sqlite);
}

#[test]
fn of_two_callers_who_remove_each_other_one_stays_on_postgres() {
    throw_each_other_out(Engine::Postgres);
}
