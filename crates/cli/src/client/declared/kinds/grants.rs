//! Roles of users, teams and tokens: one list in the files, several on the wire.

use super::{Failed, Kind, Names, Outcome, Planner, Value, given, json, text};

/// The roles of a user or a team beyond that in the organization, in order.
pub(super) fn of_subject(names: &Names, wire: &Value) -> Value {
    let list = |name: &str| wire[name].as_array().cloned().unwrap_or_default();
    let workspaces = list("workspaceRoles")
        .into_iter()
        .map(|held| json!({ "workspace": names.of(&held["workspaceId"]), "role": held["role"] }));
    let deployments = list("deploymentRoles").into_iter().map(|held| {
        let id = &held["deploymentId"];
        json!({ "workspace": names.workspace_of(id), "deployment": names.of(id), "role": held["role"] })
    });
    let dags = list("dagRoles").into_iter().map(|held| {
        let id = &held["deploymentId"];
        given(json!({
            "workspace": names.workspace_of(id), "deployment": names.of(id), "dag": held["dagId"],
            "dagTag": held["dagTag"], "role": held["role"],
        }))
    });
    in_order(workspaces.chain(deployments).chain(dags).collect())
}

/// A role of a token in the form of the files; none for one on the organization.
pub(super) fn of_token(names: &Names, held: &Value) -> Option<Value> {
    let (id, role) = (&held["entityId"], &held["role"]);
    Some(match text(&held["entityType"]) {
        "WORKSPACE" => json!({ "workspace": names.of(id), "role": role }),
        "DEPLOYMENT" => {
            json!({ "workspace": names.workspace_of(id), "deployment": names.of(id), "role": role })
        }
        kind @ ("DAG" | TAG) => {
            let deployment = &held["deploymentId"];
            let field = if kind == "DAG" { "dag" } else { "dagTag" };
            json!({
                "workspace": names.workspace_of(deployment), "deployment": names.of(deployment), field: id,
                "role": role,
            })
        }
        _ => return None,
    })
}

pub(super) fn in_order(mut grants: Vec<Value>) -> Value {
    grants.sort_by_key(ToString::to_string);
    Value::Array(grants)
}

/// The role lists of a user or a team.
pub(super) fn lists(planner: &Planner<'_>, grants: &Value, at: &str) -> Outcome<Value> {
    let (mut workspaces, mut deployments, mut dags) = (Vec::new(), Vec::new(), Vec::new());
    for grant in grants.as_array().into_iter().flatten() {
        let role = &grant["role"];
        if grant.get("deployment").is_none() {
            on_deployment_only(grant, at)?;
            let id = planner.id(Kind::Workspace, &grant["workspace"], at)?;
            workspaces.push(json!({ "workspaceId": id, "role": role }));
            continue;
        }
        let id = planner.deployment(&grant["workspace"], &grant["deployment"], at)?;
        match (grant.get("dag"), grant.get("dagTag")) {
            (None, None) => deployments.push(json!({ "deploymentId": id, "role": role })),
            (dag, tag) => {
                dags.push(given(json!({ "dagId": dag, "dagTag": tag, "deploymentId": id, "role": role })));
            }
        }
    }
    Ok(json!({ "workspaceRoles": workspaces, "deploymentRoles": deployments, "dagRoles": dags }))
}

/// The roles of a token.
pub(super) fn entries(planner: &Planner<'_>, grants: &Value, at: &str) -> Outcome<Vec<Value>> {
    let mut entries = Vec::new();
    for grant in grants.as_array().into_iter().flatten() {
        let role = &grant["role"];
        if grant.get("deployment").is_none() {
            on_deployment_only(grant, at)?;
            let id = planner.id(Kind::Workspace, &grant["workspace"], at)?;
            entries.push(json!({ "entityType": "WORKSPACE", "entityId": id, "role": role }));
            continue;
        }
        let id = planner.deployment(&grant["workspace"], &grant["deployment"], at)?;
        entries.push(match (grant.get("dag"), grant.get("dagTag")) {
            (Some(dag), _) => {
                json!({ "entityType": "DAG", "entityId": dag, "deploymentId": id, "role": role })
            }
            (None, Some(tag)) => {
                json!({ "entityType": TAG, "entityId": tag, "deploymentId": id, "role": role })
            }
            (None, None) => json!({ "entityType": "DEPLOYMENT", "entityId": id, "role": role }),
        });
    }
    Ok(entries)
}

/// The wire's word for a tag of DAGs.
const TAG: &str = podium_api::enums::TokenEntity::DagTag.as_str();

fn on_deployment_only(grant: &Value, at: &str) -> Outcome {
    if grant.get("dag").is_some() || grant.get("dagTag").is_some() {
        return Err(Failed::usage(format!(
            "{at}.roles: a role on a DAG must name the deployment of the DAG too"
        )));
    }
    Ok(())
}
