//! What environments say about their DAG runs.

use podium_api::DeploymentId;
use podium_domain::On;
use podium_domain::events::{Allowance, Claim, SpoolBatch, SpoolPosition, SpoolState};
use podium_store::event_spools;
use podium_testkit::{TestApp, on_both_engines, role};
use serde_json::json;

use super::{line, settled, shown};

fn claim(event: &str, run: &str) -> Claim {
    let mut said = json!({ "event": event, "dag_id": "daily", "run_id": run });
    if event == "task.failed" {
        said["task_id"] = json!("load");
        said["try_number"] = json!(1);
        said["max_tries"] = json!(2);
    }
    Claim::parse(said.to_string().as_bytes()).expect("a claim")
}

fn at(read_bytes: u64) -> SpoolPosition {
    SpoolPosition { segment: 1, read_bytes, dropped: 0 }
}

async fn record(app: &TestApp, id: DeploymentId, batch: &SpoolBatch) -> Option<SpoolState> {
    let (system, now, batch) = (app.system, app.world.now(), batch.clone());
    let write = move |tx: &podium_db::Tx| event_spools::record(tx, &system, id, batch.clone(), now);
    app.app.db(&app.system).write(None, write).await.expect("it is written")
}

on_both_engines! {
    async fn what_an_environment_says_is_an_event_once(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let claims = vec![claim("dag_run.started", "one"), claim("task.failed", "one"), claim("dag_run.failed", "one")];
        let first = SpoolBatch { from: SpoolPosition::default(), to: at(300), claims, dropped: 0 };
        let state = record(&app, id, &first).await.expect("it is new");
        assert_eq!((state.position, state.allowance.left), (at(300), Allowance::MOST - 3));
        // As after a crash, or by another reader.
        assert_eq!(record(&app, id, &first).await, None);
        let second = SpoolBatch { from: at(300), to: at(400), claims: vec![claim("dag_run.succeeded", "two")], dropped: 7 };
        assert_eq!(record(&app, id, &second).await.map(|state| state.position), Some(at(400)));
        let events = settled(&app).await;
        let of_it: Vec<_> = events.iter().filter(|event| event["data"]["claimed"] == true).collect();
        let said: Vec<String> = of_it.iter().map(|event| line(event)).collect();
        let name = |what: &str| format!("{what} {id}");
        assert_eq!(said, [
            name("dag_run.started"), name("task.failed"), name("dag_run.failed"), name("dag_run.succeeded"),
            name("deployment.events_dropped"),
        ]);
        assert_eq!(of_it[1]["subject"], format!("deployment/{id}"));
        assert_eq!(of_it[1]["data"]["deploymentId"], id.to_string());
        assert_eq!(of_it[1]["data"]["dagRun"], json!({ "dagId": "daily", "runId": "one" }));
        assert_eq!(of_it[1]["data"]["task"], json!({ "taskId": "load", "tryNumber": 1, "maxTries": 2 }));
        assert_eq!(of_it[4]["data"]["count"], 7);
        assert_eq!(of_it[0]["data"].get("actor"), None);
    }

    async fn what_an_environment_may_say_is_saved_up_again(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let said = SpoolBatch { from: at(0), to: at(1), claims: vec![claim("dag_run.failed", "one"); 10], dropped: 0 };
        let from = SpoolBatch { from: SpoolPosition::default(), to: at(0), claims: vec![], dropped: 0 };
        record(&app, id, &from).await.expect("it is new");
        let state = record(&app, id, &said).await.expect("it is new");
        assert_eq!(state.allowance.left, Allowance::MOST - 10);
        app.advance(std::time::Duration::from_secs(4));
        let none = SpoolBatch { from: at(1), to: at(2), claims: vec![], dropped: 0 };
        assert_eq!(record(&app, id, &none).await.map(|state| state.allowance.left), Some(Allowance::MOST - 6));
    }

    async fn what_an_environment_says_is_for_those_who_may_see_it(app) {
        let data = app.workspace("Data").await;
        let (id, other) = (app.deployment(data).await, app.deployment(data).await);
        let member = role(On::Organization, "ORGANIZATION_MEMBER");
        let plain = app.member("plain").await;
        let on = On::Deployment { id, workspace_id: data };
        let accessor = app.user_with("accessor", vec![member.clone(), role(on.clone(), "DEPLOYMENT_ACCESSOR")]).await;
        let admin = app.user_with("admin", vec![member, role(on, "DEPLOYMENT_ADMIN")]).await;
        for id in [id, other] {
            let claims = vec![claim("dag_run.failed", "one")];
            let batch = SpoolBatch { from: SpoolPosition::default(), to: at(1), claims, dropped: 1 };
            record(&app, id, &batch).await.expect("it is new");
        }
        let types = "types=podium.dag_run.failed&types=podium.deployment.events_dropped";
        assert_eq!(shown(&app, &plain, types).await, Vec::<String>::new());
        let ours = [format!("dag_run.failed {id}"), format!("deployment.events_dropped {id}")];
        assert_eq!(shown(&app, &accessor, types).await, ours[1..], "Airflow does not show it any DAG run either");
        assert_eq!(shown(&app, &admin, types).await, ours);
    }

    async fn a_deployment_that_is_gone_says_nothing(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let batch = |from, to| SpoolBatch { from, to, claims: vec![claim("dag_run.failed", "one")], dropped: 0 };
        record(&app, id, &batch(SpoolPosition::default(), at(1))).await.expect("it is new");
        app.delete(&app.owner, &app.path(&format!("/deployments/{id}"))).await.ok();
        assert_eq!(record(&app, id, &batch(at(1), at(2))).await, None);
        assert_eq!(app.rows("event_spools").await, 0);
        assert_eq!(shown(&app, &app.owner, "types=podium.dag_run.failed").await.len(), 1);
    }
}
