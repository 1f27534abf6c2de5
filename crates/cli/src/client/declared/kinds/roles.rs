//! Custom roles.

use super::{Entry, Fields, Kind, Names, Outcome, Planner, Standing, Value, fields, json, pick, text};

pub(super) fn form(names: &Names, wire: &Value) -> Fields {
    let mut form = pick(wire, &["name", "description", "scopeType", "permissions"]);
    form.insert("restrictedWorkspaces".into(), names.all(&wire["restrictedWorkspaceIds"]));
    form
}

pub(super) fn plan(planner: &mut Planner<'_>, entry: &Entry, standing: Standing) -> Outcome {
    match standing {
        Standing::New(mut body) => {
            if let Some(workspaces) = body.remove("restrictedWorkspaces") {
                let ids = planner.ids(Kind::Workspace, &workspaces, &entry.at)?;
                body.insert("restrictedWorkspaceIds".into(), ids);
            }
            planner.push(planner.create(entry, Kind::Role.collection(), Value::Object(body)));
            Ok(())
        }
        Standing::Differs(found) => {
            Planner::never_changes(&found, entry, &["scopeType"])?;
            let mut body = fields(json!({
                "name": found.wanted("name"),
                "description": text(&found.wanted("description")),
                "permissions": found.wanted("permissions"),
            }));
            if found.is_in(&["restrictedWorkspaces"]) {
                let workspaces = found.wanted("restrictedWorkspaces");
                let ids = planner.ids(Kind::Workspace, &workspaces, &entry.at)?;
                body.insert("restrictedWorkspaceIds".into(), ids);
            }
            planner.push(planner.change(entry, &found, "", Value::Object(body)));
            Ok(())
        }
    }
}
