//! Creating, reading, listing and describing deploys.

use podium_api::Id;
use std::time::Duration;

use podium_api::enums::DeploymentStatus;
use podium_domain::deployments::Bundle;
use podium_testkit::{Engine, TestApp, block_on, on_both_engines};
use serde_json::{Value, json};

use super::{Place, id, url};

on_both_engines! {
    async fn a_deploy_is_created_with_an_image_tag_and_an_upload_url(app) {
        let place = Place::new(&app).await;
        let body = json!({
            "type": "IMAGE_AND_DAG",
            "description": "The first",
            "git": {
                "provider": "HOSTED", "commitSha": "4f1c", "account": "ada", "repo": "dags", "branch": "main",
                "remoteUrl": "", "authorName": "Ada",
            },
        });
        let deploy = place.create_as(&app.owner, body).await.ok();
        insta::assert_json_snapshot!(deploy, @r#"
        {
          "id": "cmywpiww00007000000000000",
          "deploymentId": "cmywpiww00006000000000000",
          "type": "IMAGE_AND_DAG",
          "status": "INITIALIZED",
          "description": "The first",
          "imageRepository": "podium.test/bare-cmywpiww00006000000000000",
          "imageTag": "deploy-2027-01-15t08-00-00-jipcl6u3",
          "platformRuntimeVersion": "3.3.2",
          "airflowVersion": "3.3.2",
          "isDagDeployEnabled": true,
          "dagsUploadUrl": "https://podium.test/v1/uploads/cmywpiww00007000000000000?kind=dags&expires=1800086400&limit=1073741824&signature=f460dec90bdb5a2ed0d92a7dff0cd078218c56100ec7e2d836fcfe9078c9c880",
          "bundles": [],
          "git": {
            "provider": "HOSTED",
            "commitSha": "4f1c",
            "account": "ada",
            "repo": "dags",
            "branch": "main",
            "authorName": "Ada"
          },
          "createdAt": "2027-01-15T08:00:00.000Z",
          "createdBySubject": {
            "id": "cmywpiww00001000000000000",
            "subjectType": "USER",
            "username": "owner@localhost",
            "fullName": "Owner",
            "avatarUrl": "https://podium.test/pictures/O.svg"
          },
          "updatedAt": "2027-01-15T08:00:00.000Z",
          "updatedBySubject": {
            "id": "cmywpiww00001000000000000",
            "subjectType": "USER",
            "username": "owner@localhost",
            "fullName": "Owner",
            "avatarUrl": "https://podium.test/pictures/O.svg"
          }
        }
        "#);
        assert_eq!(place.get(&deploy).await, without_urls(&deploy));
        assert_eq!(place.state().await.status, DeploymentStatus::Healthy, "nothing rolls out yet");
    }

    async fn each_type_has_the_urls_that_it_needs(app) {
        let place = Place::new(&app).await;
        let urls = |deploy: &Value| {
            ["dagsUploadUrl", "bundleUploadUrl"].map(|name| deploy[name].is_string())
        };
        for (kind, expected) in [
            ("IMAGE_AND_DAG", [true, false]),
            ("DAG_ONLY", [true, false]),
            ("IMAGE_ONLY", [false, false]),
            ("BUNDLE", [false, true]),
        ] {
            let deploy = place.create(kind).await;
            assert_eq!(urls(&deploy), expected, "{kind}");
            assert_eq!((&deploy["type"], &deploy["status"]), (&json!(kind), &json!("INITIALIZED")));
        }
    }

    async fn image_tags_are_unique(app) {
        let place = Place::new(&app).await;
        let mut tags = Vec::new();
        for _ in 0..5 {
            tags.push(place.create("IMAGE_ONLY").await["imageTag"].as_str().unwrap().to_owned());
        }
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), 5);
        assert!(tags.iter().all(|tag| tag.starts_with("deploy-2027-01-15t08-00-00-")), "{tags:?}");
    }

    async fn every_wrong_field_is_named(app) {
        let place = Place::new(&app).await;
        let git = |git: Value| json!({ "type": "DAG_ONLY", "git": git });
        for (body, wrong) in [
            (json!({}), vec!["type: required"]),
            (json!({ "type": "EVERYTHING" }), vec!["type: enum"]),
            (json!({ "type": "DAG_ONLY", "description": "x".repeat(501) }), vec!["description: maxLength"]),
            (json!({ "type": "BUNDLE" }), vec!["bundleType: required", "bundleMountPath: required"]),
            (json!({ "type": "DAG_ONLY", "bundleType": "dbt" }), vec!["bundleType: notAllowed"]),
            (git(json!({})), vec!["git.provider: required", "git.commitSha: required"]),
            (git(json!({ "provider": "HOSTED", "commitSha": "" })), vec![
                "git.commitSha: required", "git.account: required", "git.repo: required",
            ]),
            (
                git(json!({
                    "provider": "HOSTED", "commitSha": "1", "account": "a", "repo": "b", "remoteUrl": "https://x.test",
                })),
                vec!["git.remoteUrl: notAllowed"],
            ),
            (git(json!({ "provider": "GENERIC", "commitSha": "1" })), vec!["git.remoteUrl: required"]),
            (
                git(json!({
                    "provider": "GENERIC", "commitSha": "1", "remoteUrl": "https://x.test", "account": "a", "repo": "b",
                })),
                vec!["git.account: notAllowed", "git.repo: notAllowed"],
            ),
            (
                json!({ "type": "DAG_ONLY", "platformRuntimeVersion": "3.1.0" }),
                vec!["platformRuntimeVersion: notAllowed"],
            ),
            (
                json!({ "type": "IMAGE_ONLY", "platformRuntimeVersion": "3.1.0" }),
                vec!["platformRuntimeVersion: downgrade"],
            ),
            (
                json!({ "type": "IMAGE_ONLY", "platformRuntimeVersion": "9.9.9" }),
                vec!["platformRuntimeVersion: unknown"],
            ),
        ] {
            let answer = place.create_as(&app.owner, body.clone()).await;
            assert_eq!(answer.wrong_fields(), wrong, "{body}");
        }
        let empty = json!({
            "type": "DAG_ONLY", "description": null, "bundleType": "", "bundleMountPath": "", "git": null,
            "platformRuntimeVersion": "",
        });
        place.create_as(&app.owner, empty).await.ok();
    }

    async fn a_bundle_is_mounted_below_the_home(app) {
        let place = Place::new(&app).await;
        let bundle = |path: &str| json!({ "type": "BUNDLE", "bundleType": "dbt", "bundleMountPath": path });
        for path in ["dbt", "include/dbt", "/usr/local/airflow/dbt", "/usr/local/airflow/dags/dbt", "/usr/local/airflow/..."] {
            let made = place.create_as(&app.owner, bundle(path)).await.ok();
            assert_eq!(made["bundleMountPath"], path);
            assert_eq!(place.get(&made).await["bundleMountPath"], path, "it reads back as it was sent");
        }
        for path in [
            "/dbt", "/", "//usr/local/airflow/dbt", "/usr/local/airflow", "/usr/local/airflow/", "/usr/local/airflow//dbt",
            "/usr/local/airflow/../dbt", "/usr/local/airflow/dbt/", "/usr/local/airflow/./dbt", "/usr/local/airflow2/dbt",
            "/usr/local/airflow/a/../../../etc", "/USR/local/airflow/dbt", "/etc/passwd", "a/../b", "..", "./a", "a//b", "a/",
            "usr/local/airflow/..", "/usr/local/airflow/dbt\\x", "/usr/local/airflow/ dbt",
        ] {
            let answer = place.create_as(&app.owner, bundle(path)).await;
            assert_eq!(answer.wrong_fields(), ["bundleMountPath: format"], "{path}");
        }
    }

    async fn two_spellings_of_a_mount_path_are_one_place(app) {
        let place = Place::new(&app).await;
        let deploy = async |path: &str| {
            let body = json!({ "type": "BUNDLE", "bundleType": "dbt", "bundleMountPath": path });
            let made = place.create_as(&app.owner, body).await.ok();
            let version = place.upload(url(&made)).await;
            place.finalize(&made, json!({ "bundleTarballVersion": version })).await.ok()
        };
        let paths = |deploy: &Value| -> Vec<String> {
            let bundles = deploy["bundles"].as_array().unwrap().iter();
            bundles.map(|bundle| bundle["mountPath"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(paths(&deploy("dbt").await), ["dbt"]);
        assert_eq!(paths(&deploy("/usr/local/airflow/dbt").await), ["/usr/local/airflow/dbt"], "in its place");
        assert_eq!(paths(&deploy("/usr/local/airflow/a").await), ["/usr/local/airflow/a", "/usr/local/airflow/dbt"]);
        for inside in ["dbt/models", "/usr/local/airflow/dbt/models", "a/b"] {
            let body = json!({ "type": "BUNDLE", "bundleType": "dbt", "bundleMountPath": inside });
            let answer = place.create_as(&app.owner, body).await;
            assert_eq!(answer.wrong_fields(), ["bundleMountPath: collides"], "{inside}");
        }
        // Removing takes either spelling, too.
        let body = json!({ "type": "BUNDLE", "bundleType": "dbt", "bundleMountPath": "dbt" });
        let removal = place.create_as(&app.owner, body).await.ok();
        let removed = place.finalize(&removal, json!({ "bundleTarballVersion": "" })).await.ok();
        assert_eq!(paths(&removed), ["/usr/local/airflow/a"]);
    }

    async fn a_bundle_does_not_lie_inside_another(app) {
        let place = Place::new(&app).await;
        let deploy_id = app.world.id();
        place.change(move |row| {
            let [mount_path, bundle_type, version] = ["dbt", "dbt", "1"].map(str::to_owned);
            row.spec.release.bundles = vec![Bundle { mount_path, bundle_type, version, deploy_id }];
        }).await;
        let body = json!({ "type": "BUNDLE", "bundleType": "dbt", "bundleMountPath": "dbt/models" });
        let answer = place.create_as(&app.owner, body).await;
        assert_eq!(answer.wrong_fields(), ["bundleMountPath: collides"]);
    }

    async fn without_dag_deploys_there_is_no_dag_upload(app) {
        let place = Place::new(&app).await;
        place.change(|row| row.spec.is_dag_deploy_enabled = false).await;
        for kind in ["DAG_ONLY", "IMAGE_ONLY"] {
            let answer = place.create_as(&app.owner, json!({ "type": kind })).await;
            assert_eq!(answer.wrong_fields(), ["type: notAllowed"], "{kind}");
        }
        let deploy = place.create("IMAGE_AND_DAG").await;
        assert_eq!((&deploy["isDagDeployEnabled"], &deploy["dagsUploadUrl"]), (&json!(false), &Value::Null));
        assert!(place.create("BUNDLE").await["bundleUploadUrl"].is_string());
    }

    async fn a_hibernating_deployment_says_how_to_wake_it(app) {
        let place = Place::new(&app).await;
        place.change(|row| row.status = DeploymentStatus::Hibernating).await;
        let message = place.create_as(&app.owner, json!({ "type": "DAG_ONLY" })).await.refused(400);
        assert_eq!(
            message,
            "The deployment is hibernating: wake it first, with `{\"isHibernating\": false}` to its \
             `hibernation-override`, and deploy once it is HEALTHY. Or create the deploy with `\"wake\": true`."
        );
    }

    async fn a_deploy_to_a_deployment_in_creation_is_rolled_out_once_it_runs(app) {
        let workspace = app.workspace("Analytics").await;
        let body = json!({ "name": "New", "workspaceId": workspace });
        let made = app.post(&app.owner, &app.path("/deployments"), body).await.ok();
        let place = Place { app: &app, id: id(&made).parse().unwrap() };
        let before = place.state().await;
        let version = place.deploy("DAG_ONLY").await["dagTarballVersion"].clone();
        let after = place.state().await;
        assert_eq!((after.status, &after.status_reason), (DeploymentStatus::Creating, &before.status_reason));
        app.settle().await;
        let shown = app.get(&app.owner, &app.path(&format!("/deployments/{}", place.id))).await.ok();
        assert_eq!((&shown["status"], &shown["dagTarballVersion"]), (&json!("HEALTHY"), &version));
    }

    async fn deploys_are_listed_newest_first(app) {
        let place = Place::new(&app).await;
        let other = app.deployment(app.workspace("Other").await).await;
        app.post(&app.owner, &app.path(&format!("/deployments/{other}/deploys")), json!({ "type": "DAG_ONLY" }))
            .await
            .ok();
        let mut made = Vec::new();
        for _ in 0..3 {
            made.push(place.create("DAG_ONLY").await);
            app.advance(Duration::from_secs(1));
        }
        made.reverse();
        let ids = |list: &Value| -> Vec<String> {
            list["deploys"].as_array().unwrap().iter().map(|deploy| id(deploy).to_owned()).collect()
        };
        let list = app.get(&app.owner, &place.path("")).await.ok();
        assert_eq!(ids(&list), made.iter().map(|deploy| id(deploy).to_owned()).collect::<Vec<_>>());
        assert_eq!((&list["totalCount"], &list["limit"]), (&json!(3), &json!(20)));
        assert_eq!(list["deploys"][0], without_urls(&made[0]), "a list shows no upload URLs");
        let second = app.get(&app.owner, &place.path("?offset=1&limit=1")).await.ok();
        assert_eq!(ids(&second), [id(&made[1])]);
    }

    async fn only_the_description_is_updated(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        app.advance(Duration::from_secs(1));
        let path = place.path(&format!("/{}", id(&deploy)));
        let body = json!({ "description": "Better", "type": "BUNDLE", "status": "DEPLOYED" });
        let changed = app.post(&app.owner, &path, body).await.ok();
        let mut expected = without_urls(&deploy);
        expected["description"] = "Better".into();
        expected["updatedAt"] = "2027-01-15T08:00:01.000Z".into();
        assert_eq!(changed, expected);
        assert_eq!(app.post(&app.owner, &path, json!({})).await.ok()["description"], "Better");
        let cleared = app.post(&app.owner, &path, json!({ "description": "" })).await.ok();
        assert_eq!(cleared["description"], "");
        assert_eq!(place.get(&deploy).await, cleared);
        let nowhere = place.path(&format!("/{}", app.world.id::<Id>()));
        for answer in [app.get(&app.owner, &nowhere).await, app.post(&app.owner, &nowhere, json!({})).await] {
            assert_eq!(answer.refused(404), "There is no such deploy, or you may not see it.");
        }
    }

    async fn a_deploy_is_found_below_its_own_deployment_only(app) {
        let place = Place::new(&app).await;
        let deploy = place.create("DAG_ONLY").await;
        let other = app.deployment(app.workspace("Other").await).await;
        for rest in ["", "/finalize", "/rollback"] {
            let path = app.path(&format!("/deployments/{other}/deploys/{}{rest}", id(&deploy)));
            app.post(&app.owner, &path, json!({})).await.refused(404);
        }
    }
}

fn without_urls(deploy: &Value) -> Value {
    let mut deploy = deploy.clone();
    let fields = deploy.as_object_mut().expect("a deploy is an object");
    fields.retain(|name, _| !name.ends_with("UploadUrl"));
    deploy
}

/// What was found: such deploys ended DEPLOYED and HEALTHY, with an image that nobody had pushed.
fn where_no_images_run_a_deploy_of_one_is_refused(engine: Engine) {
    block_on(async {
        let app = TestApp::start(engine).await;
        app.plane.script().lock().has_no_images = true;
        let place = Place::new(&app).await;
        place.change(|row| row.spec.runtime_version = "3.1.0".into()).await;
        for body in [
            json!({ "type": "IMAGE_ONLY" }),
            json!({ "type": "IMAGE_AND_DAG" }),
            json!({ "type": "IMAGE_ONLY", "platformRuntimeVersion": "3.1.0" }),
        ] {
            let answer = place.create_as(&app.owner, body.clone()).await;
            assert_eq!(answer.wrong_fields(), ["type: notAllowed"], "{body}");
            for word in ["DAG_ONLY", "platformRuntimeVersion"] {
                assert!(answer.text().contains(word), "{}", answer.text());
            }
        }
        assert_eq!(app.rows("deploys").await, 0);
        place.deploy("DAG_ONLY").await;
        let before = place.state().await.spec.release;
        let upgrade = json!({ "type": "IMAGE_ONLY", "platformRuntimeVersion": "3.3.2" });
        let upgrade = place.create_as(&app.owner, upgrade).await.ok();
        place.finalize(&upgrade, json!({})).await.ok();
        let spec = place.state().await.spec;
        assert_eq!(spec.runtime_version, "3.3.2");
        assert_eq!(
            (spec.release.image_tag, spec.release.dag_version),
            (before.image_tag, before.dag_version)
        );
    });
}

#[test]
fn where_no_images_run_a_deploy_of_one_is_refused_on_sqlite() {
    where_no_images_run_a_deploy_of_one_is_refused(Engine::Sqlite);
}

#[test]
fn where_no_images_run_a_deploy_of_one_is_refused_on_postgres() {
    where_no_images_run_a_deploy_of_one_is_refused(Engine::Postgres);
}
