//! Those with a role on one DAG learn nothing of others: neither their names nor what is wrong with them. Every endpoint
//! that reads, every stream and every page is walked; new ones join by themselves.

use std::collections::BTreeMap;

use podium_api::deploy_reports::{ReportedImportError, RolloutReport};
use podium_api::openapi::PREFIX;
use podium_api::{DeploymentId, ENDPOINTS, Method, WorkspaceId};
use podium_dataplane::{Health, Line, LogLine};
use podium_domain::On;
use podium_domain::deployments::rollout::{RolloutProgress, RolloutStep};
use podium_store::grants::Subject;
use podium_testkit::{Actor, TestApp, on_one_engine, role};
use serde_json::json;

use super::Person;
use super::crawl::crawl;
use super::dags::{dag, fly, run};
use super::deploys::deployed;
use crate::events::settled;
use crate::front_door::environment::Environment;

const OWN: &str = "greet";
/// The DAG that the visitor may not know.
const OTHER: &str = "payroll_7f3a";
const WHY: &str = "dags/payroll_7f3a.py:3: NameError in payroll_7f3a";

/// A deployment of which everything names the other DAG, and the ids of what there is, by path parameter.
struct Planted {
    id: DeploymentId,
    workspace_id: WorkspaceId,
    ids: BTreeMap<&'static str, Vec<String>>,
    _environment: Environment,
}

impl Planted {
    async fn new(app: &TestApp) -> Self {
        let workspace_id = app.workspace("Data").await;
        let body = json!({ "name": "nightly", "workspaceId": workspace_id });
        let id: DeploymentId =
            app.post(&app.owner, &app.path("/deployments"), body).await.id().parse().unwrap();
        app.settle().await;
        let script = app.plane.script();
        let refused = deployed(app, id, "broken").await;
        script.refuse_dags(refused["dagTarballVersion"].as_str().unwrap(), WHY);
        let error = ReportedImportError {
            file: format!("dags/{OTHER}.py"),
            line: Some(3),
            message: WHY.to_owned(),
            traceback: WHY.to_owned(),
            dag_ids: vec![OTHER.to_owned()],
        };
        let report =
            RolloutReport { import_errors: vec![error], import_error_count: 1, ..RolloutReport::default() };
        let deploy_id = refused["id"].as_str().unwrap().to_owned();
        app.report_rollout(id, deploy_id.parse().unwrap(), report).await;
        app.settle().await;
        let others = Self::others(app, id, workspace_id).await;
        script.set_health(id, "scheduler", Health::Down(WHY.into()));
        app.settle().await;
        script.lock().rollout = std::time::Duration::from_mins(1);
        deployed(app, id, "right").await;
        app.settle().await;
        let (step, waits_for) =
            (RolloutStep::Drain, [OTHER, OWN].map(|dag| format!("{dag}/run/task")).into());
        let progress = RolloutProgress { step, done: None, message: Some(WHY.into()), waits_for };
        script.set_progress(id, Some(progress));
        app.settle().await;
        app.set_column("deployments", id, "status_reason", &format!("'{WHY}'")).await;
        let line = LogLine {
            deployment_id: id,
            source: "worker".to_owned(),
            timestamp: app.world.now(),
            text: WHY.to_owned(),
        };
        app.keep_lines(vec![line]).await;
        let environment = Environment::behind(app, id, Line::Three).await;
        let errors = json!([{ "filename": format!("{OTHER}.py"), "stack_trace": WHY }]);
        fly(&environment, &json!([dag(OWN, &[]), dag(OTHER, &[])]), &[run(OTHER, "r1", "failed")], &errors);
        settled(app).await;
        let listed = app.get(&app.owner, &app.path("/operations")).await.ok();
        let operations = listed["operations"].as_array().unwrap().iter();
        let mut ids = others;
        ids.insert("operationId", operations.map(|of| of["id"].as_str().unwrap().to_owned()).collect());
        ids.insert("organizationId", vec![app.organization_id.to_string()]);
        ids.insert("workspaceId", vec![workspace_id.to_string()]);
        ids.insert("deploymentId", vec![id.to_string()]);
        ids.insert("deployId", vec![deploy_id]);
        Self { id, workspace_id, ids, _environment: environment }
    }

    /// Other subjects with roles on the other DAG, and what belongs to the organization.
    async fn others(
        app: &TestApp,
        id: DeploymentId,
        workspace_id: WorkspaceId,
    ) -> BTreeMap<&'static str, Vec<String>> {
        let on = On::Dag { deployment_id: id, workspace_id, dag_id: OTHER.to_owned() };
        let tag = On::DagTag { deployment_id: id, workspace_id, tag: OTHER.to_owned() };
        let held = || {
            vec![
                role(On::Organization, "ORGANIZATION_MEMBER"),
                role(on.clone(), "DAG_AUTHOR"),
                role(tag.clone(), "DAG_VIEWER"),
            ]
        };
        let author = app.user_with("author", held()).await;
        let team = app.team("authors", &[&author]).await;
        app.set_grants(Subject::Team, team, held()).await;
        let token = app.token("ci", "DEPLOYMENT", id, "DEPLOYMENT_ADMIN").await;
        app.set_grants(Subject::Token, token.id, vec![role(on.clone(), "DAG_AUTHOR")]).await;
        let made = async |path: &str, body| app.post(&app.owner, &app.path(path), body).await.id();
        let webhook = made("/webhooks", json!({ "name": "pager", "url": "https://127.0.0.1/hook" })).await;
        let alert = json!({ "name": format!("{OTHER} fails"), "kind": "DAG_RUN_FAILED", "webhookIds": [webhook],
            "deploymentIds": [id], "dagId": OTHER });
        let alert = made("/alerts", alert).await;
        let role = json!({ "name": "reader", "scopeType": "DAG", "permissions": ["dag.airflow.dag.get"] });
        let object = json!({ "objectKey": OTHER, "objectType": "AIRFLOW_VARIABLE", "scope": "DEPLOYMENT", "scopeEntityId": id,
            "airflowVariable": { "value": OTHER, "isSecret": false } });
        let set = json!({ "name": format!("set of {OTHER}"), "members": [] });
        let unknown = || app.world.id::<podium_api::Id>().to_string();
        BTreeMap::from([
            ("userId", vec![author.id.to_string()]),
            ("teamId", vec![team.to_string()]),
            ("tokenId", vec![token.id.to_string()]),
            ("webhookId", vec![webhook]),
            ("deliveryId", vec![unknown()]),
            ("alertId", vec![alert]),
            ("roleId", vec![made("/roles", role).await]),
            ("environmentObjectId", vec![made("/environment-objects", object).await]),
            ("agentTokenId", vec![unknown()]),
            ("declaredSetId", vec![made("/declared-sets", set).await]),
            ("clusterId", vec![app.cluster(&[]).await.to_string()]),
        ])
    }

    fn own_dag(&self) -> On {
        On::Dag { deployment_id: self.id, workspace_id: self.workspace_id, dag_id: OWN.to_owned() }
    }

    /// Every path of every endpoint that reads.
    fn reads(&self) -> Vec<(&'static str, String)> {
        let mut reads = Vec::new();
        for endpoint in ENDPOINTS.iter().filter(|endpoint| endpoint.method == Method::Get) {
            let mut paths = vec![format!("{PREFIX}{}", endpoint.path)];
            for param in endpoint.path_params {
                let ids =
                    self.ids.get(param).unwrap_or_else(|| panic!("plant something that `{param}` names"));
                let named = |path: &String| -> Vec<String> {
                    ids.iter().map(|id| path.replace(&format!("{{{param}}}"), id)).collect()
                };
                paths = paths.iter().flat_map(named).collect();
            }
            let query = match endpoint.id {
                "GetDeploymentLogs" | "CountDeploymentLogs" => "?sources=worker",
                "FollowDeploymentLogs" => "?sources=worker&waitSeconds=0",
                "FollowEvents" => "?waitSeconds=0&since=2000-01-01T00:00:00Z",
                "FollowOperation" => "?waitSeconds=0",
                "ListEvents" => "?limit=1000",
                "GetClusterOptions" => "?type=DEDICATED",
                _ => "",
            };
            reads.extend(paths.into_iter().map(|path| (endpoint.id, format!("{path}{query}"))));
        }
        reads
    }
}

/// The reads that name the other DAG.
async fn told(app: &TestApp, planted: &Planted, by: &Actor) -> Vec<(&'static str, String)> {
    let mut told = Vec::new();
    for (endpoint, path) in planted.reads() {
        let answer = app.get(by, &path).await;
        assert!([200, 403, 404].contains(&answer.code()), "{path}: {}", answer.text());
        if answer.text().contains(OTHER) {
            told.push((endpoint, format!("{path}: {}", answer.text())));
        }
    }
    told
}

on_one_engine! {
    async fn who_has_a_role_on_one_dag_learns_nothing_of_others(app) {
        let planted = Planted::new(&app).await;
        let by_owner = told(&app, &planted, &app.owner).await;
        for planted in ["GetDeployment", "ListDeployments", "ListOperations", "GetOperation", "FollowOperation", "ListEvents", "FollowEvents",
            "GetDeployReport", "GetDeploymentLogs", "ListAlerts", "GetUser", "ListUsers", "GetTeam", "GetApiToken"] {
            assert!(by_owner.iter().any(|(endpoint, _)| *endpoint == planted), "{planted} names it to those who may know");
        }
        let visitor = app.user_with("visitor", vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(planted.own_dag(), "DAG_VIEWER")]).await;
        let robot = app.token("robot", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        app.set_grants(Subject::Token, robot.id, vec![role(planted.own_dag(), "DAG_VIEWER")]).await;
        for by in [&visitor, &robot] {
            let seen = app.get(by, &app.path(&format!("/deployments/{}", planted.id))).await;
            assert_eq!(seen.code(), 200, "they may know the deployment: {}", seen.text());
            let told = told(&app, &planted, by).await;
            assert!(told.is_empty(), "{told:#?}");
        }
        let accessor = On::Deployment { id: planted.id, workspace_id: planted.workspace_id };
        let accessor = app.user_with("accessor", vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(accessor, "DEPLOYMENT_ACCESSOR")]).await;
        let by_accessor = told(&app, &planted, &accessor).await;
        for endpoint in ["GetDeployment", "ListDeployments", "ListOperations", "GetOperation", "FollowOperation", "ListEvents", "FollowEvents"] {
            assert!(by_accessor.iter().any(|(told, _)| *told == endpoint), "{endpoint}: the same right on all of it shows the reasons");
        }
        let operations = app.get(&visitor, &app.path("/operations")).await.text();
        assert!(operations.contains(&format!("{OWN}/run/task")), "a task of one's own DAG is named: {operations}");
        let crawled = crawl(&app, &Person::new(&app, &visitor).await).await;
        crawled.assert_complete();
        assert!(crawled.texts.keys().any(|path| path.ends_with("/access")), "{:?}", crawled.texts.keys());
        for (path, page) in &crawled.texts {
            assert!(!page.contains(OTHER), "{path}: {page}");
        }
        let crawled = crawl(&app, &Person::new(&app, &app.owner).await).await;
        assert!(crawled.texts.values().filter(|page| page.contains(OTHER)).count() > 5, "the owner's pages name it");
    }
}
