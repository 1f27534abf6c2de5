//! `/authorization/permission-groups`, and who may do what across resources.

use podium_domain::On;
use podium_testkit::{Actor, TestApp, on_both_engines, role};
use serde_json::{Value, json};

const GROUPS: &str = "/v1/authorization/permission-groups";

/// `name: action action` of each group.
fn told(groups: &Value) -> Vec<String> {
    let group = |group: &Value| {
        let actions: Vec<&str> =
            group["permissions"].as_array().unwrap().iter().map(|p| p["action"].as_str().unwrap()).collect();
        format!("{}: {}", group["name"].as_str().unwrap(), actions.join(" "))
    };
    groups.as_array().unwrap().iter().map(group).collect()
}

async fn groups(app: &TestApp, query: &str) -> Value {
    app.get(&app.owner, &format!("{GROUPS}?{query}")).await.ok()
}

on_both_engines! {
    async fn deployment_groups_are_those_of_the_rules(app) {
        let groups = groups(&app, "scopeType=DEPLOYMENT").await;
        insta::assert_json_snapshot!(told(&groups), @r#"
        [
          "deployment: get update delete",
          "deployment.agents: get update delete",
          "deployment.agentTokens: get create update delete",
          "deployment.alerts: get create update delete",
          "deployment.apiTokens: get create update delete rotate",
          "deployment.deploys: get create update",
          "deployment.envObjects: get create update delete",
          "deployment.hibernation: update",
          "deployment.logs: get",
          "deployment.metrics: get",
          "deployment.teams: get update delete",
          "deployment.users: get update delete",
          "deployment.airflow.adminMenu: get",
          "deployment.airflow.auditLog: get",
          "deployment.airflow.browseMenu: get",
          "deployment.airflow.clusterActivity: get",
          "deployment.airflow.config: get",
          "deployment.airflow.connection: get create update delete",
          "deployment.airflow.customMenu: get",
          "deployment.airflow.dag: get update delete",
          "deployment.airflow.dagCode: get",
          "deployment.airflow.dagDependencies: get",
          "deployment.airflow.dagRun: get create update delete",
          "deployment.airflow.datasets: get",
          "deployment.airflow.docs: get",
          "deployment.airflow.importError: get",
          "deployment.airflow.job: get",
          "deployment.airflow.plugin: get",
          "deployment.airflow.pool: get create update delete",
          "deployment.airflow.provider: get",
          "deployment.airflow.slaMiss: get",
          "deployment.airflow.taskInstance: get create update delete",
          "deployment.airflow.taskLog: get",
          "deployment.airflow.taskReschedule: get",
          "deployment.airflow.trigger: get",
          "deployment.airflow.variable: get create update delete",
          "deployment.airflow.website: get",
          "deployment.airflow.xcom: get delete"
        ]
        "#);
        assert!(groups.as_array().unwrap().iter().all(|group| group["scope"] == "DEPLOYMENT"));
        insta::assert_json_snapshot!(groups[0], @r#"
        {
          "name": "deployment",
          "scope": "DEPLOYMENT",
          "description": "Rights on the deployment.",
          "permissions": [
            {
              "action": "get",
              "description": "See the deployment."
            },
            {
              "action": "update",
              "description": "Change the deployment."
            },
            {
              "action": "delete",
              "description": "Delete the deployment."
            }
          ]
        }
        "#);
    }

    async fn dag_groups_are_those_of_the_rules(app) {
        let groups = groups(&app, "scopeType=DAG").await;
        insta::assert_json_snapshot!(told(&groups), @r#"
        [
          "dag.airflow.auditLog: get",
          "dag.airflow.dag: get update delete",
          "dag.airflow.dagCode: get",
          "dag.airflow.dagDependencies: get",
          "dag.airflow.dagRun: get create update delete",
          "dag.airflow.importError: get",
          "dag.airflow.slaMiss: get",
          "dag.airflow.taskInstance: get create update delete",
          "dag.airflow.taskLog: get",
          "dag.airflow.taskReschedule: get",
          "dag.airflow.xcom: get delete"
        ]
        "#);
        assert!(groups.as_array().unwrap().iter().all(|group| group["scope"] == "DAG"));
    }

    async fn groups_are_filtered_by_scope(app) {
        let count = async |query: &str| groups(&app, query).await.as_array().unwrap().len();
        let (deployment, dag) = (count("scopeType=DEPLOYMENT").await, count("scopeType=DAG").await);
        assert_eq!((deployment, dag), (38, 11));
        assert_eq!(count("").await, deployment + dag);
        assert_eq!(count("scopeType=").await, deployment + dag);
        assert_eq!(groups(&app, "scopeType=WORKSPACE").await, json!([]));
        assert_eq!(groups(&app, "scopeType=ORGANIZATION").await, json!([]));
        let wrong = app.get(&app.owner, &format!("{GROUPS}?scopeType=dag")).await.wrong_fields();
        assert_eq!(wrong, ["scopeType: enum"]);
    }

    async fn groups_need_a_valid_token_and_nothing_else(app) {
        let token = app.token("ci", "WORKSPACE", app.workspace("Data").await, "WORKSPACE_ACCESSOR").await;
        for actor in [app.stranger().await, app.user_with("nobody", vec![]).await, token] {
            assert_eq!(app.get(&actor, GROUPS).await.code(), 200);
        }
        assert_eq!(app.call("GET", GROUPS).send().await.code(), 401);
    }

    async fn every_permission_that_is_listed_can_be_given(app) {
        for scope in ["DEPLOYMENT", "DAG"] {
            let groups = groups(&app, &format!("scopeType={scope}")).await;
            let name = |group: &Value| {
                let prefix = group["name"].as_str().unwrap().to_owned();
                let actions = group["permissions"].as_array().unwrap().clone();
                actions.into_iter().map(move |p| format!("{prefix}.{}", p["action"].as_str().unwrap()))
            };
            let permissions: Vec<String> = groups.as_array().unwrap().iter().flat_map(name).collect();
            let body = json!({ "name": scope, "scopeType": scope, "permissions": permissions });
            let role = app.post(&app.owner, &app.path("/roles"), body).await.ok();
            assert_eq!(role["permissions"].as_array().unwrap().len(), permissions.len());
        }
    }

    async fn a_member_is_admitted_according_to_its_role(app) {
        let reads = ["", "/users", "/teams", "/roles", "/role-templates", "/workspaces", "/tokens"];
        let kept = ["/audit-logs", "/allowed-ip-address-ranges"];
        for name in [
            "ORGANIZATION_MEMBER",
            "ORGANIZATION_OBSERVE_MEMBER",
            "ORGANIZATION_OBSERVE_ADMIN",
            "ORGANIZATION_BILLING_ADMIN",
            "ORGANIZATION_OWNER",
        ] {
            let actor = app.user_with(name, vec![role(On::Organization, name)]).await;
            for path in reads {
                assert_eq!(app.get(&actor, &app.path(path)).await.code(), 200, "{name} {path}");
            }
            let expected = if name == "ORGANIZATION_OWNER" { 200 } else { 403 };
            for path in kept {
                assert_eq!(app.get(&actor, &app.path(path)).await.code(), expected, "{name} {path}");
            }
        }
    }

    async fn an_owner_owns_every_workspace(app) {
        let id = app.workspace("Data").await;
        let second = app.member_as("second", podium_api::enums::OrganizationRole::Owner).await;
        let body = json!({ "name": "Data", "description": "", "cicdEnforcedDefault": true });
        let at = app.path(&format!("/workspaces/{id}"));
        assert_eq!(app.post(&second, &at, body).await.code(), 200);
        assert_eq!(app.delete(&second, &at).await.code(), 204);
    }

    async fn a_token_acts_as_a_member_and_lists_what_it_works_on(app) {
        let (own, other) = (app.workspace("Own").await, app.workspace("Other").await);
        let deployment = app.deployment(own).await;
        let of_workspace = app.token("w", "WORKSPACE", own, "WORKSPACE_OPERATOR").await;
        let of_deployment = app.token("d", "DEPLOYMENT", deployment, "DEPLOYMENT_ADMIN").await;
        let of_organization =
            app.token("o", "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
        let seen =
            async |actor: &Actor| app.get(actor, &app.path("/workspaces")).await.ok()["totalCount"].clone();
        for (actor, count) in [(&of_workspace, 1), (&of_deployment, 1), (&of_organization, 0)] {
            assert_eq!(seen(actor).await, count);
            for path in ["", "/users", "/teams", "/roles"] {
                assert_eq!(app.get(actor, &app.path(path)).await.code(), 200, "{path}");
            }
            assert_eq!(app.get(actor, &app.path(&format!("/workspaces/{other}"))).await.code(), 404);
            assert_eq!(app.get(actor, &app.path("/audit-logs")).await.code(), 403);
        }
    }

    async fn a_role_on_a_deployment_shows_its_workspace_and_no_more(app) {
        let workspace = app.workspace("Data").await;
        let deployment = app.deployment(workspace).await;
        let on = On::Deployment { id: deployment, workspace_id: workspace };
        let dag = On::Dag { deployment_id: deployment, workspace_id: workspace, dag_id: "etl".into() };
        let at = app.path(&format!("/workspaces/{workspace}"));
        for (name, grant) in [("admin", role(on, "DEPLOYMENT_ADMIN")), ("viewer", role(dag, "DAG_VIEWER"))] {
            let actor = app.user_with(name, vec![role(On::Organization, "ORGANIZATION_MEMBER"), grant]).await;
            assert_eq!(app.get(&actor, &at).await.code(), 200);
            assert_eq!(app.delete(&actor, &at).await.code(), 403);
        }
    }
}
