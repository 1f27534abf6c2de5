//! What may be asked of each type of deployment; the whole table is tested where the rules are.

use podium_api::Id;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{change, create, dedicated, hybrid, made, path, queue, read, update, with};

/// Where a deployment of a type is made.
async fn of(app: &TestApp, kind: &str) -> Value {
    match kind {
        "DEDICATED" => json!({ "clusterId": dedicated(app, json!({})).await, "type": kind }),
        "HYBRID" => json!({ "clusterId": hybrid(app).await.0, "type": kind }),
        // Beside a cluster only where it says so.
        _ => json!({ "type": kind, "cloudProvider": "AWS", "region": "us-east-1" }),
    }
}

/// Checks that each of these is refused at creation and in an update, unless nothing is wrong with it.
async fn holds(app: &TestApp, kind: &str, table: Vec<(Value, &[&str])>) {
    let workspace = app.workspace(&format!("For {kind} {}", app.world.id::<Id>())).await;
    let place = of(app, kind).await;
    for (fields, wrong) in table {
        let answer = create(app, workspace, with(place.clone(), fields.clone())).await;
        let id = made(app, workspace, place.clone()).await;
        let changed = change(app, id, fields.clone()).await;
        for (what, answer) in [("new", answer), ("changed", changed)] {
            if wrong.is_empty() {
                assert_eq!(answer.code(), 200, "{what} {kind} {fields}: {}", answer.text());
            } else {
                assert_eq!(answer.wrong_fields(), wrong, "{what} {kind} {fields}");
            }
        }
    }
}

on_both_engines! {
    async fn standard_has_no_fields_of_hybrid(app) {
        let pool = app.world.id::<Id>();
        holds(&app, "STANDARD", vec![
            (json!({ "scheduler": { "au": 5, "replicas": 1 } }), &["scheduler: excluded"]),
            (json!({ "taskPodNodePoolId": pool }), &["taskPodNodePoolId: excluded"]),
            (json!({ "workerQueues": [queue("default", json!({ "nodePoolId": pool }))] }),
                &["workerQueues[0].nodePoolId: excluded"]),
            (json!({ "scheduler": null, "taskPodNodePoolId": "" }), &[]),
            (json!({ "scheduler": {}, "taskPodNodePoolId": null }), &[]),
            (json!({ "scheduler": { "enabled": false }, "taskPodNodePoolId": false }), &[]),
            (json!({ "workerQueues": [queue("default", json!({ "nodePoolId": "" }))] }), &[]),
            (json!({ "workerQueues": [queue("default", json!({ "nodePoolId": null }))] }), &[]),
            (json!({ "executor": "PLATFORM", "remoteExecution": { "enabled": true } }),
                &["remoteExecution: excluded"]),
            (json!({ "remoteExecution": { "enabled": false } }), &[]),
            (json!({ "drWorkloadIdentity": "arn:x" }), &["drWorkloadIdentity: excluded"]),
            (json!({ "drWorkloadIdentity": "" }), &[]),
        ]).await;
    }

    async fn hybrid_has_no_fields_of_the_others(app) {
        let mut table: Vec<(Value, &[&str])> = vec![
            (json!({ "schedulerSize": "SMALL" }), &["schedulerSize: excluded"]),
            (json!({ "isHighAvailability": true }), &["isHighAvailability: excluded"]),
            (json!({ "isDevelopmentMode": true }), &["isDevelopmentMode: excluded"]),
            (json!({ "scalingSpec": { "hibernationSpec": { "schedules": [] } } }), &["scalingSpec: excluded"]),
            (json!({ "remoteExecution": { "enabled": true } }), &["remoteExecution: excluded"]),
            (json!({ "defaultTaskPodCpu": "1" }), &["defaultTaskPodCpu: excluded"]),
            (json!({ "defaultTaskPodMemory": "2Gi" }), &["defaultTaskPodMemory: excluded"]),
            (json!({ "resourceQuotaCpu": "1" }), &["resourceQuotaCpu: excluded"]),
            (json!({ "resourceQuotaMemory": "2Gi" }), &["resourceQuotaMemory: excluded"]),
            (json!({ "executor": "PLATFORM" }), &["executor: enum"]),
            (json!({ "drWorkloadIdentity": "arn:x" }), &["drWorkloadIdentity: excluded"]),
        ];
        table.extend([json!(""), Value::Null, json!(false)].map(|blank| {
            let body = json!({
                "schedulerSize": blank, "isHighAvailability": blank, "isDevelopmentMode": blank,
                "scalingSpec": blank, "remoteExecution": blank, "defaultTaskPodCpu": blank,
                "defaultTaskPodMemory": blank, "resourceQuotaCpu": blank, "resourceQuotaMemory": blank,
            });
            (body, [].as_slice())
        }));
        table.push((json!({ "scalingSpec": {}, "remoteExecution": { "enabled": false } }), &[]));
        let off = json!({ "enabled": false, "allowedIpAddressRanges": [], "taskLogBucket": "", "taskLogUrlPattern": null });
        table.push((json!({ "remoteExecution": off }), &[]));
        table.push((json!({ "remoteExecution": { "enabled": false, "taskLogBucket": "x" } }), &["remoteExecution: excluded"]));
        holds(&app, "HYBRID", table).await;
        let (workspace, (cluster, pools)) = (app.workspace("Mine").await, hybrid(&app).await);
        let queues = |changes: Value| json!({ "clusterId": cluster, "workerQueues": [queue("default", changes)] });
        let typed = |changes: Value| with(queues(changes), json!({ "type": "HYBRID" }));
        for (body, wrong) in [
            (typed(json!({})), vec!["workerQueues[0].nodePoolId: required", "workerQueues[0].platformMachine: excluded"]),
            (typed(json!({ "nodePoolId": pools[0] })), vec!["workerQueues[0].platformMachine: excluded"]),
            (typed(json!({ "nodePoolId": pools[0], "platformMachine": "", "podEphemeralStorage": "5Gi" })),
                vec!["workerQueues[0].podEphemeralStorage: excluded"]),
            (queues(json!({})), vec!["workerQueues[0].platformMachine: excluded", "workerQueues[0].nodePoolId: required"]),
        ] {
            assert_eq!(create(&app, workspace, body.clone()).await.wrong_fields(), wrong, "{body}");
        }
        let blank = json!({ "nodePoolId": pools[0], "platformMachine": null, "podEphemeralStorage": "" });
        let id = made(&app, workspace, typed(blank)).await;
        let wrong = change(&app, id, json!({ "workerQueues": [queue("default", json!({}))] })).await.wrong_fields();
        assert_eq!(wrong, ["workerQueues[0].platformMachine: excluded"], "the node pool is kept");
    }

    async fn dedicated_has_remote_execution_with_its_executor(app) {
        holds(&app, "DEDICATED", vec![
            (json!({ "executor": "PLATFORM", "remoteExecution": { "enabled": true } }), &[]),
            (json!({ "executor": "CELERY", "remoteExecution": { "enabled": true } }), &["executor: contradiction"]),
            (json!({ "executor": "PLATFORM", "remoteExecution": { "enabled": true,
                "allowedIpAddressRanges": ["10.0.0.0/8", "10.0.0.1/8"] } }),
                &["remoteExecution.allowedIpAddressRanges[1]: format"]),
            (json!({ "executor": "PLATFORM", "remoteExecution": {} }), &["remoteExecution.enabled: required"]),
            (json!({ "drWorkloadIdentity": "arn:x" }), &["drWorkloadIdentity: unsupported"]),
            (json!({ "scheduler": { "au": 5 , "replicas": 1 } }), &["scheduler: excluded"]),
        ]).await;
        let workspace = app.workspace("Elsewhere").await;
        let cluster = dedicated(&app, json!({ "drRegion": "us-west-2" })).await;
        let body = json!({ "clusterId": cluster, "drWorkloadIdentity": "arn:x", "workloadIdentity": "arn:y" });
        let made = create(&app, workspace, body).await.ok();
        assert_eq!(made["effectiveDRWorkloadIdentity"], "arn:x");
        assert_eq!(made["effectiveWorkloadIdentity"], "arn:y");
        assert_eq!(made.get("remoteExecution"), None, "it is shown where it is enabled");
    }

    async fn remote_execution_is_shown_and_keeps_omitted_fields(app) {
        let workspace = app.workspace("Analytics").await;
        let remote = json!({ "enabled": true, "allowedIpAddressRanges": ["203.0.113.0/24"], "taskLogBucket": "logs",
            "taskLogUrlPattern": "https://logs.test/{task}" });
        let body = json!({ "clusterId": dedicated(&app, json!({})).await, "executor": "PLATFORM", "remoteExecution": remote });
        let id = made(&app, workspace, body).await;
        let shown = read(&app, id).await;
        let url = format!("{}/agents", shown["webServerUrl"].as_str().unwrap());
        assert_eq!(shown["remoteExecution"], with(remote, json!({ "remoteApiUrl": url })));
        let kept = change(&app, id, json!({ "remoteExecution": { "enabled": true } })).await.ok();
        assert_eq!(kept["remoteExecution"], shown["remoteExecution"]);
        for (field, value) in [
            ("taskLogUrlPattern", "javascript:alert(1)"), ("taskLogUrlPattern", "https://logs.test/\r\nx"),
            ("taskLogUrlPattern", "//logs.test/x"), ("taskLogBucket", "one\ntwo"), ("taskLogBucket", "a\u{200b}b"),
        ] {
            let mut wrong = json!({ "enabled": true });
            wrong[field] = json!(value);
            let refused = change(&app, id, json!({ "remoteExecution": wrong })).await;
            assert_eq!(refused.wrong_fields(), [format!("remoteExecution.{field}: format")], "{value:?}");
        }
        let pattern = "https://logs.test/{{ dag_id }}/{{ run_id }}";
        let blanks = change(&app, id, json!({ "remoteExecution": { "enabled": true, "taskLogUrlPattern": pattern } })).await;
        assert_eq!(blanks.ok()["remoteExecution"]["taskLogUrlPattern"], pattern);
        let outside = json!({ "enabled": true, "taskLogUrlPattern": "https://logs.test/my dag" });
        let message = change(&app, id, json!({ "remoteExecution": outside })).await.refused(400);
        assert!(message.contains("there is one after `https://logs.test/my`"), "{message}");
        let cleared = json!({ "enabled": true, "allowedIpAddressRanges": [], "taskLogBucket": "", "taskLogUrlPattern": "" });
        let cleared = change(&app, id, json!({ "remoteExecution": cleared })).await.ok();
        assert_eq!(cleared["remoteExecution"],
            json!({ "enabled": true, "allowedIpAddressRanges": [], "remoteApiUrl": url }));
        let refused = change(&app, id, json!({ "executor": "CELERY" })).await;
        assert_eq!(refused.wrong_fields(), ["executor: contradiction"]);
    }

    async fn with_remote_execution_no_defaults_appear(app) {
        const SIZES: [&str; 5] =
            ["workerQueues", "defaultTaskPodCpu", "defaultTaskPodMemory", "resourceQuotaCpu", "resourceQuotaMemory"];
        let workspace = app.workspace("Analytics").await;
        let remote = json!({ "executor": "PLATFORM", "remoteExecution": { "enabled": true } });
        let place = with(json!({ "clusterId": dedicated(&app, json!({})).await }), remote.clone());
        let shown = |one: &Value| SIZES.map(|field| one.get(field).cloned().unwrap_or_default());
        let none = SIZES.map(|_| Value::Null);
        let blank = json!({ "workerQueues": [], "defaultTaskPodCpu": "", "resourceQuotaMemory": null });
        for sent in [json!({}), blank.clone()] {
            let id = made(&app, workspace, with(place.clone(), sent.clone())).await;
            assert_eq!(shown(&read(&app, id).await), none, "{sent}");
            assert_eq!(shown(&change(&app, id, with(remote.clone(), sent)).await.ok()), none);
        }
        // What is said is had, and shown.
        let said = json!({ "defaultTaskPodCpu": "1", "resourceQuotaCpu": "4", "workerQueues": [queue("default", json!({}))] });
        let id = made(&app, workspace, with(place.clone(), said)).await;
        let own = read(&app, id).await;
        assert_eq!((&own["defaultTaskPodMemory"], &own["resourceQuotaMemory"]), (&json!("2Gi"), &json!("8Gi")));
        assert_eq!(own["workerQueues"][0]["name"], "default");
        assert_eq!(shown(&change(&app, id, json!({})).await.ok()), shown(&own), "what is left out stays");
        // Switching it on leaves behind what there was; switching it off brings the defaults.
        let cluster = place["clusterId"].clone();
        let id = made(&app, workspace, json!({ "clusterId": cluster, "executor": "PLATFORM" })).await;
        let before = shown(&read(&app, id).await);
        assert_eq!(before[1..], [json!("0.25"), json!("0.5Gi"), json!("10"), json!("20Gi")]);
        assert_eq!(shown(&change(&app, id, remote).await.ok()), none);
        let off = change(&app, id, json!({ "remoteExecution": { "enabled": false } })).await.ok();
        assert_eq!(off.get("remoteExecution"), None);
        assert_eq!((&shown(&off)[1..], &off["workerQueues"][0]["name"]), (&before[1..], &json!("default")));
    }

    async fn schedulers_of_hybrid_are_sized_in_units(app) {
        let workspace = app.workspace("Mine").await;
        let (cluster, pools) = hybrid(&app).await;
        let asked = |scheduler: Value| json!({ "clusterId": cluster, "scheduler": scheduler });
        let usual = create(&app, workspace, asked(Value::Null)).await.ok();
        let sizes = |one: &Value| {
            ["schedulerAu", "schedulerReplicas", "schedulerCpu", "schedulerMemory"].map(|field| one[field].clone())
        };
        assert_eq!(sizes(&usual), [json!(5), json!(1), json!("0.5"), json!("1.875Gi")]);
        for absent in ["schedulerSize", "isHighAvailability", "isDevelopmentMode", "scalingSpec", "defaultTaskPodCpu",
            "resourceQuotaMemory", "remoteExecution"] {
            assert_eq!(usual[absent], Value::Null, "{absent}");
        }
        assert_eq!(usual["isDagDeployEnabled"], false);
        let queue = &usual["workerQueues"][0];
        assert_eq!(*queue, json!({
            "id": queue["id"], "name": "default", "isDefault": true, "nodePoolId": pools[0], "minWorkerCount": 0,
            "maxWorkerCount": 10, "workerConcurrency": 5, "podCpu": queue["podCpu"], "podMemory": queue["podMemory"],
        }));
        assert_ne!(queue["podCpu"], "");
        let large = create(&app, workspace, asked(json!({ "au": 24, "replicas": 4 }))).await.ok();
        assert_eq!(sizes(&large), [json!(24), json!(4), json!("2.4"), json!("9Gi")]);
        for (scheduler, wrong) in [
            (json!({ "au": 4 }), "scheduler.au: minimum"),
            (json!({ "au": 25 }), "scheduler.au: maximum"),
            (json!({ "replicas": 0 }), "scheduler.replicas: minimum"),
            (json!({ "replicas": 5 }), "scheduler.replicas: maximum"),
        ] {
            assert_eq!(create(&app, workspace, asked(scheduler)).await.wrong_fields(), [wrong]);
        }
    }

    async fn an_update_of_hybrid_says_both_size_and_number_of_schedulers(app) {
        let workspace = app.workspace("Mine").await;
        let (cluster, _) = hybrid(&app).await;
        let id = made(&app, workspace, json!({ "clusterId": cluster })).await;
        for (scheduler, wrong) in [
            (Value::Null, vec!["scheduler: required"]),
            (json!({}), vec!["scheduler.au: required", "scheduler.replicas: required"]),
            (json!({ "au": 6 }), vec!["scheduler.replicas: required"]),
            (json!({ "replicas": 2 }), vec!["scheduler.au: required"]),
        ] {
            let answer = change(&app, id, json!({ "scheduler": scheduler })).await;
            assert_eq!(answer.wrong_fields(), wrong, "{scheduler}");
        }
        let changed = change(&app, id, json!({ "scheduler": { "au": 10, "replicas": 2 } })).await.ok();
        assert_eq!((&changed["schedulerAu"], &changed["schedulerReplicas"]), (&json!(10), &json!(2)));
    }

    async fn tasks_of_hybrid_on_kubernetes_run_on_a_node_pool(app) {
        let workspace = app.workspace("Mine").await;
        let (cluster, [first, second]) = hybrid(&app).await;
        let place = json!({ "clusterId": cluster, "executor": "KUBERNETES" });
        let usual = create(&app, workspace, place.clone()).await.ok();
        assert_eq!((&usual["taskPodNodePoolId"], usual.get("workerQueues")), (&first, None));
        let id = made(&app, workspace, with(place.clone(), json!({ "taskPodNodePoolId": second }))).await;
        assert_eq!(read(&app, id).await["taskPodNodePoolId"], second);
        let unknown = with(place, json!({ "taskPodNodePoolId": app.world.id::<Id>() }));
        assert_eq!(create(&app, workspace, unknown).await.wrong_fields(), ["taskPodNodePoolId: notFound"]);
        let kept = change(&app, id, json!({ "taskPodNodePoolId": "" })).await.ok();
        assert_eq!(kept["taskPodNodePoolId"], second);
        // It goes with the executor, also where a client sends it along.
        for sent in [json!({}), json!({ "taskPodNodePoolId": second })] {
            change(&app, id, json!({ "executor": "KUBERNETES", "taskPodNodePoolId": second })).await.ok();
            let celery = change(&app, id, with(json!({ "executor": "CELERY" }), sent)).await.ok();
            assert_eq!(celery.get("taskPodNodePoolId"), None);
            assert_eq!(read(&app, id).await.get("taskPodNodePoolId"), None);
        }
        let back = change(&app, id, json!({ "executor": "KUBERNETES" })).await.ok();
        assert_eq!(back["taskPodNodePoolId"], first, "the cluster's default");
    }

    async fn an_update_names_what_its_type_requires(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({})).await;
        let at = path(&app, id);
        let wrong = app.post(&app.owner, &at, json!({ "type": "STANDARD" })).await.wrong_fields();
        let mut required = ["environmentVariables", "executor", "isCicdEnforced", "isDagDeployEnabled",
            "isHighAvailability", "name", "schedulerSize", "workspaceId"].map(|field| format!("{field}: required"));
        required.sort_unstable();
        let mut found = wrong;
        found.sort_unstable();
        assert_eq!(found, required);
        for kind in [Value::Null, json!("")] {
            let body = update(&read(&app, id).await, json!({ "type": kind }));
            assert_eq!(app.post(&app.owner, &at, body).await.ok()["type"], "STANDARD", "{kind}: it keeps its type");
        }
        let other = change(&app, id, json!({ "type": "DEDICATED" })).await;
        assert_eq!(other.refused(400), "type must be STANDARD: the type of a deployment does not change");
    }

    async fn an_update_without_a_type_is_judged_as_the_type_that_there_is(app) {
        let workspace = app.workspace("Analytics").await;
        for kind in ["STANDARD", "DEDICATED", "HYBRID"] {
            let named = json!({ "name": format!("Of {kind}") });
            let id = made(&app, workspace, with(of(&app, kind).await, named)).await;
            let mut body = update(&read(&app, id).await, json!({ "description": "changed" }));
            body.as_object_mut().unwrap().remove("type");
            let after = app.post(&app.owner, &path(&app, id), body.clone()).await.ok();
            assert_eq!((&after["type"], &after["description"]), (&json!(kind), &json!("changed")));
            // What another type has and requires is nothing to this one.
            let foreign = match kind {
                "HYBRID" => json!({ "schedulerSize": "SMALL", "isHighAvailability": true, "scheduler": null }),
                _ => json!({ "scheduler": { "au": 5, "replicas": 1 }, "schedulerSize": null, "isHighAvailability": null }),
            };
            let answer = app.post(&app.owner, &path(&app, id), with(body, foreign)).await;
            assert_eq!(answer.code(), 400, "{kind}: {}", answer.text());
        }
    }

    async fn null_and_empty_are_as_absent(app) {
        let workspace = app.workspace("Analytics").await;
        let plain = create(&app, workspace, json!({})).await.ok();
        let nulls = json!({
            "type": null, "description": null, "clusterId": null, "cloudProvider": null, "region": null,
            "platformRuntimeVersion": null, "executor": null, "schedulerSize": null, "isHighAvailability": null,
            "isDevelopmentMode": null, "isCicdEnforced": null, "isDagDeployEnabled": null, "workerQueues": null,
            "defaultTaskPodCpu": null, "defaultTaskPodMemory": null, "resourceQuotaCpu": null,
            "resourceQuotaMemory": null, "environmentVariables": null, "contactEmails": null, "scalingSpec": null,
            "remoteExecution": null, "workloadIdentity": null, "drWorkloadIdentity": null,
        });
        let blanks = json!({
            "type": "", "clusterId": "", "cloudProvider": "", "region": "", "platformRuntimeVersion": "",
            "executor": "", "schedulerSize": "", "defaultTaskPodCpu": "", "defaultTaskPodMemory": "",
            "resourceQuotaCpu": "", "resourceQuotaMemory": "", "environmentVariables": [], "contactEmails": [],
            "workloadIdentity": "", "drWorkloadIdentity": "", "taskPodNodePoolId": "", "scalingSpec": {},
        });
        for body in [nulls, blanks] {
            let mut other = create(&app, workspace, body.clone()).await.ok();
            for field in ["id", "name", "namespace", "imageRepository", "uiUrl", "apiUrl", "webServerUrl",
                "webServerAirflowApiUrl", "workerQueues"] {
                other[field] = plain[field].clone();
            }
            assert_eq!(other, plain, "{body}");
        }
    }

    async fn every_wrong_field_is_reported_at_once(app) {
        let workspace = app.workspace("Analytics").await;
        let of_the_schema = json!({
            "name": 7, "description": "x".repeat(1001), "executor": "ABACUS", "schedulerSize": "HUGE",
            "workerQueues": [queue("default", json!({ "minWorkerCount": -1, "maxWorkerCount": 0 })),
                { "name": "x".repeat(64) }],
            "environmentVariables": [{ "value": 1 }], "isHighAvailability": "yes",
            "scalingSpec": { "hibernationSpec": { "schedules": [{ "isEnabled": true }] } },
        });
        let mut wrong = create(&app, workspace, of_the_schema).await.wrong_fields();
        wrong.sort_unstable();
        assert_eq!(wrong, [
            "description: maxLength",
            "environmentVariables[0].isSecret: required",
            "environmentVariables[0].key: required",
            "environmentVariables[0].value: type",
            "executor: enum",
            "isHighAvailability: type",
            "name: type",
            "scalingSpec.hibernationSpec.schedules[0].hibernateAtCron: required",
            "scalingSpec.hibernationSpec.schedules[0].wakeAtCron: required",
            "schedulerSize: enum",
            "workerQueues[0].maxWorkerCount: minimum",
            "workerQueues[0].minWorkerCount: minimum",
            "workerQueues[1].isDefault: required",
            "workerQueues[1].maxWorkerCount: required",
            "workerQueues[1].minWorkerCount: required",
            "workerQueues[1].name: maxLength",
            "workerQueues[1].platformMachine: required",
            "workerQueues[1].workerConcurrency: required",
        ]);
        let of_the_rules = json!({
            "name": " ", "cloudProvider": "AWS", "region": "mars-1", "platformRuntimeVersion": "0",
            "workerQueues": [queue("Big", json!({}))], "defaultTaskPodCpu": "11",
            "environmentVariables": [{ "key": "AIRFLOW__CORE__FERNET_KEY", "value": "x", "isSecret": true }],
            "contactEmails": ["nobody"],
        });
        let answer = create(&app, workspace, of_the_rules).await;
        assert_eq!(answer.wrong_fields(), [
            "region: unknown",
            "name: required",
            "platformRuntimeVersion: unknown",
            "workerQueues[0].name: format",
            "workerQueues: default",
            "defaultTaskPodCpu: maximum",
            "environmentVariables[0].key: reserved",
            "contactEmails[0]: format",
        ]);
        let message = answer.refused(400);
        assert!(message.starts_with("region must be a region of AWS: "), "{message}");
        assert!(message.contains("; name must not be blank; platformRuntimeVersion is not an available runtime"), "{message}");
        assert!(message.ends_with("; 5 more fields are wrong"), "{message}");
    }

    async fn pods_have_twice_as_much_memory_as_cpu_and_fit_the_quota(app) {
        holds(&app, "STANDARD", vec![
            (json!({ "defaultTaskPodCpu": "1", "defaultTaskPodMemory": "2Gi" }), &[]),
            (json!({ "defaultTaskPodCpu": "1", "defaultTaskPodMemory": "1Gi" }), &["defaultTaskPodMemory: ratio"]),
            (json!({ "resourceQuotaCpu": "1", "resourceQuotaMemory": "4Gi" }), &["resourceQuotaMemory: ratio"]),
            (json!({ "defaultTaskPodCpu": "500m" }), &["defaultTaskPodCpu: format"]),
            (json!({ "defaultTaskPodMemory": "512Mi" }), &["defaultTaskPodMemory: format"]),
            (json!({ "defaultTaskPodCpu": "20" }), &["defaultTaskPodCpu: maximum"]),
            (json!({ "defaultTaskPodCpu": "20", "resourceQuotaCpu": "40" }), &[]),
        ]).await;
    }

    async fn development_mode_is_chosen_at_creation_and_may_end(app) {
        let workspace = app.workspace("Analytics").await;
        let plain = made(&app, workspace, json!({})).await;
        let refused = change(&app, plain, json!({ "isDevelopmentMode": true })).await;
        assert_eq!(refused.refused(400), "isDevelopmentMode can be switched on only at creation");
        for (fields, wrong) in [
            (json!({ "isHighAvailability": true }), "isHighAvailability: contradiction"),
            (json!({ "schedulerSize": "MEDIUM" }), "schedulerSize: contradiction"),
        ] {
            let body = with(json!({ "isDevelopmentMode": true }), fields);
            assert_eq!(create(&app, workspace, body).await.wrong_fields(), [wrong]);
        }
        let id = made(&app, workspace, json!({ "isDevelopmentMode": true })).await;
        assert_eq!(change(&app, id, json!({})).await.ok()["isDevelopmentMode"], true);
        let large = json!({ "schedulerSize": "LARGE", "isHighAvailability": true });
        assert_eq!(change(&app, id, large.clone()).await.code(), 400);
        let grown = change(&app, id, with(large, json!({ "isDevelopmentMode": false }))).await.ok();
        assert_eq!((&grown["isDevelopmentMode"], &grown["schedulerReplicas"]), (&json!(false), &json!(2)));
        assert_eq!((&grown["schedulerCpu"], &grown["webServerReplicas"]), (&json!("4"), &json!(2)));
        assert_eq!(change(&app, id, json!({ "isDevelopmentMode": true })).await.wrong_fields(),
            ["isDevelopmentMode: fixed", "isHighAvailability: contradiction", "schedulerSize: contradiction"]);
    }
}
