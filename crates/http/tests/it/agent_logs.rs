//! `/organizations/{organizationId}/deployments/{deploymentId}/agents/logs`

use podium_api::{DeploymentId, Id};
use podium_app::disk::Reserve;
use podium_testkit::{Actor, Engine, TestApp, block_on, on_both_engines};
use serde_json::{Value, json};

use crate::agent_tokens::{all, bearer, remote};
use crate::deployment_logs::{search, texts};
use crate::deployments::{path, read, update};

async fn agent(app: &TestApp, deployment: DeploymentId) -> Actor {
    let name = app.world.id::<Id>().to_string();
    bearer(&app.post(&app.owner, &all(app, deployment), json!({ "name": name })).await.ok())
}

fn logs(app: &TestApp, deployment: DeploymentId) -> String {
    format!("{}/agents/logs", path(app, deployment))
}

fn batch(sequence: u64, texts: &[&str]) -> Value {
    let line = |text: &&str| json!({ "timestamp": "2027-01-15T08:00:00Z", "source": "worker", "text": text });
    json!({ "agent": "site-1", "sequence": sequence, "lines": texts.iter().map(line).collect::<Vec<_>>() })
}

async fn shown(app: &TestApp, deployment: DeploymentId) -> Vec<String> {
    let page = search(app, &app.owner, deployment, "sources=worker").await.ok();
    texts(&page).into_iter().map(str::to_owned).collect()
}

#[test]
fn a_full_disk_takes_no_lines_of_agents() {
    fn full() -> Reserve {
        Reserve { directories: vec![std::env::temp_dir()], bytes: u64::MAX }
    }
    block_on(async {
        let app = TestApp::start_with(Engine::Sqlite, |config, _| config.reserve = full()).await;
        let deployment = remote(&app, app.workspace("Analytics").await).await;
        let agent = agent(&app, deployment).await;
        let told = app.post(&agent, &logs(&app, deployment), batch(1, &["one"])).await.refused(503);
        assert!(told.starts_with("The disk is full: "), "{told}");
    });
}

on_both_engines! {
    async fn an_agent_that_is_revoked_while_its_lines_arrive_adds_none(app) {
        let here = remote(&app, app.workspace("Analytics").await).await;
        let agent = agent(&app, here).await;
        let call = app.call("POST", &logs(&app, here)).by(&agent).json(&batch(1, &["late"]));
        let revoke = async { assert_eq!(app.delete(&app.owner, &format!("{}/{}", all(&app, here), agent.id)).await.code(), 204) };
        assert!(call.send_with_delayed_body(revoke).await.refused(401).contains("revoked"));
        assert_eq!(shown(&app, here).await, [] as [&str; 0]);
    }

    async fn an_agent_adds_lines_to_its_own_deployment(app) {
        let workspace = app.workspace("Analytics").await;
        let (here, there) = (remote(&app, workspace).await, remote(&app, workspace).await);
        let agent = agent(&app, here).await;
        let taken = app.post(&agent, &logs(&app, here), batch(1, &["one", "two"])).await.ok();
        assert_eq!(taken, json!({ "takenCount": 2, "isRepeat": false }));
        assert_eq!(shown(&app, here).await, ["two", "one"]);
        let nowhere = app.world.id();
        for unseen in [there, nowhere] {
            let told = app.post(&agent, &logs(&app, unseen), batch(2, &["x"])).await.refused(404);
            assert_eq!(told, "There is no such deployment, or you may not see it.");
        }
        assert_eq!(shown(&app, there).await, [] as [&str; 0]);
        let told = "This endpoint is for remote agents: call it with an agent token.";
        assert_eq!(app.post(&app.owner, &logs(&app, here), batch(2, &["x"])).await.refused(403), told);
        let nobody = app.call("POST", &logs(&app, here)).json(&batch(2, &["x"])).send().await;
        assert!(nobody.refused(401).contains("missing"));
        app.delete(&app.owner, &format!("{}/{}", all(&app, here), agent.id)).await.ok();
        assert!(app.post(&agent, &logs(&app, here), batch(2, &["x"])).await.refused(401).contains("revoked"));
        assert!(!Value::from(app.audit().await).to_string().contains("agents/logs"), "lines say enough themselves");
    }

    async fn a_repeated_batch_is_not_added_twice(app) {
        let workspace = app.workspace("Analytics").await;
        let deployment = remote(&app, workspace).await;
        let agent = agent(&app, deployment).await;
        app.post(&agent, &logs(&app, deployment), batch(1, &["one"])).await.ok();
        let again = app.post(&agent, &logs(&app, deployment), batch(1, &["one"])).await.ok();
        assert_eq!(again, json!({ "takenCount": 0, "isRepeat": true }));
        let mut other = batch(1, &["of another"]);
        other["agent"] = "site-2".into();
        assert_eq!(app.post(&agent, &logs(&app, deployment), other).await.ok()["takenCount"], 1);
        assert_eq!(shown(&app, deployment).await, ["of another", "one"]);
    }

    async fn errors_in_a_batch_are_reported_and_nothing_is_stored(app) {
        let workspace = app.workspace("Analytics").await;
        let deployment = remote(&app, workspace).await;
        let agent = agent(&app, deployment).await;
        let line = |timestamp: &str, source: &str| json!({ "timestamp": timestamp, "source": source, "text": "x" });
        let right = line("2027-01-15T08:00:00Z", "worker");
        for (body, wrong) in [
            (json!({}), vec!["agent: required", "sequence: required", "lines: required"]),
            (json!({ "agent": "", "sequence": 0, "lines": [] }), vec!["agent: minLength", "sequence: minimum", "lines: minItems"]),
            (json!({ "agent": "a", "sequence": 1, "lines": vec![right.clone(); 5001] }), vec!["lines: maxItems"]),
            (json!({ "agent": "a", "sequence": 1, "lines": [right, line("noon", "moon")] }),
                vec!["lines[1].timestamp: format", "lines[1].source: enum"]),
            (json!({ "agent": "a", "sequence": 1, "lines": [
                right, line("2026-12-31T07:59:59Z", "worker"), line("2027-01-15T09:00:01Z", "worker")] }),
                vec!["lines[1].timestamp: min", "lines[2].timestamp: max"]),
        ] {
            assert_eq!(app.post(&agent, &logs(&app, deployment), body).await.wrong_fields(), wrong);
        }
        assert_eq!(shown(&app, deployment).await, [] as [&str; 0]);
        assert_eq!(app.post(&agent, &logs(&app, deployment), batch(1, &["right"])).await.ok()["takenCount"], 1);
    }

    async fn agents_call_from_where_they_may(app) {
        let workspace = app.workspace("Analytics").await;
        let deployment = remote(&app, workspace).await;
        let agent = agent(&app, deployment).await;
        let ranges = json!({ "remoteExecution": { "enabled": true, "allowedIpAddressRanges": ["10.1.0.0/16"] } });
        let body = update(&read(&app, deployment).await, ranges);
        app.post(&app.owner, &path(&app, deployment), body).await.ok();
        let call = |address: &str, sequence: u64| {
            app.call("POST", &logs(&app, deployment)).by(&agent).from(address).json(&batch(sequence, &["x"])).send()
        };
        call("10.1.2.3", 1).await.ok();
        assert!(call("10.2.0.1", 2).await.refused(403).contains("10.2.0.1"));
        for range in ["127.0.0.0/8", "10.1.3.0/24"] {
            let body = json!({ "ipAddressRange": range });
            app.post(&app.owner, &app.path("/allowed-ip-address-ranges"), body).await.ok();
        }
        assert!(call("10.1.2.3", 3).await.refused(403).contains("10.1.2.3"), "the organization's count too");
        call("10.1.3.4", 4).await.ok();
        let off = json!({ "executor": "CELERY", "remoteExecution": { "enabled": false } });
        let body = update(&read(&app, deployment).await, off);
        app.post(&app.owner, &path(&app, deployment), body).await.ok();
        let told = call("10.1.3.4", 5).await.refused(403);
        assert_eq!(told, "Remote execution is off for this deployment: enable `remoteExecution` first.");
    }
}
