//! Every operation as an API token with a role on one DAG of the deployment, and nothing else: it may read the deployment, do
//! what every member may, and nothing more, however much the role gives on the DAG.

use podium_api::{Access, ENDPOINTS};
use podium_domain::{Grants, On, Permission};
use podium_store::grants::Subject;
use podium_testkit::{TestApp, on_both_engines, role};

use super::calls::{Prepared, fresh, prepare};

/// The DAG that the token is for, of the deployment or of one in the workspace that a call is about.
async fn dag_of(app: &TestApp, prepared: &Prepared) -> On {
    let (deployment_id, workspace_id) = match prepared.on {
        On::Deployment { id, workspace_id } => (id, workspace_id),
        On::Workspace(workspace_id) => (app.deployment(workspace_id).await, workspace_id),
        _ => {
            let workspace_id = app.workspace(&fresh(app)).await;
            (app.deployment(workspace_id).await, workspace_id)
        }
    };
    On::Dag { deployment_id, workspace_id, dag_id: "etl".to_owned() }
}

on_both_engines! {
    async fn a_token_for_one_dag_may_read_its_deployment_and_nothing_more(app) {
        let (mut admitted, mut refused) = (Vec::new(), 0);
        for endpoint in ENDPOINTS {
            let Access::Permission(name) = endpoint.access else { continue };
            let prepared = prepare(&app, endpoint).await;
            let held = vec![role(dag_of(&app, &prepared).await, "DAG_AUTHOR")];
            let token = app.token(&fresh(&app), "ORGANIZATION", app.organization_id, "ORGANIZATION_MEMBER").await;
            app.set_grants(Subject::Token, token.id, held.clone()).await;
            let may = Grants::for_token(held).at(&prepared.on).contains(Permission::known(name));
            let answer = prepared.send(prepared.call(&app).by(&token)).await;
            let code = answer.code();
            if !may {
                assert_eq!(code, 403, "{}: {}", endpoint.id, answer.text());
                refused += 1;
            } else if prepared.behind_gate.is_some() {
                assert!([403, 404].contains(&code), "{}: {code} {}", endpoint.id, answer.text());
                refused += 1;
            } else {
                assert!(![401, 403].contains(&code) && code < 500, "{}: {code} {}", endpoint.id, answer.text());
                if prepared.on != On::Organization {
                    admitted.push(endpoint.id);
                }
            }
        }
        assert_eq!(admitted, ["GetWorkspace", "GetDeployment"], "of workspaces and deployments");
        assert!(refused > 60, "{refused}");
    }
}
