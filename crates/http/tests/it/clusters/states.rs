//! What may be done with a cluster in which state.

use podium_api::enums::ClusterStatus;
use podium_domain::clusters::plan::Settled;
use podium_store::clusters;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{made, path, update};

/// The state that follows, or the status of a refusal.
type Expected = Result<&'static str, u16>;

/// Puts a cluster into a state.
async fn set(app: &TestApp, id: podium_api::ClusterId, status: &str) {
    app.set_column("clusters", id, "status", &format!("'{status}'")).await;
}

on_both_engines! {
    async fn every_write_in_every_state(app) {
        let id = made(&app, "Main", json!({ "drRegion": "us-west-2" })).await;
        let table: [(&str, Expected, Expected); 9] = [
            ("CREATING", Err(409), Err(409)),
            ("CREATED", Ok("UPDATING"), Ok("FAILING_OVER")),
            ("CREATE_FAILED", Err(412), Err(412)),
            ("UPDATE_FAILED", Ok("UPDATING"), Err(412)),
            ("UPDATING", Err(409), Err(409)),
            ("ACCESS_DENIED", Err(412), Err(412)),
            ("UPGRADE_PENDING", Err(412), Err(412)),
            ("FAILING_OVER", Err(409), Err(409)),
            ("FAILOVER_FAILED", Err(412), Ok("FAILING_OVER")),
        ];
        assert_eq!(table.map(|row| row.0).to_vec(), ClusterStatus::ALL.iter().map(|s| s.as_str()).collect::<Vec<_>>());
        for (status, changed, failed_over) in table {
            for (others, expected) in [(json!({}), changed), (json!({ "isFailedOver": true }), failed_over)] {
                set(&app, id, status).await;
                let answer = app.post(&app.owner, &path(&app, id), update("Main", others.clone())).await;
                match expected {
                    Ok(next) => assert_eq!(answer.ok()["status"], next, "{status} {others}"),
                    Err(code) => {
                        assert_eq!(answer.code(), code, "{status} {others}");
                        assert_eq!(app.get(&app.owner, &path(&app, id)).await.ok()["status"], status);
                    }
                }
            }
        }
    }

    async fn whatever_is_not_under_way_can_be_deleted(app) {
        for status in ClusterStatus::ALL {
            let id = made(&app, status.as_str(), json!({})).await;
            set(&app, id, status.as_str()).await;
            let under_way = ["CREATING", "UPDATING", "FAILING_OVER"].contains(&status.as_str());
            let answer = app.delete(&app.owner, &path(&app, id)).await;
            assert_eq!(answer.code(), if under_way { 409 } else { 204 }, "{status}");
            assert_eq!(app.get(&app.owner, &path(&app, id)).await.code(), if under_way { 200 } else { 404 });
        }
    }

    async fn a_write_that_is_under_way_ends_well_or_not(app) {
        let id = app.new_cluster("Main", json!({})).await;
        let at = path(&app, id);
        let status = async || app.get(&app.owner, &at).await.ok()["status"].clone();
        assert_eq!(status().await, "CREATING");
        let message = app.post(&app.owner, &at, update("Main", json!({}))).await.refused(409);
        assert_eq!(message, "The cluster is CREATING: wait until that has finished, then try again.");
        app.settle_cluster(id, ClusterStatus::Created).await;
        assert_eq!(app.post(&app.owner, &at, update("Main", json!({}))).await.ok()["status"], "UPDATING");
        app.settle_cluster(id, ClusterStatus::UpdateFailed).await;
        let failed = app.get(&app.owner, &at).await.ok();
        assert_eq!(failed["status"], "UPDATE_FAILED");
        assert_eq!(
            failed["healthStatus"],
            json!({
                "value": "UNHEALTHY",
                "details": [{ "code": "failed", "description": "The account has no room.", "severity": "critical" }],
            })
        );
        assert_eq!(app.post(&app.owner, &at, update("Main", json!({}))).await.ok()["status"], "UPDATING");
        app.settle_cluster(id, ClusterStatus::Created).await;
        assert_eq!(status().await, "CREATED");
    }

    async fn a_cluster_whose_creation_failed_can_only_be_deleted(app) {
        let id = app.new_cluster("Main", json!({})).await;
        app.settle_cluster(id, ClusterStatus::CreateFailed).await;
        let at = path(&app, id);
        assert_eq!(
            app.post(&app.owner, &at, update("Main", json!({}))).await.refused(412),
            "The cluster is CREATE_FAILED and cannot be changed this way: delete it and create another."
        );
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
    }

    async fn an_observation_of_an_older_generation_is_not_recorded(app) {
        let system = app.system;
        let id = made(&app, "Main", json!({})).await;
        let state = app.app.db(&app.system).read(None, move |conn| clusters::state(conn, &system, id)).await.unwrap().unwrap();
        assert_eq!((state.generation, state.observed_generation), (1, 1));
        assert_eq!(state.organization_id, app.organization_id);
        app.post(&app.owner, &path(&app, id), update("Main", json!({}))).await.ok();
        let (desired, now) = (state.desired(), app.world.now());
        let settled = Settled {
            status: ClusterStatus::Created,
            reason: podium_domain::UserText::EMPTY,
            is_failed_over: desired.is_failed_over,
            health: desired.health,
            metadata: desired.metadata,
        };
        let recorded = app.app.db(&app.system).write(None, move |tx| clusters::settle(tx, &system, id, 1, &settled, &mut || podium_api::OperationId::from_raw(id.id()), now)).await;
        assert_eq!(recorded, Ok::<_, podium_db::Error>(false));
        assert_eq!(app.get(&app.owner, &path(&app, id)).await.ok()["status"], "UPDATING");
    }

    async fn what_the_loop_records_is_in_the_change_log(app) {
        let id = app.new_cluster("Main", json!({})).await;
        let changes = app.rows("changes").await;
        app.settle_cluster(id, ClusterStatus::Created).await;
        assert_eq!(app.rows("changes").await, changes + 1);
    }

    async fn of_two_changes_at_once_one_waits(app) {
        let id = made(&app, "Main", json!({})).await;
        let at = path(&app, id);
        let change = |name: &str| app.post(&app.owner, &at, update(name, Value::Null));
        let (one, other) = (change("One"), change("Other"));
        let answers = futures_util::future::join_all([one, other]).await;
        let mut codes: Vec<u16> = answers.iter().map(podium_testkit::Answer::code).collect();
        codes.sort_unstable();
        assert_eq!(codes, [200, 409]);
    }

    async fn what_the_loop_records_changes_the_hash_of_the_tag_and_not_its_version(app) {
        let id = app.new_cluster("Main", json!({})).await;
        let at = path(&app, id);
        let before = app.get(&app.owner, &at).await.header("etag").to_owned();
        app.settle_cluster(id, ClusterStatus::Created).await;
        let read = app.call("GET", &at).by(&app.owner).header("if-none-match", &before).send().await;
        assert_eq!(read.ok()["status"], "CREATED", "it is sent again");
        let after = read.header("etag");
        assert_ne!(after, before);
        assert_eq!(after.split('-').next(), before.split('-').next());
        let change = app.call("POST", &at).by(&app.owner).header("if-match", &before);
        assert_eq!(change.json(&update("Main", json!({}))).send().await.code(), 200, "the version still fits");
    }
}
