//! Deploys that wake a hibernating deployment instead of being refused.

use std::time::Duration;

use podium_api::enums::DeploymentStatus;
use podium_domain::Permission;
use podium_domain::deployments::spec::HibernationOverride;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use super::rights::holder;
use super::{Place, id, url};
use crate::deployments::{made, read};

const HOUR: Duration = Duration::from_hours(1);

/// A deployment that sleeps from eight in the evening to six in the morning; every test begins at eight in the morning.
async fn nightly(app: &TestApp) -> Place<'_> {
    let schedule = json!({ "hibernateAtCron": "0 20 * * *", "wakeAtCron": "0 6 * * *", "isEnabled": true });
    let spec = json!({ "hibernationSpec": { "schedules": [schedule] } });
    let workspace = app.workspace("Nights").await;
    let others = json!({ "name": "Nightly", "isDevelopmentMode": true, "scalingSpec": spec });
    Place { app, id: made(app, workspace, others).await }
}

async fn next_event(place: &Place<'_>) -> (Value, Value) {
    let shown = read(place.app, place.id).await;
    let status = &shown["scalingStatus"]["hibernationStatus"];
    (status["isHibernating"].clone(), status["nextEventAt"].clone())
}

on_both_engines! {
    async fn a_deploy_wakes_a_deployment_until_its_schedule_says_otherwise(app) {
        let place = nightly(&app).await;
        app.advance(13 * HOUR);
        app.settle().await;
        assert_eq!(place.state().await.status, DeploymentStatus::Hibernating);
        place.create_as(&app.owner, json!({ "type": "DAG_ONLY" })).await.refused(400);
        let answer = place.create_as(&app.owner, json!({ "type": "DAG_ONLY", "wake": true })).await;
        let waking = answer.header("podium-operation").to_owned();
        let kind = app.get(&app.owner, &app.path(&format!("/operations/{waking}"))).await.ok()["kind"].clone();
        assert_eq!(kind, "WAKE");
        let deploy = answer.ok();
        let version = place.upload(url(&deploy)).await;
        place.finalize(&deploy, json!({ "dagTarballVersion": version })).await.ok();
        app.settle().await;
        let row = place.state().await;
        assert_eq!((row.status, row.observed.dag_version), (DeploymentStatus::Healthy, Some(version)));
        let until = (json!(false), json!("2027-01-16T20:00:00.000Z"));
        assert_eq!(next_event(&place).await, until, "it sleeps again the next evening");
        app.advance(23 * HOUR);
        app.settle().await;
        assert_eq!(place.state().await.status, DeploymentStatus::Hibernating);
    }

    async fn a_deploy_ends_an_override_that_keeps_a_deployment_asleep(app) {
        let place = nightly(&app).await;
        place.change(|row| {
            row.spec.hibernation.override_ = Some(HibernationOverride { is_hibernating: true, until: None });
        }).await;
        app.settle().await;
        place.create_as(&app.owner, json!({ "type": "DAG_ONLY", "wake": true })).await.ok();
        assert_eq!(place.state().await.spec.hibernation.override_, None);
        assert_eq!(next_event(&place).await, (json!(false), json!("2027-01-15T20:00:00.000Z")));
    }

    async fn a_deployment_that_fell_asleep_again_is_woken_by_the_end_of_the_deploy(app) {
        let place = nightly(&app).await;
        let deploy = place.create_as(&app.owner, json!({ "type": "DAG_ONLY", "wake": true })).await.ok();
        let version = place.upload(url(&deploy)).await;
        app.advance(13 * HOUR);
        app.settle().await;
        assert_eq!(place.state().await.status, DeploymentStatus::Hibernating);
        place.finalize(&deploy, json!({ "dagTarballVersion": version })).await.ok();
        app.settle().await;
        let row = place.state().await;
        assert_eq!((row.status, row.observed.dag_version), (DeploymentStatus::Healthy, Some(version)));
    }

    async fn nothing_is_woken_that_is_awake(app) {
        let place = nightly(&app).await;
        let before = place.state().await;
        let answer = place.create_as(&app.owner, json!({ "type": "DAG_ONLY", "wake": true })).await;
        assert_eq!(answer.header("podium-operation"), "");
        answer.ok();
        let after = place.state().await;
        assert_eq!((after.spec, after.generation), (before.spec, before.generation));
        let always = Place::new(&app).await;
        always.create_as(&app.owner, json!({ "type": "DAG_ONLY", "wake": true })).await.ok();
    }

    async fn waking_takes_the_right_to_wake(app) {
        let place = nightly(&app).await;
        app.advance(13 * HOUR);
        app.settle().await;
        let (deploys, updates) = (Permission::known("deployment.deploys.create"), Permission::known("deployment.update"));
        let deployer = holder(&app, &place, "deployer", &[deploys]).await;
        let body = json!({ "type": "DAG_ONLY", "wake": true });
        let told = place.create_as(&deployer, body.clone()).await.refused(403);
        assert!(told.contains("`deployment.update`"), "{told}");
        assert_eq!(place.state().await.status, DeploymentStatus::Hibernating);
        let updater = holder(&app, &place, "updater", &[updates]).await;
        place.create_as(&updater, body.clone()).await.refused(403);
        let both = holder(&app, &place, "both", &[deploys, updates]).await;
        let deploy = place.create_as(&both, body).await.ok();
        assert_eq!(place.state().await.status, DeploymentStatus::Deploying);
        assert!(!id(&deploy).is_empty());
    }
}
