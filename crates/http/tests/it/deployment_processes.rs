//! `/organizations/{organizationId}/deployment-processes`

use podium_api::Timestamp;
use podium_api::enums::OrganizationRole;
use podium_dataplane::{ComponentMetrics, EnvironmentMetrics};
use podium_domain::{Grant, Held, On};
use podium_testkit::{TestApp, on_both_engines, role};
use serde_json::{Value, json};

fn scheduler(memory: u64) -> ComponentMetrics {
    ComponentMetrics {
        name: "scheduler".into(),
        is_up: true,
        restarts: Some(1),
        memory: Some(memory),
        started_at: Some(Timestamp::from_millis(0)),
        heartbeat_at: Some(Timestamp::from_millis(1000)),
        ..ComponentMetrics::default()
    }
}

fn triggerer() -> ComponentMetrics {
    let problem = Some("it has not sent a heartbeat yet".into());
    ComponentMetrics { name: "triggerer".into(), problem, memory: Some(5), ..ComponentMetrics::default() }
}

async fn listed(app: &TestApp, query: &str) -> Value {
    app.get(&app.owner, &app.path(&format!("/deployment-processes{query}"))).await.ok()
}

on_both_engines! {
    async fn the_processes_of_a_deployment_are_shown_as_they_are(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        let of = |components| vec![EnvironmentMetrics { id, components, disk: Some(7) }];
        app.plane.script().lock().metrics = of(vec![scheduler(10), triggerer()]);
        let expected = json!({
            "deploymentProcesses": [{
                "deploymentId": id,
                "processes": [
                    {
                        "name": "scheduler", "isUp": true, "restarts": 1, "memoryBytes": 10,
                        "startedAt": "1970-01-01T00:00:00.000Z", "heartbeatAt": "1970-01-01T00:00:01.000Z",
                    },
                    { "name": "triggerer", "isUp": false, "reason": "it has not sent a heartbeat yet", "restarts": 0, "memoryBytes": 5 },
                ],
                "memoryBytes": 15,
                "diskBytes": 7,
            }],
            "observedAt": "2027-01-15T08:00:00.000Z",
            "limit": 20,
            "offset": 0,
            "totalCount": 1,
        });
        assert_eq!(listed(&app, "").await, expected);
        app.plane.script().lock().metrics = of(vec![scheduler(20)]);
        assert_eq!(listed(&app, "").await["deploymentProcesses"][0]["memoryBytes"], 20, "nothing is remembered");
    }

    async fn a_deployment_without_processes_has_an_empty_list(app) {
        let id = app.deployment(app.workspace("Data").await).await;
        assert_eq!(listed(&app, "").await["deploymentProcesses"], json!([{ "deploymentId": id, "processes": [] }]));
    }

    async fn processes_are_listed_of_the_deployments_that_are_asked_for(app) {
        let (one, other) = (app.workspace("One").await, app.workspace("Other").await);
        let (first, second) = (app.deployment(one).await, app.deployment(other).await);
        let ids = async |query: &str| {
            let page = listed(&app, query).await;
            let items = page["deploymentProcesses"].as_array().unwrap().clone();
            (items.iter().map(|item| item["deploymentId"].as_str().unwrap().to_owned()).collect::<Vec<_>>(), page["totalCount"].clone())
        };
        let (first, second) = (first.to_string(), second.to_string());
        assert_eq!(ids(&format!("?deploymentIds={first}")).await, (vec![first.clone()], json!(1)));
        assert_eq!(ids(&format!("?workspaceIds={other}")).await, (vec![second.clone()], json!(1)));
        assert_eq!(ids("?limit=1&sorts=createdAt:asc").await, (vec![first], json!(2)));
        assert_eq!(ids("?limit=1&offset=1&deploymentIds=").await.1, 2);
        assert_eq!(ids("?deploymentIds=cmywpiww00000000000000009").await, (vec![], json!(0)));
    }

    async fn nobody_sees_processes_of_deployments_that_they_may_not_see(app) {
        let (one, other) = (app.workspace("One").await, app.workspace("Other").await);
        let (seen, _hidden) = (app.deployment(one).await, app.deployment(other).await);
        let member = Grant { on: On::Organization, held: Held::Organization(OrganizationRole::Member) };
        let member = app.user_with("mia", vec![member, role(On::Workspace(one), "WORKSPACE_MEMBER")]).await;
        let page = app.get(&member, &app.path("/deployment-processes")).await.ok();
        assert_eq!(page["deploymentProcesses"], json!([{ "deploymentId": seen, "processes": [] }]));
    }
}
