//! `podium dag` and `podium run`: what is asked of Airflow, in either version of its API, and what is shown.
//!
//! Real Airflow is in `cargo xtask airflow`; here somebody plays the server, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::Command;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Ended, finish};

const ORGANIZATION: &str = "c00000000000000000000000a";
const DEPLOYMENT: &str = "c00000000000000000000000d";

/// A server with one deployment, whose Airflow has one DAG with one run.
struct Played {
    url: String,
    asked: Arc<Mutex<Vec<String>>>,
    home: TempDir,
}

impl Played {
    fn with_airflow(version: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (remembered, version) = (Arc::clone(&asked), version.to_owned());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut lines = BufReader::new(stream.try_clone().unwrap());
                let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
                lines.read_line(&mut first).unwrap();
                while lines.read_line(&mut line).unwrap() > 2 {
                    if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
                        length = text.trim().parse().unwrap();
                    }
                    line.clear();
                }
                let mut body = vec![0; length];
                lines.read_exact(&mut body).unwrap();
                let target = first.split(' ').nth(1).unwrap_or_default();
                let request = first.trim_end_matches(" HTTP/1.1\r\n");
                remembered.lock().unwrap().push(format!("{request} {}", String::from_utf8_lossy(&body)));
                let (status, reply) = answer(target.split('?').next().unwrap(), &version);
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{reply}",
                    reply.len()
                );
            }
        });
        Self { url, asked, home: tempfile::tempdir().unwrap() }
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PODIUM_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.home.path()).env("NO_COLOR", "1");
        command.env("PODIUM_CONFIG_DIR", self.home.path()).env("PODIUM_URL", &self.url);
        command.env("PODIUM_TOKEN", "t").env("PODIUM_ORGANIZATION", ORGANIZATION);
        command.env("PODIUM_DEPLOYMENT", DEPLOYMENT);
        finish(command, "")
    }

    /// What Airflow was asked since the last time.
    fn asked(&self) -> Vec<String> {
        let asked = std::mem::take(&mut *self.asked.lock().unwrap());
        let of_airflow = asked.into_iter().filter(|request| request.contains(" /airflow/calm-comet-1/"));
        of_airflow.map(|request| request.replace("/airflow/calm-comet-1", "").trim_end().to_owned()).collect()
    }
}

fn answer(path: &str, version: &str) -> (u16, String) {
    let deployment = format!("/v1/organizations/{ORGANIZATION}/deployments/{DEPLOYMENT}");
    let run =
        json!({ "dag_run_id": "manual__1", "dag_id": "load", "state": "success", "run_type": "manual" });
    let dag = json!({ "dag_id": "load", "is_paused": true, "has_import_errors": false });
    let (_, asked) =
        path.split_once("/airflow/calm-comet-1/api/v").map_or(("", path), |(_, rest)| rest.split_at(1));
    let reply: Value = match asked {
        path if path == deployment => {
            json!({ "name": "nightly", "namespace": "calm-comet-1", "airflowVersion": version })
        }
        "/dags" => json!({ "dags": [dag], "total_entries": 1 }),
        "/dags/load" => dag,
        "/dags/load/dagRuns" => {
            let mut both = run;
            both["dag_runs"] = json!([both.clone()]);
            both["total_entries"] = 1.into();
            both
        }
        "/dags/load/dagRuns/manual__1" => run,
        "/dags/load/dagRuns/bad" => json!({ "dag_run_id": "bad", "state": "failed" }),
        "/dags/load/dagRuns/manual__1/taskInstances" => {
            let mapped = json!({ "task_id": "part", "try_number": 2, "map_index": 3, "start_date": "2" });
            let first = json!({ "task_id": "greet", "try_number": 1, "map_index": -1, "start_date": "1" });
            json!({ "task_instances": [mapped, first], "total_entries": 2 })
        }
        path if path.contains("/logs/") && version.starts_with('2') => {
            return (200, "one\ntwo\u{1b}[2J\n".into());
        }
        path if path.contains("/logs/") => {
            json!({ "content": ["::group::x", { "timestamp": "t", "level": "info", "event": "Hello" }] })
        }
        _ => return (404, json!({ "detail": "The Dag was not found" }).to_string()),
    };
    (200, reply.to_string())
}

#[test]
fn dags_are_listed_paused_and_triggered() {
    let played = Played::with_airflow("3.1.0");
    let listed = played.run(&["dag", "list", "--columns", "dag_id,is_paused"]);
    assert_eq!(
        (listed.code, listed.stdout.as_str()),
        (Some(0), "DAG_ID  IS_PAUSED\nload    true\n"),
        "{}",
        listed.stderr
    );
    assert_eq!(played.asked(), ["GET /api/v2/dags?order_by=dag_id&limit=100&offset=0"]);
    let paused = played.run(&["dag", "unpause", "load"]);
    assert_eq!((paused.code, paused.stderr.as_str()), (Some(0), "Unpaused load.\n"));
    assert_eq!(played.asked(), ["PATCH /api/v2/dags/load?update_mask=is_paused {\"is_paused\":false}"]);
    let done = played.run(&["dag", "trigger", "load", "--conf", "{\"a\": 1}", "--wait", "--output", "name"]);
    let said = "Started manual__1.\nThe DAG is paused, so the run waits: podium dag unpause \"load\"\nmanual__1 is success.\n";
    assert_eq!((done.code, done.stdout.as_str(), done.stderr.as_str()), (Some(0), "manual__1\n", said));
    let expected = [
        "GET /api/v2/dags/load",
        "POST /api/v2/dags/load/dagRuns {\"conf\":{\"a\":1},\"logical_date\":null}",
        "GET /api/v2/dags/load/dagRuns/manual__1",
    ];
    assert_eq!(played.asked(), expected);
}

#[test]
fn the_first_api_is_spoken_with_the_second_airflow() {
    let played = Played::with_airflow("2.11.0");
    assert_eq!(played.run(&["dag", "trigger", "load", "--run-id", "mine", "--no-wait"]).code, Some(0));
    let expected =
        ["GET /api/v1/dags/load", "POST /api/v1/dags/load/dagRuns {\"conf\":{},\"dag_run_id\":\"mine\"}"];
    assert_eq!(played.asked(), expected);
    let logs = played.run(&["run", "logs", "load", "--task", "greet"]);
    assert_eq!(
        (logs.code, logs.stdout.as_str()),
        (Some(0), "greet one\ngreet two\u{fffd}[2J\n"),
        "{}",
        logs.stderr
    );
}

#[test]
fn runs_are_read_with_the_logs_of_their_tasks() {
    let played = Played::with_airflow("3.1.0");
    let logs = played.run(&["run", "logs", "load"]);
    let expected = "greet ::group::x\ngreet t info Hello\npart[3] ::group::x\npart[3] t info Hello\n";
    assert_eq!((logs.code, logs.stdout.as_str()), (Some(0), expected), "{}", logs.stderr);
    let asked = played.asked();
    assert_eq!(asked[0], "GET /api/v2/dags/load/dagRuns?order_by=-start_date&limit=1&offset=0", "the newest");
    let last =
        "GET /api/v2/dags/load/dagRuns/manual__1/taskInstances/part/logs/2?full_content=true&map_index=3";
    assert_eq!(asked.last().map(String::as_str), Some(last));
    let failed = played.run(&["run", "wait", "load", "bad"]);
    let said =
        "podium: bad of load failed\nIts logs: podium run logs \"load\" \"bad\" --deployment \"nightly\"\n";
    assert_eq!((failed.code, failed.stderr.as_str()), (Some(7), said));
}

#[test]
fn mistakes_are_explained() {
    let played = Played::with_airflow("3.1.0");
    let unknown = played.run(&["dag", "trigger", "lod"]);
    let said = "podium: Airflow: The Dag was not found\n  status 404, request \nDid you mean \"load\"?\n";
    let plain = unknown.stderr.replace("  status 404, request \n", "").replace("podium: ", "");
    assert_eq!(unknown.code, Some(3), "{said}");
    assert_eq!(plain, "Airflow: The Dag was not found\nDid you mean \"load\"?\n");
    assert_eq!(played.run(&["dag", "trigger", "load", "--conf", "[1]"]).code, Some(2));
    assert_eq!(played.run(&["dag", "pause", ".."]).code, Some(2));
    let planned = played.run(&["dag", "trigger", "load", "--plan"]);
    assert_eq!(planned.code, Some(2), "{}", planned.stderr);
}
