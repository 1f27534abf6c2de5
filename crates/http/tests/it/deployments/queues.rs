//! Worker queues over HTTP; every rule is tested where the rules are.

use podium_api::Id;
use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{change, create, hybrid, made, path, queue, read, with};

fn queues(deployment: &Value) -> Vec<(String, String)> {
    let text = |queue: &Value, field: &str| queue[field].as_str().unwrap().to_owned();
    let queues = deployment["workerQueues"].as_array().unwrap();
    queues.iter().map(|queue| (text(queue, "name"), text(queue, "id"))).collect()
}

on_both_engines! {
    async fn queues_are_answered_by_name(app) {
        let workspace = app.workspace("Analytics").await;
        let asked = ["zoo", "default", "big"].map(|name| queue(name, json!({})));
        let id = made(&app, workspace, json!({ "workerQueues": asked })).await;
        let names: Vec<String> = queues(&read(&app, id).await).into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["big", "default", "zoo"]);
        let listed = app.get(&app.owner, &app.path("/deployments")).await.ok();
        assert_eq!(listed["deployments"][0]["workerQueues"], read(&app, id).await["workerQueues"]);
    }

    async fn an_update_changes_creates_and_deletes_queues(app) {
        let workspace = app.workspace("Analytics").await;
        let asked = ["default", "a", "b", "c"].map(|name| queue(name, json!({})));
        let id = made(&app, workspace, json!({ "workerQueues": asked })).await;
        let [a, b, _, default] = &queues(&read(&app, id).await).try_into().unwrap() as &[(String, String); 4];
        let asked = json!([
            queue("new", json!({ "id": app.world.id::<Id>() })),
            queue("b", json!({ "maxWorkerCount": 3 })),
            queue("renamed", json!({ "id": a.1 })),
            queue("default", json!({ "platformMachine": "A160", "workerConcurrency": 480 })),
        ]);
        let after = change(&app, id, json!({ "workerQueues": asked })).await.ok();
        let found = queues(&after);
        assert_eq!((&found[0], &found[1]), (b, default));
        assert_eq!(found[2].0, "new");
        assert_eq!(found[3], ("renamed".into(), a.1.clone()));
        assert_eq!(found.len(), 4);
        assert_eq!(after["workerQueues"][1]["podCpu"], "32");
        assert_eq!(after["workerQueues"][0]["maxWorkerCount"], 3);
        assert_eq!(read(&app, id).await, after);
        let kept = change(&app, id, json!({ "workerQueues": null })).await.ok();
        assert_eq!(kept["workerQueues"], after["workerQueues"]);
    }

    async fn sending_queues_back_as_read_changes_nothing(app) {
        let workspace = app.workspace("Analytics").await;
        let big = queue("big", json!({ "platformMachine": "A20", "podEphemeralStorage": "50Gi", "workerConcurrency": 33 }));
        let id = made(&app, workspace, json!({ "workerQueues": [queue("default", json!({})), big] })).await;
        let before = read(&app, id).await["workerQueues"].clone();
        let after = change(&app, id, json!({ "workerQueues": before })).await.ok();
        assert_eq!(after["workerQueues"], before);
        let mut less = before.clone();
        for field in ["platformMachine", "podEphemeralStorage", "podCpu", "podMemory", "id"] {
            less[1].as_object_mut().unwrap().remove(field);
        }
        let after = change(&app, id, json!({ "workerQueues": less })).await.ok();
        assert_eq!(after["workerQueues"], before);
    }

    async fn the_default_queue_always_is(app) {
        let workspace = app.workspace("Analytics").await;
        let id = made(&app, workspace, json!({})).await;
        let default = queues(&read(&app, id).await)[0].1.clone();
        let renamed = queue("main", json!({ "id": default }));
        for (asked, wrong) in [
            (json!([]), vec!["workerQueues: minItems"]),
            (json!([queue("a", json!({}))]), vec!["workerQueues: default"]),
            (json!([queue("default", json!({ "isDefault": false }))]), vec!["workerQueues[0].isDefault: default"]),
            (json!([renamed, queue("default", json!({}))]), vec!["workerQueues[0].name: fixed"]),
            (json!([queue("default", json!({})), queue("a", json!({ "isDefault": true }))]),
                vec!["workerQueues[1].isDefault: default"]),
            (json!([queue("default", json!({})), queue("default", json!({}))]), vec!["workerQueues[1].name: duplicate"]),
        ] {
            assert_eq!(change(&app, id, json!({ "workerQueues": asked })).await.wrong_fields(), wrong, "{asked}");
        }
        assert_eq!(queues(&read(&app, id).await)[0].1, default);
    }

    async fn kubernetes_has_no_queues(app) {
        let workspace = app.workspace("Analytics").await;
        for none in [json!({}), json!({ "workerQueues": null }), json!({ "workerQueues": [] })] {
            let body = with(json!({ "executor": "KUBERNETES" }), none);
            let made = create(&app, workspace, body).await;
            assert_eq!(made.ok().get("workerQueues"), None);
            let read = app.get(&app.owner, &path(&app, made.id())).await.ok();
            assert_eq!(read.get("workerQueues"), None, "absent, as real clients expect");
        }
        let some = json!({ "executor": "KUBERNETES", "workerQueues": [queue("default", json!({}))] });
        assert_eq!(create(&app, workspace, some.clone()).await.wrong_fields(), ["workerQueues: excluded"]);
        let id = made(&app, workspace, json!({})).await;
        let before = read(&app, id).await["workerQueues"].clone();
        assert_eq!(change(&app, id, some).await.wrong_fields(), ["workerQueues: excluded"]);
        let without = json!({ "executor": "KUBERNETES", "workerQueues": [] });
        assert_eq!(change(&app, id, without).await.ok().get("workerQueues"), None);
        let again = change(&app, id, json!({ "executor": "CELERY" })).await.ok();
        assert_eq!(again["workerQueues"][0]["name"], "default");
        assert_ne!(again["workerQueues"][0]["id"], before[0]["id"], "stored ones were dropped");
    }

    async fn concurrency_is_within_the_machines_range(app) {
        let workspace = app.workspace("Analytics").await;
        let asked = |machine: &str, tasks: u32| {
            json!({ "workerQueues": [queue("default", json!({ "platformMachine": machine, "workerConcurrency": tasks }))] })
        };
        assert_eq!(create(&app, workspace, asked("A5", 15)).await.code(), 200);
        assert_eq!(
            create(&app, workspace, asked("A5", 16)).await.refused(400),
            "workerQueues[0].workerConcurrency must be 1 to 15"
        );
        assert_eq!(create(&app, workspace, asked("A10", 16)).await.code(), 200);
        assert_eq!(create(&app, workspace, asked("B1", 5)).await.wrong_fields(), ["workerQueues[0].platformMachine: enum"]);
    }

    async fn queues_of_hybrid_run_on_node_pools(app) {
        let workspace = app.workspace("Mine").await;
        let (cluster, [first, second]) = hybrid(&app).await;
        let on = |pool: &Value| {
            let mut queue = queue("default", json!({ "nodePoolId": pool, "platformMachine": "" }));
            queue["workerConcurrency"] = 64.into();
            json!({ "clusterId": cluster, "workerQueues": [queue] })
        };
        let id = made(&app, workspace, on(&second)).await;
        assert_eq!(read(&app, id).await["workerQueues"][0]["nodePoolId"], second);
        let after = change(&app, id, json!({ "workerQueues": on(&first)["workerQueues"] })).await.ok();
        assert_eq!(after["workerQueues"][0]["nodePoolId"], first);
        let kept = change(&app, id, json!({ "workerQueues": on(&Value::Null)["workerQueues"] })).await.ok();
        assert_eq!(kept["workerQueues"][0]["nodePoolId"], first);
        let unknown = create(&app, workspace, on(&json!(app.world.id::<Id>()))).await;
        assert_eq!(unknown.wrong_fields(), ["workerQueues[0].nodePoolId: notFound"]);
        let typed = with(on(&Value::Null), json!({ "type": "HYBRID" }));
        assert_eq!(create(&app, workspace, typed).await.wrong_fields(), ["workerQueues[0].nodePoolId: required"]);
    }
}
