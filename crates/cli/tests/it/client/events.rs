//! `podium event`: what happened, listed and followed.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::json;

use super::Desk;
use super::recorded_airflow::Recorded;

#[test]
fn events_are_listed_with_what_and_who() {
    let desk = Desk::signed_in();
    desk.shown(&["workspace", "create", "Reports"]);
    desk.shown(&["team", "create", "Data"]);
    let columns = "type,data.resource.name,data.actor.name";
    let shown = desk.shown(&["event", "list", "--columns", columns, "--type", "podium.workspace.created"]);
    let last = shown.lines().last().unwrap();
    assert!(last.starts_with("podium.workspace.created  Reports"), "{shown}");
    assert!(!shown.contains("team"), "{shown}");
    let reports = desk.json(&["event", "list", "--workspace", "Reports"]);
    assert_eq!(reports.as_array().map(Vec::len), Some(1), "{reports}");
    assert_eq!(desk.json(&["event", "list", "--limit", "1"]).as_array().map(Vec::len), Some(1));
    assert_eq!(desk.run(&["event", "list", "--type", "nonsense"]).code, Some(2));
    let none = desk.run(&["event", "list", "--type", "podium.cluster.created"]);
    assert_eq!((none.code, none.stdout.as_str(), none.stderr.as_str()), (Some(0), "", "No results.\n"));
}

#[test]
fn events_are_followed_as_they_happen() {
    let desk = Desk::signed_in();
    desk.shown(&["workspace", "create", "Before"]);
    let mut command =
        desk.command(&["event", "follow", "--since", "1h", "--type", "podium.workspace.created"]);
    let mut following = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let is_about = |line: Option<std::io::Result<String>>, name: &str| {
        let line = line.unwrap().unwrap();
        assert!(line.contains(&format!(" podium.workspace.created {name} by owner@localhost")), "{line}");
    };
    let first = lines.by_ref().find(|line| line.as_ref().is_ok_and(|line| line.contains("Before")));
    is_about(first, "Before");
    desk.shown(&["workspace", "create", "After"]);
    is_about(lines.next(), "After");
    following.kill().unwrap();
    following.wait().unwrap();
}

#[test]
fn the_runs_of_the_last_day_are_counted() {
    let server = Recorded::start(|path| {
        let deployment = json!({ "id": "c1", "name": "nightly", "status": "HEALTHY" });
        let ended =
            |how: &str| json!({ "type": format!("podium.dag_run.{how}"), "data": { "deploymentId": "c1" } });
        let body = match path.rsplit('/').next().unwrap_or_default() {
            "deployments" => json!({ "deployments": [deployment], "totalCount": 1 }),
            "operations" => json!({ "operations": [], "totalCount": 0 }),
            "events" => json!({
                "events": [ended("succeeded"), ended("failed"), ended("succeeded")],
                "nextCursor": "3", "hasMore": false,
            }),
            _ => {
                return (
                    404,
                    json!({ "message": "There is none.", "requestId": "r", "statusCode": 404 }).to_string(),
                );
            }
        };
        (200, body.to_string())
    });
    let desk = Desk::new();
    let url = server.url();
    let organization = "c00000000000000000000000a";
    let variables =
        [("PODIUM_URL", url.as_str()), ("PODIUM_TOKEN", "t"), ("PODIUM_ORGANIZATION", organization)];
    let shown = desk.run_as(&variables, &["top", "--columns", "name,runs"]);
    assert_eq!(shown.stdout, "NAME     RUNS\nnightly  2 ok, 1 failed\n", "{}", shown.stderr);
}
