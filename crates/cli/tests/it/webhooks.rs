//! Webhooks of the served program: what was acknowledged arrives, also after the program was killed.

use podium_testkit::{Engine, Receiver, block_on};
use serde_json::json;

use crate::program::Installation;

/// A short lease, so that what a killed program was doing is soon done by the next.
const OPTIONS: &[&str] = &["--webhook-allow", "127.0.0.1/32", "--lease", "3"];

fn an_event_arrives_although_the_program_is_killed_while_it_sends_it(engine: Engine) {
    let installation = Installation::on(engine);
    block_on(async {
        let receiver = Receiver::start().await;
        receiver.hang();
        let mut program = installation.serve(OPTIONS);
        let token = installation.read("owner-token");
        let organization = program.organization(&token);
        let create = |what: &str, body| {
            program.call("POST", &format!("{organization}/{what}"), &token, Some(&body)).json()
        };
        let types = ["podium.team.created"];
        let webhook =
            create("webhooks", json!({ "name": "Chat", "url": receiver.url(), "eventTypes": types }));
        create("teams", json!({ "name": "While it runs" }));
        receiver.wait_for(1).await;
        create("teams", json!({ "name": "Just before the end" }));
        program.crash();
        let program = installation.serve(OPTIONS);
        let received = receiver.wait_for(3).await;
        let secret = webhook["secret"].as_str().unwrap();
        assert!(received.iter().all(|one| one.is_signed_with(secret)));
        let mut names: Vec<String> =
            received.iter().map(|one| one.event()["data"]["resource"]["name"].to_string()).collect();
        names.sort();
        names.dedup();
        assert_eq!(names, ["\"Just before the end\"", "\"While it runs\""]);
        program.stop();
    });
}

#[test]
fn an_event_survives_a_kill_on_sqlite() {
    an_event_arrives_although_the_program_is_killed_while_it_sends_it(Engine::Sqlite);
}

#[test]
fn an_event_survives_a_kill_on_postgres() {
    an_event_arrives_although_the_program_is_killed_while_it_sends_it(Engine::Postgres);
}
