//! What a new deployment must say, and what it is given where it does not.

use podium_api::Id;
use std::collections::HashSet;

use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{create, path, queue, with};

on_both_engines! {
    async fn a_name_and_a_workspace_are_enough(app) {
        let workspace = app.workspace("Analytics").await;
        let body = json!({ "name": " Reports ", "workspaceId": workspace });
        let made = app.post(&app.owner, &app.path("/deployments"), body).await;
        insta::assert_json_snapshot!(made.ok(), @r#"
        {
          "id": "cmywpiww00006000000000000",
          "name": "Reports",
          "description": "",
          "organizationId": "cmywpiww00000000000000000",
          "workspaceId": "cmywpiww00004000000000000",
          "workspaceName": "Analytics",
          "type": "STANDARD",
          "namespace": "crimson-river-6989",
          "status": "CREATING",
          "statusReason": "The deployment is being created.",
          "airflowVersion": "3.3.2",
          "platformRuntimeVersion": "3.3.2",
          "runtimeVersion": "3.3.2",
          "imageRepository": "podium.test/crimson-river-6989",
          "imageTag": "3.3.2",
          "imageVersion": "3.3.2",
          "isCicdEnforced": false,
          "isDagDeployEnabled": true,
          "isDevelopmentMode": false,
          "isHighAvailability": false,
          "executor": "CELERY",
          "schedulerSize": "SMALL",
          "schedulerCpu": "1",
          "schedulerMemory": "2Gi",
          "schedulerReplicas": 1,
          "workerQueues": [
            {
              "id": "cmywpiww00008000000000000",
              "name": "default",
              "isDefault": true,
              "platformMachine": "A5",
              "minWorkerCount": 0,
              "maxWorkerCount": 10,
              "workerConcurrency": 5,
              "podCpu": "1",
              "podMemory": "2Gi",
              "podEphemeralStorage": "10Gi"
            }
          ],
          "defaultTaskPodCpu": "0.25",
          "defaultTaskPodMemory": "0.5Gi",
          "resourceQuotaCpu": "10",
          "resourceQuotaMemory": "20Gi",
          "environmentVariables": [],
          "contactEmails": [],
          "externalIPs": [],
          "drExternalIPs": [],
          "uiUrl": "https://podium.test/deployments/cmywpiww00006000000000000",
          "apiUrl": "https://podium.test/airflow/crimson-river-6989/api/v2",
          "webServerUrl": "https://podium.test/airflow/crimson-river-6989",
          "webServerIngressHostname": "podium.test",
          "webServerAirflowApiUrl": "https://podium.test/airflow/crimson-river-6989/api/v2",
          "webServerCpu": "1",
          "webServerMemory": "2Gi",
          "webServerReplicas": 1,
          "createdAt": "2027-01-15T08:00:00.000Z",
          "createdBy": {
            "id": "cmywpiww00001000000000000",
            "subjectType": "USER",
            "username": "owner@localhost",
            "fullName": "Owner",
            "avatarUrl": "https://podium.test/pictures/O.svg"
          },
          "updatedAt": "2027-01-15T08:00:00.000Z",
          "updatedBy": {
            "id": "cmywpiww00001000000000000",
            "subjectType": "USER",
            "username": "owner@localhost",
            "fullName": "Owner",
            "avatarUrl": "https://podium.test/pictures/O.svg"
          }
        }
        "#);
        assert_eq!(made.header("etag").split('-').next(), Some("\"1"));
        let read = app.get(&app.owner, &path(&app, made.id())).await;
        assert_eq!((read.ok(), read.header("etag")), (made.ok(), made.header("etag")));
    }

    async fn every_setting_in_the_request_is_stored(app) {
        let workspace = app.workspace("Analytics").await;
        let schedule = json!({
            "description": "Nights", "hibernateAtCron": "0 20 * * *", "wakeAtCron": "0 6 * * 1-5", "isEnabled": true,
        });
        let said = json!({
            "type": "STANDARD", "name": "Reports", "workspaceId": workspace, "description": "Daily numbers",
            "cloudProvider": "GCP", "region": "us-central1", "platformRuntimeVersion": "3.1.0", "executor": "PLATFORM",
            "schedulerSize": "SMALL", "isHighAvailability": false, "isDevelopmentMode": true, "isCicdEnforced": true,
            "isDagDeployEnabled": false, "contactEmails": ["ops@podium.test"],
            "defaultTaskPodCpu": "0.5", "defaultTaskPodMemory": "1Gi", "resourceQuotaCpu": "20",
            "resourceQuotaMemory": "40Gi",
        });
        let others = json!({
            "workloadIdentity": "reports@podium.test", "scalingSpec": { "hibernationSpec": { "schedules": [schedule] } },
            "environmentVariables": [{ "key": "MODE", "value": "fast", "isSecret": false }],
            "workerQueues": [queue("default", json!({})), queue("big", json!({
                "platformMachine": "A40", "minWorkerCount": 1, "maxWorkerCount": 3, "workerConcurrency": 120,
                "podEphemeralStorage": "20Gi",
            }))],
            "notAFieldOfAnything": { "at": "all" },
        });
        let answer = create(&app, workspace, with(said.clone(), others)).await;
        let made = answer.ok();
        for (field, value) in said.as_object().unwrap() {
            assert_eq!(made[field], *value, "{field}");
        }
        assert_eq!(made["effectiveWorkloadIdentity"], "reports@podium.test");
        assert_eq!(made["scalingSpec"], json!({ "hibernationSpec": { "schedules": [schedule] } }));
        assert_eq!(
            made["environmentVariables"],
            json!([{ "key": "MODE", "value": "fast", "isSecret": false, "updatedAt": "2027-01-15T08:00:00.000Z" }])
        );
        let big = &made["workerQueues"][0];
        assert_eq!(*big, json!({
            "id": big["id"], "name": "big", "isDefault": false, "platformMachine": "A40", "minWorkerCount": 1,
            "maxWorkerCount": 3, "workerConcurrency": 120, "podCpu": "8", "podMemory": "16Gi",
            "podEphemeralStorage": "20Gi",
        }));
        assert_eq!((&made["airflowVersion"], &made["imageTag"]), (&json!("3.1.0"), &json!("3.1.0")));
        assert_eq!(made["notAFieldOfAnything"], Value::Null);
        assert_eq!(app.get(&app.owner, &path(&app, answer.id())).await.ok(), made);
    }

    async fn names_are_unique_in_the_workspace_without_regard_to_case(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        create(&app, here, json!({ "name": "Reports" })).await.ok();
        let taken = create(&app, here, json!({ "name": " rePorts" })).await;
        assert_eq!(
            taken.refused(409),
            "The workspace already has a deployment named `rePorts`: choose another name."
        );
        create(&app, there, json!({ "name": "Reports" })).await.ok();
        assert_eq!(app.rows("deployments").await, 2);
    }

    async fn a_name_has_1_to_500_characters(app) {
        let workspace = app.workspace("Analytics").await;
        for (name, wrong) in [
            (json!(""), "name: minLength"),
            (json!(" "), "name: required"),
            (json!("two\nlines"), "name: format"),
            (json!("x".repeat(501)), "name: maxLength"),
            (json!(null), "name: required"),
            (json!(7), "name: type"),
        ] {
            assert_eq!(create(&app, workspace, json!({ "name": name })).await.wrong_fields(), [wrong], "{name}");
        }
        create(&app, workspace, json!({ "name": "ü".repeat(500) })).await.ok();
    }

    async fn a_workspace_is_named_and_seen(app) {
        let workspace = app.workspace("Analytics").await;
        let all = app.path("/deployments");
        let wrong = app.post(&app.owner, &all, json!({})).await.wrong_fields();
        assert_eq!(wrong, ["name: required", "workspaceId: required"]);
        let wrong = create(&app, workspace, json!({ "workspaceId": "nowhere" })).await.wrong_fields();
        assert_eq!(wrong, ["workspaceId: format"]);
        let unknown = create(&app, app.world.id(), json!({})).await;
        assert_eq!(unknown.refused(404), "There is no such workspace, or you may not see it.");
    }

    async fn whether_only_tokens_deploy_defaults_to_the_workspaces_setting(app) {
        let body = json!({ "name": "Strict", "cicdEnforcedDefault": true });
        let strict = app.post(&app.owner, &app.path("/workspaces"), body).await.id().parse().unwrap();
        let lax = app.workspace("Lax").await;
        let enforced = async |workspace, others| create(&app, workspace, others).await.ok()["isCicdEnforced"].clone();
        assert_eq!(enforced(strict, json!({})).await, true);
        assert_eq!(enforced(strict, json!({ "isCicdEnforced": null })).await, true);
        assert_eq!(enforced(strict, json!({ "isCicdEnforced": false })).await, false);
        assert_eq!(enforced(lax, json!({})).await, false);
        assert_eq!(enforced(lax, json!({ "isCicdEnforced": true })).await, true);
    }

    async fn a_runtime_is_one_of_the_options(app) {
        let workspace = app.workspace("Analytics").await;
        let options = app.get(&app.owner, &app.path("/deployment-options")).await.ok();
        let newest = &options["runtimeReleases"][0]["version"];
        let made = create(&app, workspace, json!({ "platformRuntimeVersion": "" })).await.ok();
        assert_eq!(made["platformRuntimeVersion"], *newest);
        let old = create(&app, workspace, json!({ "platformRuntimeVersion": "2.10.5" })).await.ok();
        assert_eq!((&old["runtimeVersion"], &old["airflowVersion"]), (&json!("2.10.5"), &json!("2.10.5")));
        assert!(old["apiUrl"].as_str().unwrap().ends_with("/api/v1"));
        let unknown = create(&app, workspace, json!({ "platformRuntimeVersion": "1.0" })).await;
        assert_eq!(
            unknown.refused(400),
            "platformRuntimeVersion is not an available runtime; the newest stable one is 3.3.2"
        );
    }

    async fn every_deployment_has_a_name_of_its_own_in_the_data_plane(app) {
        let workspace = app.workspace("Analytics").await;
        let mut seen = HashSet::new();
        for _ in 0..20 {
            let namespace = create(&app, workspace, json!({})).await.ok()["namespace"].as_str().unwrap().to_owned();
            let parts: Vec<&str> = namespace.split('-').collect();
            let [adjective, noun, number] = parts[..] else { panic!("{namespace}") };
            assert!([adjective, noun].iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
            assert!(number.len() == 4 && number.bytes().all(|byte| byte.is_ascii_digit()));
            assert!(seen.insert(namespace));
        }
    }

    async fn a_new_deployment_is_enqueued_for_its_loop(app) {
        let workspace = app.workspace("Analytics").await;
        create(&app, workspace, json!({ "executor": "ABACUS" })).await.refused(400);
        create(&app, workspace, json!({ "platformRuntimeVersion": "0" })).await.refused(400);
        assert_eq!((app.rows("deployments").await, app.rows("work").await), (0, 0));
        let id = create(&app, workspace, json!({})).await.id();
        assert_eq!(app.rows("work").await, 1);
        assert_eq!(app.column("work", id.parse::<Id>().unwrap(), "kind").await, "deployments");
    }

    async fn a_create_repeated_with_the_same_key_creates_one_deployment(app) {
        let workspace = app.workspace("Analytics").await;
        let create = |name: &str| {
            let body = json!({ "name": name, "workspaceId": workspace });
            app.call("POST", &app.path("/deployments")).by(&app.owner).header("idempotency-key", "k").json(&body)
        };
        let first = create("Reports").send().await;
        let again = create("Reports").send().await;
        assert_eq!((again.ok(), again.header("etag")), (first.ok(), first.header("etag")));
        create("Others").send().await.refused(409);
        assert_eq!(app.rows("deployments").await, 1);
    }
}
