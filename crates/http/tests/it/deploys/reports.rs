//! Reports: what came of a deploy, from its creation to the end of its rollout.

use std::time::Duration;

use podium_domain::Permission;
use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::rights::holder;
use super::{Place, id};

impl Place<'_> {
    async fn report(&self, deploy: &Value) -> Value {
        self.app.get(&self.app.owner, &self.path(&format!("/{}/report", id(deploy)))).await.ok()
    }
}

on_both_engines! {
    async fn a_report_follows_the_rollout_to_its_end(app) {
        let place = Place::new(&app).await;
        let waiting = place.create("DAG_ONLY").await;
        assert_eq!(place.report(&waiting).await["state"], "WAITING");
        app.plane.script().lock().rollout = Duration::from_secs(60);
        let first = place.deploy("DAG_ONLY").await;
        app.settle().await;
        let report = place.report(&first).await;
        assert_eq!((&report["state"], &report["finishedAt"]), (&json!("ROLLING_OUT"), &Value::Null));
        let second = place.deploy("DAG_ONLY").await;
        assert_eq!(place.report(&first).await["state"], "SUPERSEDED", "nobody will ever see it run");
        app.settle().await;
        app.advance(Duration::from_secs(60));
        app.settle().await;
        let report = place.report(&second).await;
        let expected = json!({
            "deployId": id(&second), "state": "LIVE", "finishedAt": report["finishedAt"].clone(),
            "importErrors": [], "importErrorCount": 0, "steps": [],
        });
        assert_eq!(report, expected, "this plane has no findings");
        assert!(report["finishedAt"].is_string());
        let delete = app.path(&format!("/deployments/{}", place.id));
        assert_eq!(app.delete(&app.owner, &delete).await.code(), 204);
        assert_eq!(app.rows("deploy_reports").await, 0);
    }

    async fn a_release_that_cannot_go_live_fails_with_the_reason_and_what_ran_is_wanted_again(app) {
        let place = Place::new(&app).await;
        let good = place.deploy("DAG_ONLY").await;
        app.settle().await;
        let before = place.state().await;
        let bad = place.create("DAG_ONLY").await;
        let version = place.upload(crate::deploys::url(&bad)).await;
        app.plane.script().refuse_dags(&version, "the packages of requirements.txt do not resolve");
        let finalize = json!({ "dagTarballVersion": version });
        place.finalize(&bad, finalize.clone()).await.ok();
        app.settle().await;
        assert_eq!(place.get(&bad).await["status"], "FAILED");
        let report = place.report(&bad).await;
        assert_eq!(report["state"], "FAILED");
        assert_eq!(report["reason"], "the packages of requirements.txt do not resolve");
        assert!(report["finishedAt"].is_string());
        let after = place.state().await;
        assert_eq!(after.spec, before.spec, "desired is what serves, with its deploy");
        assert_eq!(after.spec.release.deploy_id.map(|it| it.to_string()).as_deref(), Some(id(&good)));
        assert_eq!(after.observed, before.observed);
        assert_eq!(after.status.as_str(), "HEALTHY");
        let again = place.finalize(&bad, finalize).await;
        assert_eq!(again.code(), 400);
        assert!(again.text().contains("could not go live"), "{}", again.text());
        assert_eq!(place.roll_back_to(&bad).await.code(), 400, "it never ran");
        assert_eq!(place.report(&good).await["state"], "LIVE");
    }

    async fn a_release_that_hibernates_before_it_is_live_has_not_been_rolled_out(app) {
        let place = Place::new(&app).await;
        place.deploy("DAG_ONLY").await;
        app.settle().await;
        place.change(|row| row.spec.is_development_mode = true).await;
        app.plane.script().lock().rollout = Duration::from_secs(60);
        let second = place.deploy("DAG_ONLY").await;
        app.settle().await;
        let path = app.path(&format!("/deployments/{}/hibernation-override", place.id));
        app.post(&app.owner, &path, json!({ "isHibernating": true })).await.ok();
        app.settle().await;
        app.advance(Duration::from_secs(60));
        app.settle().await;
        assert_eq!(place.state().await.status.as_str(), "HIBERNATING");
        assert_eq!(place.report(&second).await["state"], "ROLLING_OUT");
        app.post(&app.owner, &path, json!({ "isHibernating": false })).await.ok();
        app.settle().await;
        app.advance(Duration::from_secs(60));
        app.settle().await;
        assert_eq!(place.report(&second).await["state"], "LIVE");
    }

    async fn a_report_is_read_by_whoever_may_read_the_deploy(app) {
        let place = Place::new(&app).await;
        let deploy = place.deploy("DAG_ONLY").await;
        let path = place.path(&format!("/{}/report", id(&deploy)));
        let reader = holder(&app, &place, "reader", &[Permission::known("deployment.deploys.get")]).await;
        assert_eq!(app.get(&reader, &path).await.ok()["deployId"], id(&deploy));
        let other = holder(&app, &place, "other", &[Permission::known("deployment.get")]).await;
        app.get(&other, &path).await.refused(403);
        let unknown = place.path(&format!("/{}/report", podium_api::Id::from_parts(1, 2, 3)));
        app.get(&app.owner, &unknown).await.refused(404);
    }
}
