//! `/organizations/{organizationId}/roles` and `/role-templates`

mod holders;

use podium_api::Id;
use podium_api::enums::OrganizationRole;
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

fn path(app: &TestApp, id: impl std::fmt::Display) -> String {
    app.path(&format!("/roles/{id}"))
}

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|role| role["name"].as_str().unwrap()).collect()
}

on_both_engines! {
    async fn a_custom_role_is_created_read_changed_and_deleted(app) {
        let workspace = app.workspace("Data").await;
        let body = json!({
            "name": " Log reader ",
            "description": " Reads logs ",
            "scopeType": "DEPLOYMENT",
            "permissions": ["deployment.logs.get", "deployment.get", "deployment.get"],
            "restrictedWorkspaceIds": [workspace, workspace],
        });
        let created = app.post(&app.owner, &app.path("/roles"), body).await;
        assert_eq!(created.code(), 200);
        insta::assert_json_snapshot!(created.ok(), @r#"
        {
          "id": "cmywpiww00006000000000000",
          "name": "Log reader",
          "description": "Reads logs",
          "scopeType": "DEPLOYMENT",
          "permissions": [
            "deployment.get",
            "deployment.logs.get"
          ],
          "restrictedWorkspaceIds": [
            "cmywpiww00004000000000000"
          ],
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
        let at = path(&app, created.id());
        assert_eq!(app.get(&app.owner, &at).await.ok(), created.ok());
        app.advance(std::time::Duration::from_secs(1));
        let change = json!({ "name": "Reader", "permissions": ["deployment.get"], "scopeType": "DAG" });
        let changed = app.post(&app.owner, &at, change).await.ok();
        let mut expected = created.ok();
        expected["name"] = "Reader".into();
        expected["permissions"] = json!(["deployment.get"]);
        expected["updatedAt"] = "2027-01-15T08:00:01.000Z".into();
        assert_eq!(changed, expected, "what is left out stays, and the scope always does");
        let cleared = json!({
            "name": "Reader",
            "permissions": ["deployment.get"],
            "description": "",
            "restrictedWorkspaceIds": [],
        });
        let cleared = app.post(&app.owner, &at, cleared).await.ok();
        assert_eq!((&cleared["description"], &cleared["restrictedWorkspaceIds"]), (&json!(""), &json!([])));
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
        for answer in [app.get(&app.owner, &at).await, app.delete(&app.owner, &at).await] {
            assert_eq!(answer.refused(404), "There is no such role, or you may not see it.");
        }
    }

    async fn names_are_unique_and_not_those_of_built_in_roles(app) {
        let create = async |name: &str| {
            let body = json!({ "name": name, "scopeType": "DAG", "permissions": ["dag.airflow.dag.get"] });
            app.post(&app.owner, &app.path("/roles"), body).await
        };
        let id = create("Watcher").await.id();
        let taken = create("wATCHER").await.refused(409);
        assert_eq!(taken, "A role named `wATCHER` already exists: choose another name.");
        let other = create("Other").await.id();
        let rename = |name: &str| json!({ "name": name, "permissions": ["dag.airflow.dag.get"] });
        assert_eq!(app.post(&app.owner, &path(&app, &other), rename("WATCHER")).await.code(), 409);
        assert_eq!(app.post(&app.owner, &path(&app, &id), rename("WATCHER")).await.code(), 200);
        for name in ["ORGANIZATION_OWNER", "workspace_member", "DEPLOYMENT_ADMIN", "DAG_VIEWER"] {
            assert_eq!(create(name).await.wrong_fields(), ["name: reserved"], "{name}");
            let renamed = app.post(&app.owner, &path(&app, &other), rename(name)).await;
            assert_eq!(renamed.wrong_fields(), ["name: reserved"], "{name}");
        }
    }

    async fn permissions_are_known_of_the_scope_and_at_least_one(app) {
        let role = |scope: &str, permissions: &[&str]| json!({ "name": "x", "scopeType": scope, "permissions": permissions });
        let table = [
            (role("DEPLOYMENT", &[]), vec!["permissions: minItems"]),
            (role("WORKSPACE", &["workspace.get"]), vec!["scopeType: enum"]),
            (
                role(
                    "DEPLOYMENT",
                    &["deployment.get", "deployment.fly", "dag.airflow.dag.get", "workspace.get"],
                ),
                vec!["permissions[1]: unknown", "permissions[2]: scope", "permissions[3]: scope"],
            ),
            (role("DAG", &["deployment.airflow.dag.get"]), vec!["permissions[0]: scope"]),
            (role("DAG", &["dag.airflow.dag.*"]), vec!["permissions[0]: unknown"]),
            (
                json!({
                    "name": " ",
                    "scopeType": "DAG",
                    "permissions": ["x"],
                    "restrictedWorkspaceIds": [app.world.id::<Id>()],
                }),
                vec!["name: required", "permissions[0]: unknown", "restrictedWorkspaceIds[0]: unknown"],
            ),
            (json!({}), vec!["name: required", "scopeType: required", "permissions: required"]),
        ];
        for (body, wrong) in table {
            assert_eq!(
                app.post(&app.owner, &app.path("/roles"), body.clone()).await.wrong_fields(),
                wrong,
                "{body}"
            );
        }
        let id = app.custom_role("Watcher", "DAG", &["dag.airflow.dag.get"]).await;
        let body = json!({ "name": "Watcher", "permissions": ["dag.airflow.xcom.get", "deployment.get"] });
        assert_eq!(
            app.post(&app.owner, &path(&app, id), body).await.wrong_fields(),
            ["permissions[1]: scope"]
        );
        assert_eq!(
            app.get(&app.owner, &path(&app, id)).await.ok()["permissions"],
            json!(["dag.airflow.dag.get"])
        );
    }

    async fn a_list_contains_custom_roles_and_on_request_built_in_ones(app) {
        app.custom_role("Tuner", "DEPLOYMENT", &["deployment.update"]).await;
        app.advance(std::time::Duration::from_millis(1));
        let id = app.custom_role("Watcher", "DAG", &["dag.airflow.dag.get"]).await;
        let list = app.get(&app.owner, &app.path("/roles?limit=1")).await.ok();
        let mut watcher = app.get(&app.owner, &path(&app, id)).await.ok();
        watcher.as_object_mut().unwrap().remove("permissions");
        assert_eq!(list, json!({ "roles": [watcher], "limit": 1, "offset": 0, "totalCount": 2 }));
        for (query, roles, built_in) in [
            ("sorts=name:asc", "Tuner Watcher", 0),
            ("sorts=scopeType:asc", "Watcher Tuner", 0),
            ("includeDefaultRoles=false", "Watcher Tuner", 0),
            ("includeDefaultRoles=true", "Watcher Tuner", 14),
            ("includeDefaultRoles=true&scopeTypes=DAG", "Watcher", 2),
            ("includeDefaultRoles=true&scopeTypes=DEPLOYMENT&scopeTypes=ORGANIZATION", "Tuner", 7),
            ("includeDefaultRoles=true&scopeTypes=WORKSPACE", "", 5),
        ] {
            let list = app.get(&app.owner, &app.path(&format!("/roles?{query}"))).await.ok();
            assert_eq!(names(&list["roles"]).join(" "), roles, "{query}");
            assert_eq!(list["defaultRoles"].as_array().map_or(0, Vec::len), built_in, "{query}");
            assert_eq!(list["totalCount"], names(&list["roles"]).len());
        }
        let large = app.get(&app.owner, &app.path("/roles?limit=2000")).await.ok();
        assert_eq!(large["limit"], 1000);
    }

    async fn default_roles_are_shown_with_what_they_give(app) {
        let list = app.get(&app.owner, &app.path("/roles?includeDefaultRoles=true")).await.ok();
        let roles = list["defaultRoles"].as_array().unwrap();
        let told: Vec<String> = roles
            .iter()
            .map(|role| {
                let count = role["permissions"].as_array().unwrap().len();
                format!("{} {} {count}", role["scopeType"].as_str().unwrap(), role["name"].as_str().unwrap())
            })
            .collect();
        insta::assert_json_snapshot!(told, @r#"
        [
          "ORGANIZATION ORGANIZATION_MEMBER 12",
          "ORGANIZATION ORGANIZATION_OBSERVE_MEMBER 12",
          "ORGANIZATION ORGANIZATION_OBSERVE_ADMIN 12",
          "ORGANIZATION ORGANIZATION_BILLING_ADMIN 13",
          "ORGANIZATION ORGANIZATION_OWNER 171",
          "WORKSPACE WORKSPACE_ACCESSOR 1",
          "WORKSPACE WORKSPACE_MEMBER 28",
          "WORKSPACE WORKSPACE_AUTHOR 49",
          "WORKSPACE WORKSPACE_OPERATOR 86",
          "WORKSPACE WORKSPACE_OWNER 100",
          "DEPLOYMENT DEPLOYMENT_ACCESSOR 1",
          "DEPLOYMENT DEPLOYMENT_ADMIN 79",
          "DAG DAG_VIEWER 11",
          "DAG DAG_AUTHOR 20"
        ]
        "#);
        let accessor = roles.iter().find(|role| role["name"] == "DEPLOYMENT_ACCESSOR").unwrap();
        assert_eq!(
            *accessor,
            json!({
                "name": "DEPLOYMENT_ACCESSOR",
                "description": "Sees the deployment.",
                "scopeType": "DEPLOYMENT",
                "permissions": ["deployment.get"],
            })
        );
    }

    async fn templates_are_there_to_be_copied(app) {
        let templates = app.get(&app.owner, &app.path("/role-templates")).await.ok();
        assert_eq!(names(&templates), ["Deployment_Viewer", "Deployment_Author", "Deployment_Operator"]);
        insta::assert_json_snapshot!(templates[0], @r#"
        {
          "name": "Deployment_Viewer",
          "description": "Sees the deployment, its DAGs and its logs.",
          "scopeType": "DEPLOYMENT",
          "permissions": [
            "deployment.agents.get",
            "deployment.airflow.auditLog.get",
            "deployment.airflow.browseMenu.get",
            "deployment.airflow.clusterActivity.get",
            "deployment.airflow.customMenu.get",
            "deployment.airflow.dag.get",
            "deployment.airflow.dagCode.get",
            "deployment.airflow.dagDependencies.get",
            "deployment.airflow.dagRun.get",
            "deployment.airflow.datasets.get",
            "deployment.airflow.docs.get",
            "deployment.airflow.importError.get",
            "deployment.airflow.job.get",
            "deployment.airflow.slaMiss.get",
            "deployment.airflow.taskInstance.get",
            "deployment.airflow.taskLog.get",
            "deployment.airflow.taskReschedule.get",
            "deployment.airflow.trigger.get",
            "deployment.airflow.website.get",
            "deployment.airflow.xcom.get",
            "deployment.alerts.get",
            "deployment.deploys.get",
            "deployment.get",
            "deployment.logs.get",
            "deployment.metrics.get",
            "deployment.teams.get",
            "deployment.users.get"
          ]
        }
        "#);
        for template in templates.as_array().unwrap() {
            let copied = app.post(&app.owner, &app.path("/roles"), template.clone()).await.ok();
            assert_eq!(copied["permissions"], template["permissions"]);
        }
        let count = async |query: &str| {
            let path = app.path(&format!("/role-templates?{query}"));
            app.get(&app.owner, &path).await.ok().as_array().unwrap().len()
        };
        assert_eq!(count("scopeTypes=DEPLOYMENT&scopeTypes=DAG").await, 3);
        assert_eq!(count("scopeTypes=DAG").await, 0);
        assert_eq!(count("scopeTypes=").await, 3);
    }

    async fn members_see_roles_and_owners_define_them(app) {
        let id = app.custom_role("Watcher", "DAG", &["dag.airflow.dag.get"]).await;
        let body = json!({ "name": "Mine", "scopeType": "DAG", "permissions": ["dag.airflow.dag.get"] });
        for role in [OrganizationRole::Member, OrganizationRole::BillingAdmin] {
            let actor = app.member_as(role.as_str(), role).await;
            assert_eq!(app.get(&actor, &app.path("/roles")).await.ok()["totalCount"], 1);
            assert_eq!(app.get(&actor, &path(&app, id)).await.code(), 200);
            assert_eq!(app.get(&actor, &app.path("/role-templates")).await.code(), 200);
            assert_eq!(app.post(&actor, &app.path("/roles"), body.clone()).await.code(), 403);
            assert_eq!(app.post(&actor, &path(&app, id), body.clone()).await.code(), 403);
            assert_eq!(app.delete(&actor, &path(&app, id)).await.code(), 403);
        }
    }
}
