//! Strict deploys: one with an import error that the live version does not have fails, and what ran before keeps serving.

use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{Place, id, url};
use crate::deployments::{change, read};

const WHY: &str = "the deploy is strict, and one of its files cannot be imported: a.py, line 2: ImportError: no (breaks hello)";

impl Place<'_> {
    /// Deploys DAGs that break one, with these fields of the finalizing request.
    async fn deploy_broken(&self, more: Value) -> Value {
        let deploy = self.create("DAG_ONLY").await;
        let version = self.upload(url(&deploy)).await;
        self.app.plane.script().break_dags(&version, WHY);
        let mut body = json!({ "dagTarballVersion": version });
        for (name, value) in more.as_object().expect("fields") {
            body[name] = value.clone();
        }
        self.finalize(&deploy, body.clone()).await.ok();
        self.finalize(&deploy, body).await.ok();
        self.app.settle().await;
        deploy
    }

    async fn outcome(&self, deploy: &Value) -> (Value, Value) {
        let report = self.app.get(&self.app.owner, &self.path(&format!("/{}/report", id(deploy)))).await.ok();
        (self.get(deploy).await["status"].clone(), report.get("reason").cloned().unwrap_or_default())
    }
}

on_both_engines! {
    async fn a_strict_deploy_that_breaks_a_dag_fails(app) {
        let place = Place::new(&app).await;
        place.deploy("DAG_ONLY").await;
        app.settle().await;
        let before = place.state().await;
        let broken = place.deploy_broken(json!({ "strict": true })).await;
        assert_eq!(place.outcome(&broken).await, (json!("FAILED"), json!(WHY)));
        let after = place.state().await;
        assert_eq!((after.spec, after.observed), (before.spec, before.observed));
        let operations = app.get(&app.owner, &app.path("/operations?kinds=DEPLOY&states=FAILED")).await.ok();
        assert_eq!(operations["operations"][0]["failure"]["reason"], WHY);
    }

    async fn another_deploy_goes_live_all_the_same(app) {
        let place = Place::new(&app).await;
        place.deploy("DAG_ONLY").await;
        app.settle().await;
        for more in [json!({}), json!({ "strict": false }), json!({ "strict": null })] {
            let broken = place.deploy_broken(more).await;
            assert_eq!(place.outcome(&broken).await, (json!("DEPLOYED"), Value::Null));
        }
    }

    async fn a_deployment_can_make_all_its_deploys_strict(app) {
        let place = Place::new(&app).await;
        let first = place.deploy("DAG_ONLY").await;
        app.settle().await;
        assert_eq!(read(&app, place.id).await.get("isStrictDeployEnabled"), None, "absent unless it is set");
        let set = change(&app, place.id, json!({ "isStrictDeployEnabled": true })).await.ok();
        assert_eq!(set["isStrictDeployEnabled"], true);
        app.settle().await;
        let kept = change(&app, place.id, json!({ "description": "Daily" })).await.ok();
        assert_eq!(kept["isStrictDeployEnabled"], true);
        for more in [json!({}), json!({ "strict": false })] {
            let broken = place.deploy_broken(more).await;
            assert_eq!(place.outcome(&broken).await.0, "FAILED");
        }
        place.deploy("DAG_ONLY").await;
        app.settle().await;
        assert!(place.state().await.spec.release.is_strict);
        let version = first["dagTarballVersion"].as_str().unwrap();
        app.plane.script().break_dags(version, WHY);
        place.roll_back_to(&first).await.ok();
        app.settle().await;
        let running = place.state().await.observed.dag_version;
        assert_eq!(running.as_deref(), Some(version), "one can always go back");
        change(&app, place.id, json!({ "isStrictDeployEnabled": false })).await.ok();
        assert_eq!(read(&app, place.id).await["isStrictDeployEnabled"], false);
        let broken = place.deploy_broken(json!({})).await;
        assert_eq!(place.outcome(&broken).await.0, "DEPLOYED");
    }

    async fn finalizing_again_with_another_strictness_is_refused(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        let body = json!({ "dagTarballVersion": place.upload(url(&deploy)).await });
        place.finalize(&deploy, body.clone()).await.ok();
        let mut strict = body;
        strict["strict"] = true.into();
        let told = place.finalize(&deploy, strict).await.refused(400);
        assert!(told.contains("another value of `strict`"), "{told}");
    }
}
