//! Finalizing: what a deploy makes of its deployment, once and as a whole.

use podium_api::Id;
use std::time::Duration;

use futures_util::future::join_all;
use podium_api::enums::DeploymentStatus;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{Place, id, url};

/// The work that waits for the loops: kinds and ids.
async fn pending(app: &TestApp) -> Vec<(String, String)> {
    let mut pending: Vec<(String, String)> =
        app.pending_work().await.into_iter().map(|work| (work.kind, work.id.to_string())).collect();
    pending.sort();
    pending
}

on_both_engines! {
    async fn the_upload_becomes_the_desired_state_and_is_rolled_out(app) {
        let place = Place::new(&app).await;
        let git = json!({ "provider": "GENERIC", "commitSha": "4f1c", "remoteUrl": "https://git.test/dags.git" });
        let deploy = place.create_as(&app.owner, json!({ "type": "IMAGE_AND_DAG", "git": git })).await.ok();
        assert_eq!(pending(&app).await, [("deploys".to_owned(), id(&deploy).to_owned())]);
        let before = place.state().await;
        let version = place.upload(url(&deploy)).await;
        let done = place.finalize(&deploy, json!({ "dagTarballVersion": version })).await.ok();
        assert_eq!((&done["status"], &done["dagTarballVersion"]), (&json!("DEPLOYED"), &json!(version)));
        assert_eq!(place.get(&deploy).await, done);
        let after = place.state().await;
        let mut expected = before.spec.clone();
        expected.release.deploy_id = Some(id(&deploy).parse().unwrap());
        expected.release.image_tag = deploy["imageTag"].as_str().unwrap().to_owned();
        expected.release.dag_version = Some(version);
        expected.release.git = after.spec.release.git.clone();
        assert_eq!(after.spec, expected);
        assert_eq!(serde_json::to_value(&after.spec.release.git).unwrap(), git);
        assert_eq!((after.status, after.status_reason.as_str()), (DeploymentStatus::Deploying, "A deploy is rolling out."));
        assert_eq!((after.generation, after.stamp.version), (before.generation + 1, before.stamp.version + 1));
        assert_eq!(pending(&app).await, [("deployments".to_owned(), place.id.to_string())]);
    }

    async fn the_version_that_runs_catches_up_with_the_one_that_is_wanted(app) {
        let place = Place::new(&app).await;
        let shown = async || {
            let it = app.get(&app.owner, &app.path(&format!("/deployments/{}", place.id))).await.ok();
            ["status", "dagTarballVersion", "desiredDagTarballVersion"].map(|field| it[field].clone())
        };
        let first = place.deploy("DAG_ONLY").await["dagTarballVersion"].clone();
        assert_eq!(shown().await, [json!("DEPLOYING"), Value::Null, first.clone()]);
        app.settle().await;
        assert_eq!(shown().await, [json!("HEALTHY"), first.clone(), first.clone()]);
        let minute = Duration::from_secs(60);
        app.plane.script().lock().rollout = minute;
        let second = place.deploy("DAG_ONLY").await["dagTarballVersion"].clone();
        assert_ne!(second, first);
        assert_eq!(shown().await, [json!("DEPLOYING"), first.clone(), second.clone()]);
        app.settle().await;
        assert_eq!(shown().await, [json!("DEPLOYING"), first, second.clone()], "the plane has it and is not done");
        app.advance(minute);
        app.settle().await;
        assert_eq!(shown().await, [json!("HEALTHY"), second.clone(), second]);
    }

    async fn each_type_requires_its_own_version(app) {
        let place = Place::new(&app).await;
        for (kind, body, wrong) in [
            ("DAG_ONLY", json!({}), "dagTarballVersion: required"),
            ("DAG_ONLY", json!({ "dagTarballVersion": "" }), "dagTarballVersion: required"),
            ("DAG_ONLY", json!({ "dagTarballVersion": null }), "dagTarballVersion: required"),
            ("IMAGE_AND_DAG", json!({}), "dagTarballVersion: required"),
            ("BUNDLE", json!({}), "bundleTarballVersion: required"),
            ("BUNDLE", json!({ "bundleTarballVersion": null }), "bundleTarballVersion: required"),
            ("DAG_ONLY", json!({ "dagTarballVersion": app.world.id::<Id>() }), "dagTarballVersion: unknown"),
            ("DAG_ONLY", json!({ "dagTarballVersion": "nonsense" }), "dagTarballVersion: unknown"),
            ("BUNDLE", json!({ "bundleTarballVersion": app.world.id::<Id>() }), "bundleTarballVersion: unknown"),
            ("IMAGE_ONLY", json!({ "dagTarballVersion": app.world.id::<Id>() }), "dagTarballVersion: unknown"),
            ("IMAGE_ONLY", json!({ "bundleTarballVersion": "x" }), "bundleTarballVersion: notAllowed"),
        ] {
            let deploy = place.create(kind).await;
            let answer = place.finalize(&deploy, body.clone()).await;
            assert_eq!(answer.wrong_fields(), [wrong], "{kind} {body}");
            assert_eq!(place.get(&deploy).await["status"], "INITIALIZED", "a refusal changes nothing");
        }
        assert_eq!(place.state().await.status, DeploymentStatus::Healthy);
    }

    async fn the_version_of_another_deploy_is_unknown(app) {
        let place = Place::new(&app).await;
        let (one, other) = (place.create("DAG_ONLY").await, place.create("DAG_ONLY").await);
        let version = place.upload(url(&one)).await;
        let answer = place.finalize(&other, json!({ "dagTarballVersion": version })).await;
        assert_eq!(answer.wrong_fields(), ["dagTarballVersion: unknown"]);
    }

    async fn each_type_keeps_what_it_does_not_carry(app) {
        let place = Place::new(&app).await;
        let first = place.deploy("IMAGE_AND_DAG").await;
        let image = place.deploy("IMAGE_ONLY").await;
        assert_eq!(image["dagTarballVersion"], first["dagTarballVersion"], "the DAGs are kept");
        let release = place.state().await.spec.release;
        assert_eq!(release.image_tag, image["imageTag"].as_str().unwrap());
        let dags = place.deploy("DAG_ONLY").await;
        assert_ne!(dags["dagTarballVersion"], first["dagTarballVersion"]);
        let release = place.state().await.spec.release;
        assert_eq!(release.image_tag, image["imageTag"].as_str().unwrap(), "the image is kept");
        assert_eq!(release.deploy_id.map(|id| id.to_string()).as_deref(), Some(id(&dags)));
        let bundle = place.deploy("BUNDLE").await;
        assert_eq!(bundle["dagTarballVersion"], dags["dagTarballVersion"]);
        assert_eq!(bundle["bundles"].as_array().unwrap().len(), 1);
        assert_eq!(place.deploy("DAG_ONLY").await["bundles"], bundle["bundles"], "the bundles are kept");
    }

    async fn image_only_with_an_empty_version_keeps_the_dags(app) {
        let place = Place::new(&app).await;
        let dags = place.deploy("DAG_ONLY").await["dagTarballVersion"].clone();
        for body in [json!({ "dagTarballVersion": "" }), json!({}), json!({ "dagTarballVersion": dags })] {
            let deploy = place.create("IMAGE_ONLY").await;
            assert_eq!(place.finalize(&deploy, body).await.ok()["dagTarballVersion"], dags);
        }
    }

    async fn a_bundle_with_an_empty_version_is_removed(app) {
        let place = Place::new(&app).await;
        let deployed = place.deploy("BUNDLE").await;
        let version = &deployed["bundles"][0]["desiredVersion"];
        assert_eq!(deployed["bundles"], json!([{
            "bundleType": "dbt", "mountPath": "dbt", "deployId": id(&deployed), "desiredVersion": version,
        }]));
        let replaced = place.deploy("BUNDLE").await;
        assert_eq!(replaced["bundles"].as_array().unwrap().len(), 1, "one bundle at a mount path");
        assert_ne!(&replaced["bundles"][0]["desiredVersion"], version);
        let removal = place.create("BUNDLE").await;
        let removed = place.finalize(&removal, json!({ "bundleTarballVersion": "" })).await.ok();
        assert_eq!(removed["bundles"], json!([]));
        assert_eq!(place.state().await.spec.release.bundles, []);
    }

    async fn a_bundle_that_runs_shows_its_current_version(app) {
        let place = Place::new(&app).await;
        let deployed = place.deploy("BUNDLE").await;
        let version = deployed["bundles"][0]["desiredVersion"].as_str().unwrap().to_owned();
        let observed = json!({ "bundles": [{ "mountPath": "dbt", "version": version }] });
        app.set_column("deployments", place.id, "observed", &format!("'{observed}'")).await;
        assert_eq!(place.get(&deployed).await["bundles"][0]["currentVersion"], version);
    }

    async fn finalizing_again_returns_the_same_response(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        let (version, other) = (place.upload(url(&deploy)).await, place.upload(url(&deploy)).await);
        let body = json!({ "dagTarballVersion": version });
        let first = place.finalize(&deploy, body.clone()).await;
        let before = place.state().await;
        let again = place.finalize(&deploy, body).await;
        assert_eq!((again.ok(), again.header("etag")), (first.ok(), first.header("etag")));
        assert_eq!(place.state().await.generation, before.generation, "nothing rolls out again");
        let message = place.finalize(&deploy, json!({ "dagTarballVersion": other })).await.refused(400);
        assert!(message.starts_with("The deploy has already been finalized"), "{message}");
    }

    async fn an_image_brings_its_runtime(app) {
        let place = Place::new(&app).await;
        place.change(|row| row.spec.runtime_version = "3.1.0".into()).await;
        let ask = async |runtime: &str| {
            let body = json!({ "type": "IMAGE_ONLY", "platformRuntimeVersion": runtime });
            place.create_as(&app.owner, body).await.ok()
        };
        let (older, newer) = (ask("3.2.0").await, ask("3.3.2").await);
        assert_eq!((&newer["platformRuntimeVersion"], &newer["airflowVersion"]), (&json!("3.3.2"), &json!("3.3.2")));
        assert_eq!(place.state().await.spec.runtime_version, "3.1.0", "not before it is finalized");
        let silent = place.create("IMAGE_ONLY").await;
        assert_eq!(silent["platformRuntimeVersion"], "3.1.0");
        place.finalize(&newer, json!({})).await.ok();
        assert_eq!(place.state().await.spec.runtime_version, "3.3.2");
        let message = place.finalize(&older, json!({})).await.refused(400);
        assert!(message.contains("only a rollback can go back"), "{message}");
        let kept = place.finalize(&silent, json!({})).await.ok();
        assert_eq!(kept["platformRuntimeVersion"], "3.3.2", "who asks for none keeps the deployment's");
    }

    async fn a_deployment_that_sleeps_by_now_is_not_woken_by_a_deploy(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("IMAGE_ONLY").await;
        place.change(|row| row.status = DeploymentStatus::Hibernating).await;
        place.finalize(&deploy, json!({})).await.refused(400);
        place.change(|row| row.status = DeploymentStatus::Healthy).await;
        place.finalize(&deploy, json!({})).await.ok();
    }

    async fn without_dag_deploys_the_dags_are_in_the_image(app) {
        let place = Place::new(&app).await;
        place.deploy("DAG_ONLY").await;
        let (dags, image) = (place.create("DAG_ONLY").await, place.create("IMAGE_AND_DAG").await);
        let version = place.upload(url(&dags)).await;
        place.change(|row| row.spec.is_dag_deploy_enabled = false).await;
        let answer = place.finalize(&dags, json!({ "dagTarballVersion": version })).await;
        assert_eq!(answer.wrong_fields(), ["type: notAllowed"]);
        let done = place.finalize(&image, json!({})).await.ok();
        assert_eq!((&done["dagTarballVersion"], &done["isDagDeployEnabled"]), (&Value::Null, &json!(false)));
        assert_eq!(place.state().await.spec.release.dag_version, None);
    }

    async fn of_concurrent_deploys_the_last_finalize_wins_and_nothing_is_mixed(app) {
        let place = Place::new(&app).await;
        let mut waiting = Vec::new();
        for _ in 0..6 {
            let deploy = place.create("IMAGE_AND_DAG").await;
            let version = place.upload(url(&deploy)).await;
            waiting.push((deploy, json!({ "dagTarballVersion": version })));
        }
        let answers = join_all(waiting.iter().map(|(deploy, body)| place.finalize(deploy, body.clone()))).await;
        answers.iter().for_each(|answer| drop(answer.ok()));
        let after = place.state().await;
        let release = &after.spec.release;
        let current = release.deploy_id.unwrap().to_string();
        let (deploy, body) = waiting.iter().find(|(deploy, _)| id(deploy) == current).unwrap();
        assert_eq!(release.image_tag, deploy["imageTag"].as_str().unwrap());
        assert_eq!(release.dag_version.as_deref(), body["dagTarballVersion"].as_str());
        assert_eq!(after.generation, 7, "each of them rolled out");
        let list = app.get(&app.owner, &place.path("")).await.ok();
        assert!(list["deploys"].as_array().unwrap().iter().all(|deploy| deploy["status"] == "DEPLOYED"));
    }

    async fn a_deploy_is_finalized_once_however_often_it_is_requested(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        let body = json!({ "dagTarballVersion": place.upload(url(&deploy)).await });
        let answers = join_all((0..6).map(|_| place.finalize(&deploy, body.clone()))).await;
        answers.iter().for_each(|answer| assert_eq!(answer.ok(), answers[0].ok()));
        assert_eq!(place.state().await.generation, 2);
    }
}
