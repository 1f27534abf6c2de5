//! Rollbacks: a new deploy that brings back what another left.

use std::time::Duration;

use podium_api::enums::DeploymentStatus;
use podium_testkit::on_both_engines;
use serde_json::json;

use super::{Place, id};

on_both_engines! {
    async fn a_rollback_brings_back_image_dags_bundles_runtime_and_dag_deploys(app) {
        let place = Place::new(&app).await;
        place.change(|row| row.spec.runtime_version = "3.1.0".into()).await;
        place.deploy("BUNDLE").await;
        let target = place.deploy("IMAGE_AND_DAG").await;
        let then = place.state().await;
        let removal = place.create("BUNDLE").await;
        place.finalize(&removal, json!({ "bundleTarballVersion": "" })).await.ok();
        let newer = place.create_as(&app.owner, json!({ "type": "IMAGE_ONLY", "platformRuntimeVersion": "3.3.2" }));
        place.finalize(&newer.await.ok(), json!({})).await.ok();
        place.deploy("DAG_ONLY").await;
        place.change(|row| {
            row.spec.is_dag_deploy_enabled = false;
            row.spec.description = "changed since".into();
            row.spec.is_high_availability = true;
            row.spec.scheduler_replicas = 2;
            row.status = DeploymentStatus::Healthy;
        }).await;
        let before = place.state().await;
        app.advance(Duration::from_secs(60));
        let path = place.path(&format!("/{}/rollback", id(&target)));
        let rollback = app.post(&app.owner, &path, json!({ "description": "Too soon" })).await.ok();
        assert_eq!(rollback["rollbackFromId"], target["id"]);
        assert_ne!(rollback["id"], target["id"]);
        let mut expected = target.clone();
        for name in ["id", "createdAt", "updatedAt", "rollbackFromId", "description"] {
            expected[name] = rollback[name].clone();
        }
        assert_eq!(rollback, expected, "a rollback shows what it brings back");
        assert_eq!(rollback["description"], "Too soon");
        let after = place.state().await;
        let mut expected = before.spec.clone();
        expected.runtime_version = "3.1.0".into();
        expected.is_dag_deploy_enabled = true;
        expected.release = then.spec.release.clone();
        expected.release.deploy_id = Some(id(&rollback).parse().unwrap());
        assert_eq!(after.spec, expected, "and nothing else changes");
        assert_eq!(after.status, DeploymentStatus::Deploying);
        assert_eq!(after.status_reason, "A rollback is rolling out.");
        assert_eq!(after.generation, before.generation + 1);
        let list = app.get(&app.owner, &place.path("?limit=1")).await.ok();
        assert_eq!(list["deploys"][0], rollback);
    }

    async fn the_current_deploy_is_not_gone_back_to(app) {
        let place = Place::new(&app).await;
        let first = place.deploy("DAG_ONLY").await;
        let message = place.roll_back_to(&first).await.refused(400);
        assert_eq!(message, "The deploy is already the current one: there is nothing to roll back.");
        let second = place.deploy("DAG_ONLY").await;
        let rollback = place.roll_back_to(&first).await.ok();
        place.roll_back_to(&rollback).await.refused(400);
        place.roll_back_to(&second).await.ok();
        place.roll_back_to(&rollback).await.ok();
        assert_eq!(place.state().await.spec.release.dag_version.as_deref(), first["dagTarballVersion"].as_str());
    }

    async fn a_deploy_that_was_rolled_back_from_says_so(app) {
        let place = Place::new(&app).await;
        let first = place.deploy("DAG_ONLY").await;
        let second = place.deploy("DAG_ONLY").await;
        let third = place.deploy("DAG_ONLY").await;
        app.settle().await;
        let rollback = place.roll_back_to(&first).await.ok();
        let marked = place.get(&third).await;
        assert_eq!(marked["rolledBackById"], rollback["id"]);
        for other in [&first, &second, &rollback] {
            assert_eq!(place.get(other).await.get("rolledBackById"), None, "it was not current");
        }
        let list = app.get(&app.owner, &place.path("?limit=2")).await.ok();
        assert_eq!(list["deploys"][1], marked);
        let report = app.get(&app.owner, &place.path(&format!("/{}/report", id(&third)))).await.ok();
        assert_eq!((&report["state"], &report["rolledBackById"]), (&json!("LIVE"), &rollback["id"]));
        app.settle().await;
        assert_eq!(place.get(&third).await, marked);
        let forward = place.roll_back_to(&third).await.ok();
        assert_eq!(place.get(&rollback).await["rolledBackById"], forward["id"]);
        assert_eq!(place.get(&third).await, marked, "what happened has happened");
    }

    async fn a_rollback_that_did_not_come_to_be_marks_nothing(app) {
        let place = Place::new(&app).await;
        let first = place.deploy("DAG_ONLY").await;
        let second = place.deploy("DAG_ONLY").await;
        app.settle().await;
        let answer = place.roll_back_to(&first).await;
        let cancel = app.path(&format!("/operations/{}/cancel", answer.header("podium-operation")));
        app.call("POST", &cancel).by(&app.owner).send().await.ok();
        assert_eq!(place.get(&second).await.get("rolledBackById"), None, "it was cancelled");
        app.settle().await;
        app.plane.script().refuse_dags(first["dagTarballVersion"].as_str().unwrap(), "its packages are gone");
        place.roll_back_to(&first).await.ok();
        assert!(place.get(&second).await.get("rolledBackById").is_some());
        app.settle().await;
        assert_eq!(place.get(&second).await.get("rolledBackById"), None, "it failed");
    }

    async fn only_a_deployed_deploy_can_be_rolled_back_to(app) {
        let place = Place::new(&app).await;
        let waiting = place.create("DAG_ONLY").await;
        let message = place.roll_back_to(&waiting).await.refused(400);
        assert_eq!(message, "The deploy is INITIALIZED: you can roll back only to a deploy that is DEPLOYED.");
        app.advance(Duration::from_hours(24));
        let message = place.roll_back_to(&waiting).await.refused(400);
        assert!(message.starts_with("The deploy is FAILED"), "{message}");
    }

    async fn a_rollback_goes_to_an_older_runtime(app) {
        let place = Place::new(&app).await;
        place.change(|row| row.spec.runtime_version = "3.0.0".into()).await;
        let old = place.deploy("IMAGE_ONLY").await;
        let body = json!({ "type": "IMAGE_ONLY", "platformRuntimeVersion": "3.3.2" });
        let new = place.create_as(&app.owner, body).await.ok();
        place.finalize(&new, json!({})).await.ok();
        assert_eq!(place.roll_back_to(&old).await.ok()["platformRuntimeVersion"], "3.0.0");
        assert_eq!(place.state().await.spec.runtime_version, "3.0.0");
    }

    async fn a_hibernating_deployment_is_not_rolled_back(app) {
        let place = Place::new(&app).await;
        let first = place.deploy("DAG_ONLY").await;
        place.deploy("DAG_ONLY").await;
        place.change(|row| row.status = DeploymentStatus::Hibernating).await;
        place.roll_back_to(&first).await.refused(400);
    }

    async fn the_deployment_shows_the_git_of_its_current_deploy(app) {
        let place = Place::new(&app).await;
        let git = json!({ "provider": "HOSTED", "commitSha": "1", "account": "ada", "repo": "dags" });
        let deploy = place.create_as(&app.owner, json!({ "type": "IMAGE_ONLY", "git": git })).await.ok();
        place.finalize(&deploy, json!({})).await.ok();
        let shown = async || serde_json::to_value(place.state().await.spec.release.git).unwrap();
        assert_eq!(shown().await, git);
        place.deploy("IMAGE_ONLY").await;
        assert_eq!(shown().await, json!(null), "a deploy without git has none");
        let rollback = place.roll_back_to(&deploy).await.ok();
        assert_eq!((&rollback["git"], shown().await), (&git, git.clone()));
    }
}
