//! `podium dag` and `podium run`: what is asked of Airflow, in either version of its API, and what is shown.
//!
//! Real Airflow is in `cargo xtask airflow`; here somebody plays the server, and remembers what it was asked.

use std::process::Command;

use serde_json::json;
use tempfile::TempDir;

use super::recorded_airflow::{Recorded, answer};
use crate::program::{Ended, finish};

const ORGANIZATION: &str = "c00000000000000000000000a";
const DEPLOYMENT: &str = "c00000000000000000000000d";

/// A server with one deployment, whose Airflow has one DAG with one run.
struct Played {
    recorded: Recorded,
    home: TempDir,
}

impl Played {
    fn with_airflow(version: &'static str) -> Self {
        let deployment = format!("/v1/organizations/{ORGANIZATION}/deployments/{DEPLOYMENT}");
        let recorded = Recorded::start(move |path| match path == deployment {
            true => {
                let found =
                    json!({ "name": "nightly", "namespace": "calm-comet-1", "airflowVersion": version });
                (200, found.to_string())
            }
            false => answer(path, version),
        });
        Self { recorded, home: tempfile::tempdir().unwrap() }
    }

    fn run(&self, arguments: &[&str]) -> Ended {
        let mut command = Command::new(env!("CARGO_BIN_EXE_podium"));
        for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PODIUM_")) {
            command.env_remove(name);
        }
        command.args(arguments).current_dir(self.home.path()).env("NO_COLOR", "1");
        command.env("PODIUM_CONFIG_DIR", self.home.path()).env("PODIUM_URL", self.recorded.url());
        command.env("PODIUM_TOKEN", "t").env("PODIUM_ORGANIZATION", ORGANIZATION);
        command.env("PODIUM_DEPLOYMENT", DEPLOYMENT);
        finish(command, "")
    }

    /// What Airflow was asked since the last time.
    fn asked(&self) -> Vec<String> {
        let of_airflow =
            self.recorded.asked().into_iter().filter(|request| request.contains(" /airflow/calm-comet-1/"));
        of_airflow.map(|request| request.replace("/airflow/calm-comet-1", "").trim_end().to_owned()).collect()
    }
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
    let of = |task: &str| {
        let lines = [
            "::group::x",
            "t INFO Hello",
            "t ERROR Task failed with exception logger=task loc=task_runner.py:1254",
            "Traceback (most recent call last):",
            "  File \"/dags/load.py\", line 12, in extract",
            "ValueError: no",
        ];
        lines.map(|line| format!("{task} {line}\n")).concat()
    };
    let expected = of("greet") + &of("part[3]");
    assert_eq!((logs.code, logs.stdout), (Some(0), expected), "{}", logs.stderr);
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
fn what_is_missing_is_named_in_either_version() {
    let list = "Its DAGs: podium dag list --deployment \"nightly\". Files that cannot be imported: podium deploy report \
                --deployment \"nightly\"";
    let lod = "nightly has no DAG called \"lod\"\nDid you mean \"load\"?";
    let other = format!("nightly has no DAG called \"untitled\"\n{list}");
    let run = "load has no run called \"manual_1\"\nDid you mean \"manual__1\"?";
    let another = "load has no run called \"x\"\nIts runs: podium run list \"load\" --deployment \"nightly\"";
    let table: [(&[&str], &str); 12] = [
        (&["dag", "get", "lod"], lod),
        (&["dag", "trigger", "lod"], lod),
        (&["dag", "pause", "untitled"], &other),
        (&["run", "list", "lod"], lod),
        (&["run", "get", "lod"], lod),
        (&["run", "get", "lod", "x"], lod),
        (&["run", "get", "load", "manual_1"], run),
        (&["run", "wait", "load", "x"], another),
        (&["run", "logs", "load", "x"], another),
        (&["run", "get", "idle"], "idle has no runs\nStart one: podium dag trigger \"idle\""),
        (
            &["run", "logs", "load", "--task", "gret"],
            "manual__1 has no task called \"gret\"\nDid you mean \"greet\"?",
        ),
        (
            &["run", "logs", "load", "--task", "xyz"],
            "manual__1 has no task called \"xyz\"\nIts tasks: greet, part",
        ),
    ];
    for version in ["2.11.2", "3.0.6"] {
        let played = Played::with_airflow(version);
        for (arguments, expected) in table {
            let done = played.run(arguments);
            let ended = (done.code, done.stdout.as_str(), done.stderr.as_str());
            assert_eq!(
                ended,
                (Some(3), "", format!("podium: {expected}\n").as_str()),
                "{version} {arguments:?}"
            );
        }
        let none = played.run(&["run", "list", "idle"]);
        assert_eq!((none.code, none.stderr.as_str()), (Some(0), "No results.\n"), "{version}");
    }
}

#[test]
fn mistakes_are_explained() {
    let played = Played::with_airflow("3.1.0");
    assert_eq!(played.run(&["dag", "trigger", "load", "--conf", "[1]"]).code, Some(2));
    assert_eq!(played.run(&["dag", "pause", ".."]).code, Some(2));
    let planned = played.run(&["dag", "trigger", "load", "--plan"]);
    assert_eq!(planned.code, Some(2), "{}", planned.stderr);
}
