//! `/organizations/{organizationId}/cluster-options` and `/organizations/{organizationId}/deployment-options`

use podium_api::Id;
use podium_domain::On;
use podium_testkit::{TestApp, on_both_engines, role};
use serde_json::{Value, json};

async fn deployment_options(app: &TestApp, query: &str) -> Value {
    app.get(&app.owner, &app.path(&format!("/deployment-options?{query}"))).await.ok()
}

fn names<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|item| item[field].as_str().unwrap()).collect()
}

on_both_engines! {
    async fn every_provider_offers_regions_machines_and_networks(app) {
        let options = app.get(&app.owner, &app.path("/cluster-options?type=DEDICATED")).await.ok();
        assert_eq!(names(&options, "provider"), ["AWS", "AZURE", "GCP"]);
        let defaults = |index: usize| {
            let of = &options[index];
            let mut defaults = of.clone();
            for list in ["regions", "nodeInstances", "databaseInstances"] {
                assert!(!of[list].as_array().unwrap().is_empty());
                defaults.as_object_mut().unwrap().remove(list);
            }
            for (list, default) in [
                ("regions", "defaultRegion"),
                ("nodeInstances", "defaultNodeInstance"),
                ("databaseInstances", "defaultDatabaseInstance"),
            ] {
                assert!(of[list].as_array().unwrap().contains(&of[default]), "{default}");
            }
            defaults
        };
        assert_eq!(
            defaults(0),
            json!({
                "provider": "AWS",
                "defaultRegion": {
                    "name": "us-east-1", "location": "N. Virginia", "limited": false, "bannedInstances": [],
                },
                "defaultNodeInstance": { "name": "m5.xlarge", "cpu": 4, "memory": "16Gi" },
                "defaultDatabaseInstance": { "name": "db.t3.medium", "cpu": 2, "memory": "4Gi" },
                "nodeCountMin": 2, "nodeCountDefault": 20, "nodeCountMax": 100,
                "defaultVpcSubnetRange": "172.20.0.0/20",
            })
        );
        assert_eq!(
            defaults(2),
            json!({
                "provider": "GCP",
                "defaultRegion": {
                    "name": "us-central1", "location": "Iowa", "limited": false, "bannedInstances": [],
                },
                "defaultNodeInstance": { "name": "n2-standard-4", "cpu": 4, "memory": "16Gi" },
                "defaultDatabaseInstance": { "name": "db-custom-2-7680", "cpu": 2, "memory": "7.5Gi" },
                "nodeCountMin": 2, "nodeCountDefault": 20, "nodeCountMax": 100,
                "defaultVpcSubnetRange": "172.20.0.0/22",
                "defaultPodSubnetRange": "172.21.0.0/19",
                "defaultServiceSubnetRange": "172.22.0.0/22",
                "defaultServicePeeringRange": "172.23.0.0/20",
            })
        );
        assert_eq!(defaults(1)["defaultVpcSubnetRange"], "172.20.0.0/19");
        assert_eq!(defaults(1).get("defaultPodSubnetRange"), None);
    }

    async fn cluster_options_take_a_type_and_may_take_a_provider(app) {
        let get = async |query: &str| {
            app.get(&app.owner, &app.path(&format!("/cluster-options?{query}"))).await
        };
        assert_eq!(get("").await.wrong_fields(), ["type: required"]);
        assert_eq!(get("type=").await.wrong_fields(), ["type: enum"]);
        assert_eq!(get("type=STANDARD&provider=aws").await.wrong_fields(), ["provider: enum", "type: enum"]);
        for kind in ["DEDICATED", "HYBRID"] {
            let gcp = get(&format!("type={kind}&provider=GCP")).await.ok();
            assert_eq!(names(&gcp, "provider"), ["GCP"]);
            assert_eq!(get(&format!("type={kind}&provider=")).await.ok().as_array().unwrap().len(), 3);
        }
    }

    async fn cluster_options_are_for_every_member_and_nobody_else(app) {
        let path = app.path("/cluster-options?type=HYBRID");
        let workspace = app.workspace("Data").await;
        let token = app.token("ci", "WORKSPACE", workspace, "WORKSPACE_MEMBER").await;
        for actor in [&app.member("plain").await, &token] {
            assert_eq!(app.get(actor, &path).await.code(), 200);
        }
        let stranger = app.stranger().await;
        let unseen = app.get(&stranger, &path).await.refused(404);
        assert_eq!(unseen, "There is no such organization, or you may not see it.");
        assert_eq!(app.call("GET", &path).send().await.code(), 401);
        let range = json!({ "ipAddressRange": "127.0.0.0/8" });
        app.post(&app.owner, &app.path("/allowed-ip-address-ranges"), range).await.ok();
        assert_eq!(app.call("GET", &path).by(&token).from("10.0.0.1").send().await.code(), 403);
    }

    async fn deployments_are_offered_runtimes_machines_and_bounds(app) {
        let options = deployment_options(&app, "").await;
        let releases = &options["runtimeReleases"];
        assert_eq!(
            releases[0],
            json!({
                "version": "3.3.2",
                "airflowVersion": "3.3.2",
                "channel": "stable",
                "releaseDate": "2026-09-17T00:00:00.000Z",
                "airflowDatabaseMigration": false,
                "platformDatabaseMigration": false,
            })
        );
        assert_eq!(names(releases, "version").last(), Some(&"2.9.0"));
        assert_eq!(options["executors"], json!(["CELERY", "KUBERNETES", "PLATFORM"]));
        assert_eq!(names(&options["workerMachines"], "name"), ["A5", "A10", "A20", "A40", "A60", "A120", "A160"]);
        assert_eq!(
            options["workerMachines"][0],
            json!({
                "name": "A5",
                "spec": { "cpu": "1", "memory": "2Gi", "ephemeralStorage": "10Gi", "concurrency": 5 },
                "concurrency": { "floor": 1, "default": 5, "ceiling": 15 },
            })
        );
        assert_eq!(
            options["schedulerMachines"][3],
            json!({ "name": "EXTRA_LARGE", "spec": { "cpu": "8", "memory": "16Gi" } })
        );
        assert_eq!(
            options["workerQueues"],
            json!({
                "minWorkers": { "floor": 0, "default": 0, "ceiling": 200 },
                "maxWorkers": { "floor": 1, "default": 10, "ceiling": 200 },
                "workerConcurrency": { "floor": 1, "default": 5, "ceiling": 480 },
            })
        );
        assert_eq!(
            options["resourceQuotas"],
            json!({
                "defaultPodSize": {
                    "cpu": { "floor": "0.25", "default": "0.25", "ceiling": "32" },
                    "memory": { "floor": "0.5Gi", "default": "0.5Gi", "ceiling": "64Gi" },
                },
                "resourceQuota": {
                    "cpu": { "floor": "0.25", "default": "10", "ceiling": "1600" },
                    "memory": { "floor": "0.5Gi", "default": "20Gi", "ceiling": "3200Gi" },
                },
            })
        );
        assert_eq!(options["workloadIdentityOptions"], json!([]));
    }

    async fn deployment_options_are_all_that_there_is_whatever_is_asked_for(app) {
        let all = deployment_options(&app, "").await;
        for query in [
            "deploymentType=STANDARD&cloudProvider=AWS",
            "deploymentType=HYBRID",
            "executor=KUBERNETES",
            "deploymentType=DEDICATED&executor=PLATFORM",
            "deploymentType=HYBRID&executor=PLATFORM",
            "deploymentType=&executor=&cloudProvider=&deploymentId=",
        ] {
            assert_eq!(deployment_options(&app, query).await, all, "{query}");
        }
        let path = app.path("/deployment-options?deploymentType=BIG&executor=ABACUS&cloudProvider=MOON");
        let wrong = app.get(&app.owner, &path).await.wrong_fields();
        assert_eq!(wrong, ["deploymentType: enum", "executor: enum", "cloudProvider: enum"]);
    }

    async fn a_deployment_is_offered_the_runtimes_that_it_may_move_to(app) {
        let workspace = app.workspace("Data").await;
        let id = app.deployment(workspace).await;
        let query = format!("deploymentId={id}");
        assert_eq!(names(&deployment_options(&app, &query).await["runtimeReleases"], "version"), ["3.3.2"]);
        let spec = app.column("deployments", id, "spec").await;
        let older = spec.replace("\"runtimeVersion\":\"3.3.2\"", "\"runtimeVersion\":\"3.3.0\"");
        app.set_column("deployments", id, "spec", &format!("'{older}'")).await;
        assert_eq!(
            names(&deployment_options(&app, &query).await["runtimeReleases"], "version"),
            ["3.3.2", "3.3.1", "3.3.0"]
        );
        let hybrid = older.replace("\"kind\":\"STANDARD\"", "\"kind\":\"HYBRID\"");
        app.set_column("deployments", id, "spec", &format!("'{hybrid}'")).await;
        let all = deployment_options(&app, "").await;
        for list in ["executors", "schedulerMachines", "workerMachines"] {
            assert_eq!(deployment_options(&app, &query).await[list], all[list]);
        }
    }

    async fn an_invisible_deployment_is_not_revealed(app) {
        let workspace = app.workspace("Data").await;
        let id = app.deployment(workspace).await;
        let member = role(On::Organization, "ORGANIZATION_MEMBER");
        let guest = app.user_with("guest", vec![member, role(On::Workspace(workspace), "WORKSPACE_MEMBER")]).await;
        let path = app.path(&format!("/deployment-options?deploymentId={id}"));
        assert_eq!(app.get(&guest, &path).await.code(), 200);
        let plain = app.member("plain").await;
        let unseen = app.get(&plain, &path).await.refused(404);
        assert_eq!(unseen, "There is no such deployment, or you may not see it.");
        for absent in [app.world.id::<Id>().to_string(), "nonsense".into()] {
            let path = app.path(&format!("/deployment-options?deploymentId={absent}"));
            assert_eq!(app.get(&app.owner, &path).await.refused(404), unseen);
        }
    }
}
