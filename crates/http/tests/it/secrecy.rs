//! Planted secrets are searched for everywhere, after the loops have worked with them, failed and succeeded: in the
//! database with its log, in files, in what the process logs, in audit records, errors, numbers and answers.

use std::path::Path;

use podium_dataplane::simulated::Call;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::json;

use crate::captured_log::{capture_log, logged};

/// Every file below a directory.
fn files(directory: &Path, found: &mut Vec<u8>) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            files(&entry.path(), found);
        } else {
            found.extend(std::fs::read(entry.path()).unwrap_or_default());
        }
    }
}

fn holds(bytes: &[u8], word: &str) -> bool {
    bytes.windows(word.len()).any(|window| window == word.as_bytes())
}

/// Answers of every read that could show something of a deployment.
async fn read_everything(app: &TestApp, deployment: &str) -> Vec<u8> {
    let mut answers = Vec::new();
    let paths = [
        app.path("/deployments"),
        app.path(&format!("/deployments/{deployment}")),
        app.path(&format!("/deployments/{deployment}/deploys")),
        app.path(&format!("/deployments/{deployment}/logs?sources=scheduler&sources=worker")),
        app.path("/environment-objects"),
        app.path(&format!("/environment-objects?resolveLinked=true&deploymentId={deployment}")),
        app.path("/audit-logs"),
        "/metrics".to_owned(),
    ];
    for path in paths {
        let answer = app.get(&app.owner, &path).await;
        assert_eq!(answer.code(), 200, "{path}: {}", answer.text());
        answers.extend(answer.bytes);
    }
    answers
}

on_both_engines! {
    async fn planted_secrets_are_found_nowhere_even_after_the_loops_have_used_them(app) {
        capture_log();
        let workspace = app.workspace("Data").await;
        let variables = json!([
            { "key": "TOKEN", "value": "planted in a variable", "isSecret": true },
            { "key": "PLAIN", "value": "plain to see", "isSecret": false },
        ]);
        let body = json!({ "name": "Reports", "workspaceId": workspace, "environmentVariables": variables });
        let deployment = app.post(&app.owner, &app.path("/deployments"), body.clone()).await.id();
        let mut answers = Vec::new();
        let object = |kind: &str, field: &str, value: serde_json::Value| json!({
            "objectKey": "KEY", "objectType": kind, "scope": "WORKSPACE", "scopeEntityId": workspace,
            "autoLinkDeployments": true, field: value,
        });
        let connection = json!({ "type": "http", "password": "planted in a connection" });
        let export = json!({
            "endpoint": "https://metrics.example.com", "exporterType": "PROMETHEUS", "authType": "AUTH_TOKEN",
            "basicToken": "planted in an export",
        });
        for request in [
            object("CONNECTION", "connection", connection),
            object("AIRFLOW_VARIABLE", "airflowVariable", json!({ "value": "planted in Airflow", "isSecret": true })),
            object("METRICS_EXPORT", "metricsExport", export),
        ] {
            let made = app.post(&app.owner, &app.path("/environment-objects"), request.clone()).await;
            assert_eq!(made.code(), 200, "{}", made.text());
            answers.extend(made.bytes);
            answers.extend(app.post(&app.owner, &app.path("/environment-objects"), request).await.bytes);
        }
        answers.extend(app.post(&app.owner, &app.path("/deployments"), body).await.bytes);

        app.plane.script().fail(Call::Apply, "the plane is full", 1);
        app.settle().await;
        answers.extend(read_everything(&app, &deployment).await);
        app.advance(std::time::Duration::from_secs(600));
        app.settle().await;
        answers.extend(read_everything(&app, &deployment).await);
        let stands = app.get(&app.owner, &app.path(&format!("/deployments/{deployment}"))).await.ok();
        assert_eq!(stands["status"], "HEALTHY");

        let (stored, log) = (app.stored().await, logged());
        let mut kept = Vec::new();
        files(app.files.path(), &mut kept);
        assert!(holds(&stored, "plain to see"), "what is no secret can be found");
        assert!(holds(&log, "CreateDeployment"), "the log is kept");
        assert!(holds(&kept, "Starting the scheduler"), "components have written their logs");
        for (place, bytes) in [("the database", stored), ("the log", log), ("a file", kept), ("an answer", answers)] {
            assert!(!holds(&bytes, "planted in"), "a secret is in {place}");
        }
    }
}
