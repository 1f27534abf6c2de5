//! API tokens.

use super::{
    Entry, Failed, Fields, Kind, Names, Outcome, Planner, Standing, Value, fields, given, grants, json, pick,
    text,
};

pub(super) fn form(names: &Names, wire: &Value) -> Fields {
    let mut form = pick(wire, &["name"]);
    let held: Vec<&Value> = wire["roles"].as_array().into_iter().flatten().collect();
    let primary = held.iter().find(|held| held["entityType"] == wire["scope"]);
    if let Some(primary) = primary {
        let id = &primary["entityId"];
        match text(&wire["scope"]) {
            "WORKSPACE" => _ = form.insert("workspace".into(), names.of(id)),
            "DEPLOYMENT" => {
                form.insert("workspace".into(), names.workspace_of(id));
                form.insert("deployment".into(), names.of(id));
            }
            _ => {}
        }
        form.insert("role".into(), primary["role"].clone());
    }
    form.extend(pick(wire, &["description", "kind", "expiryPeriodInDays"]));
    let others = held.iter().filter(|held| Some(*held) != primary);
    let others = others.filter_map(|held| grants::of_token(names, held)).collect();
    form.insert("roles".into(), grants::in_order(others));
    form
}

pub(super) fn plan(planner: &mut Planner<'_>, entry: &Entry, standing: Standing) -> Outcome {
    match standing {
        Standing::New(declared) => {
            let declared = Value::Object(declared);
            let Some(role) = declared.get("role") else {
                return Err(Failed::usage(format!("{}.role is missing: a new token needs a role", entry.at)));
            };
            let (scope, home) = home(planner, entry, &declared)?;
            let body = given(json!({
                "name": declared["name"],
                "description": declared["description"],
                "scope": scope,
                "entityId": home,
                "role": role,
                "kind": declared["kind"],
                "tokenExpiryPeriodInDays": declared["expiryPeriodInDays"],
            }));
            planner.push(planner.create(entry, Kind::Token.collection(), body));
            let others = grants::entries(planner, &declared["roles"], &entry.at)?;
            if !others.is_empty() {
                planner.push(planner.change_made(entry, "/roles", json!({ "roles": others })));
            }
            Ok(())
        }
        Standing::Differs(found) => {
            Planner::never_changes(&found, entry, &["kind", "expiryPeriodInDays"])?;
            if found.is_in(&["name", "description"]) {
                let description = found.wanted("description");
                let body = fields(json!({ "name": found.wanted("name"), "description": text(&description) }));
                planner.push(planner.change(entry, &found, "", Value::Object(body)));
            }
            if found.is_in(&["role", "roles"]) {
                let (scope, home) = home(planner, entry, &found.existing.form)?;
                let home = match home {
                    Value::Null => found.existing.wire["roles"]
                        .as_array()
                        .into_iter()
                        .flatten()
                        .find(|held| held["entityType"] == scope)
                        .map_or(Value::Null, |held| held["entityId"].clone()),
                    home => home,
                };
                let primary = json!({ "entityType": scope, "entityId": home, "role": found.wanted("role") });
                let mut all = vec![primary];
                all.extend(grants::entries(planner, &found.wanted("roles"), &entry.at)?);
                planner.push(planner.change(entry, &found, "/roles", json!({ "roles": all })));
            }
            Ok(())
        }
    }
}

/// What a token belongs to: the organization unless a workspace or deployment is named.
fn home(planner: &Planner<'_>, entry: &Entry, token: &Value) -> Outcome<(&'static str, Value)> {
    Ok(match (token.get("workspace"), token.get("deployment")) {
        (Some(workspace), Some(name)) => ("DEPLOYMENT", planner.deployment(workspace, name, &entry.at)?),
        (Some(workspace), None) => ("WORKSPACE", planner.id(Kind::Workspace, workspace, &entry.at)?),
        (None, Some(_)) => {
            return Err(Failed::usage(format!(
                "{}.workspace is missing: give the workspace of the deployment",
                entry.at
            )));
        }
        (None, None) => ("ORGANIZATION", Value::Null),
    })
}
