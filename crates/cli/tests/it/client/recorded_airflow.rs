//! A web server that answers what Airflow does, in either version of its API, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

/// A web server that answers as it is told.
pub(super) struct Recorded {
    pub(super) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Recorded {
    /// Starts one on a free port, which answers a path with a status and a body.
    pub(super) fn start(answer: impl Fn(&str) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let remembered = Arc::clone(&asked);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let request = read(&stream);
                let target = request.split(' ').nth(1).unwrap_or_default();
                let (status, reply) = answer(target.split('?').next().unwrap_or_default());
                remembered.lock().unwrap().push(request);
                let _ = write!(
                    stream,
                    "HTTP/1.1 {status} x\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{reply}",
                    reply.len()
                );
            }
        });
        Self { address, asked }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What it was asked since the last time: method, target and body.
    pub(super) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.asked.lock().unwrap())
    }
}

/// Reads a request: method, target and body.
fn read(stream: &TcpStream) -> String {
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
    format!("{} {}", first.trim_end_matches(" HTTP/1.1\r\n"), String::from_utf8_lossy(&body))
}

/// What Airflow answers at a path, whatever is in front of its API.
pub(super) fn answer(path: &str, version: &str) -> (u16, String) {
    let run = json!({
        "dag_run_id": "manual__1", "dag_id": "load", "state": "success", "run_type": "manual", "conf": { "day": 1 },
        "start_date": "2026-01-01T00:00:01Z", "end_date": "2026-01-01T00:00:09Z", "logical_date": null,
    });
    let dag = json!({
        "dag_id": "load", "is_paused": true, "has_import_errors": false, "owners": ["data"],
        "timetable_description": "At 00:00", "next_dagrun_run_after": "2026-01-02T00:00:00Z", "description": null,
    });
    let asked = path.split_once("/api/v").map_or(path, |(_, rest)| &rest[1..]);
    let reply: Value = match asked {
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
            json!({ "content": ["::group::x", { "timestamp": "t", "level": "info", "event": "Hello" }, failure()] })
        }
        "/dags/idle" => json!({ "dag_id": "idle", "is_paused": false }),
        "/dags/idle/dagRuns" => json!({ "dag_runs": [], "total_entries": 0 }),
        // Airflow 2 does not look whether there is such a DAG.
        path if path.ends_with("/dagRuns") && version.starts_with('2') => {
            json!({ "dag_runs": [], "total_entries": 0 })
        }
        path => return (404, not_found(path, version)),
    };
    (200, reply.to_string())
}

/// The bodies of refusals, as Airflow 2.11.2 and 3.0.6 send them.
fn not_found(path: &str, version: &str) -> String {
    let names: Vec<&str> = path.split('/').skip(2).collect();
    let (dag, run) = (names[0], names.get(2).unwrap_or(&""));
    let (title, old, new) = match names.len() {
        // What a DAG is changed with says it in the title only.
        1 if dag == "untitled" => ("Dag with id: 'untitled' not found", None, String::new()),
        1 | 2 => (
            "DAG not found",
            Some(format!("The DAG with dag_id: {dag} was not found")),
            format!("The DAG with dag_id: `{dag}` was not found"),
        ),
        _ => (
            "DAGRun not found",
            Some(format!("DAGRun with DAG ID: '{dag}' and DagRun ID: '{run}' not found")),
            format!("The DagRun with dag_id: `{dag}` and run_id: `{run}` was not found"),
        ),
    };
    let errors =
        "https://airflow.apache.org/docs/apache-airflow/2.11.2/stable-rest-api-ref.html#section/Errors";
    match version.starts_with('2') {
        true => json!({ "detail": old, "status": 404, "title": title, "type": format!("{errors}/NotFound") }),
        false => json!({ "detail": new }),
    }
    .to_string()
}

/// A failed task in its log, as Airflow 3 says so.
fn failure() -> Value {
    json!({
        "timestamp": "t", "level": "error", "event": "Task failed with exception", "logger": "task",
        "filename": "task_runner.py", "lineno": 1254,
        "error_detail": [{
            "exc_type": "ValueError", "exc_value": "no", "exc_notes": [], "syntax_error": null, "is_cause": false,
            "frames": [{ "filename": "/dags/load.py", "lineno": 12, "name": "extract" }],
            "is_group": false, "exceptions": [],
        }],
    })
}
