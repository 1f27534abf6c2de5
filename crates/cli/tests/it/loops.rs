//! The loops of the served program: deployments start, survive restarts and are deleted; and an operator sees pending
//! work.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{Installation, Program};

/// Long enough that only a hang exceeds it.
const PATIENCE: Duration = Duration::from_secs(180);

/// Asks until the answer is as expected.
pub(crate) fn wait_until<T>(what: &str, ask: impl Fn() -> T, is_so: impl Fn(&T) -> bool) -> T {
    let started = Instant::now();
    loop {
        let answer = ask();
        if is_so(&answer) {
            return answer;
        }
        assert!(started.elapsed() < PATIENCE, "it never came true: {what}");
        std::thread::yield_now();
    }
}

/// The environments that the simulated plane has.
pub(crate) fn environments(installation: &Installation) -> BTreeSet<String> {
    let directory = installation.data_dir().join("simulated/environments");
    let names = std::fs::read_dir(directory).into_iter().flatten().flatten().map(|file| file.file_name());
    names.filter_map(|name| Some(name.to_str()?.strip_suffix(".json")?.to_owned())).collect()
}

/// What is pending, as `podium work` shows it to programs.
pub(crate) fn pending(installation: &Installation, arguments: &[&str]) -> Vec<Value> {
    let shown = installation.run(&[&["work", "--json"], arguments].concat());
    assert_eq!(shown.code, Some(0), "{}", shown.stderr);
    serde_json::from_str(&shown.stdout).unwrap()
}

struct Served {
    program: Program,
    token: String,
    organization: String,
    workspace: String,
}

impl Served {
    fn start(installation: &Installation) -> Self {
        let program = installation.serve(&[]);
        let token = installation.read("owner-token");
        let organization = program.organization(&token);
        let list = program.get(&format!("{organization}/workspaces"), &token).json();
        let workspace = list["workspaces"][0]["id"].as_str().unwrap().to_owned();
        Self { program, token, organization, workspace }
    }

    fn create(&self, name: &str, others: &Value) -> String {
        let mut body = json!({ "name": name, "workspaceId": self.workspace });
        body.as_object_mut().unwrap().extend(others.as_object().unwrap().clone());
        let path = format!("{}/deployments", self.organization);
        self.program.call("POST", &path, &self.token, Some(&body)).json()["id"].as_str().unwrap().to_owned()
    }

    fn deployment(&self, id: &str) -> String {
        format!("{}/deployments/{id}", self.organization)
    }

    fn wait_for(&self, id: &str, status: &str) -> Value {
        let ask = || self.program.get(&self.deployment(id), &self.token).json();
        wait_until(status, ask, |deployment| deployment["status"] == status)
    }
}

#[test]
fn deployments_come_up_survive_a_restart_and_go() {
    let installation = Installation::new();
    let served = Served::start(&installation);
    let id = served.create("Reports", &json!({}));
    served.wait_for(&id, "HEALTHY");
    assert_eq!(environments(&installation), BTreeSet::from([id.clone()]));
    served.program.stop();
    let served = Served::start(&installation);
    assert_eq!(served.program.get(&served.deployment(&id), &served.token).json()["status"], "HEALTHY");
    let other = served.create("More", &json!({}));
    served.wait_for(&other, "HEALTHY");
    let deleted = served.program.call("DELETE", &served.deployment(&id), &served.token, None);
    assert_eq!(deleted.status, 204);
    wait_until("it is gone", || environments(&installation), |left| *left == BTreeSet::from([other.clone()]));
    let metrics = served.program.get("/metrics", "");
    let metrics = String::from_utf8(metrics.body).unwrap();
    assert!(metrics.contains("podium_steps_total{kind=\"deployments\",outcome=\"settled\"} "), "{metrics}");
    served.program.stop();
}

#[test]
fn an_operator_sees_what_is_pending_and_why() {
    let installation = Installation::new();
    let served = Served::start(&installation);
    let empty = installation.run(&["work"]);
    assert_eq!((empty.code, empty.stdout.as_str()), (Some(0), "Nothing is pending.\n"));
    let nightly = json!({ "isEnabled": true, "hibernateAtCron": "0 20 * * *", "wakeAtCron": "0 6 * * *" });
    let development = json!({
        "isDevelopmentMode": true,
        "scalingSpec": { "hibernationSpec": { "schedules": [nightly] } },
    });
    let id = served.create("Playground", &development);
    let settled = |rows: &Vec<Value>| rows.len() == 1 && rows[0]["state"] == "waiting";
    let row = wait_until("it waits", || pending(&installation, &[]), settled).remove(0);
    assert_eq!((&row["kind"], &row["id"], &row["tries"]), (&json!("deployments"), &json!(id), &json!(0)));
    assert_eq!(row["reason"], "The next hibernation event.");
    assert!(row["dueAt"].as_str().unwrap().ends_with("0:00.000Z"), "{row}");
    assert_eq!(pending(&installation, &["--kind", "clusters"]), Vec::<Value>::new());
    assert_eq!(pending(&installation, &["--limit", "0"]), Vec::<Value>::new());
    served.program.stop();
    let shown = installation.run(&["work", "--kind", "deployments"]);
    let lines: Vec<&str> = shown.stdout.lines().collect();
    assert_eq!(lines.len(), 2, "also while nobody serves: {}", shown.stdout);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(words(lines[0]), ["KIND", "ID", "STATE", "DUE", "TRIES", "SINCE", "REASON"]);
    assert_eq!(words(lines[1])[..3], ["deployments".to_owned(), id, "waiting".to_owned()]);
    assert!(lines[1].ends_with("The next hibernation event."), "{}", shown.stdout);
}
