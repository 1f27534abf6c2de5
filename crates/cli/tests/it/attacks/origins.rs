//! Pages of environments that are gone, which may still be open in a browser.

use std::net::TcpListener;

use podium_testkit::Engine;
use serde_json::json;

use super::authors::free_ports;
use super::strength;
use crate::program::{Installation, Program};

const PORTS: u16 = 3;

/// The port at which an environment is opened that exists only for this moment.
fn port_of_another(program: &Program, token: &str) -> u16 {
    let organization = program.organization(token);
    let workspaces = program.get(&format!("{organization}/workspaces"), token).json();
    let body = json!({ "name": "Reports", "workspaceId": workspaces["workspaces"][0]["id"] });
    let made = program.call("POST", &format!("{organization}/deployments"), token, Some(&body)).json();
    let path = format!("{organization}/deployments/{}", made["id"].as_str().expect("an id"));
    let opened = program.call("POST", &format!("{path}/open"), token, Some(&json!({}))).json();
    let deleted = program.call("DELETE", &path, token, None);
    assert_eq!(deleted.status, 204);
    let origin = opened["url"].as_str().and_then(|url| url.strip_prefix("http://127.0.0.2:"));
    let port = origin.and_then(|rest| rest.split_once('/')).and_then(|(port, _)| port.parse().ok());
    port.unwrap_or_else(|| panic!("no port: {opened}"))
}

#[test]
fn an_environment_does_not_get_the_origin_of_one_that_was_just_deleted() {
    let is_free = |port: u16| TcpListener::bind(("127.0.0.2", port)).is_ok();
    let first = free_ports().find(|port| (*port..*port + PORTS).all(is_free)).expect("some ports are free");
    for engine in [Engine::Sqlite, Engine::Postgres] {
        let mut installation = Installation::on(engine);
        installation.set("PODIUM_ENVIRONMENT_PORTS", &format!("{first}-{}", first + PORTS - 1));
        let mut had = Vec::new();
        for _ in 0..strength(5, 50) {
            let program = installation.serve(&[]);
            had.push(port_of_another(&program, &installation.read("owner-token")));
            program.stop();
        }
        for (number, port) in had.iter().enumerate() {
            let last = had[..number].iter().rposition(|earlier| earlier == port);
            let longest = number.checked_sub(PORTS.into());
            assert_eq!(last, longest, "number {number} of {had:?} is not the port that was unused longest");
        }
    }
}
