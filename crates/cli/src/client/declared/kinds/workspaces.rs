//! Workspaces.

use super::{Entry, Fields, Kind, Names, Outcome, Planner, Standing, Value, fields, json, pick, text};

const PLAIN: &[&str] = &["description", "cicdEnforcedDefault", "defaultCloudProvider", "defaultRegion"];

pub(super) fn form(names: &Names, wire: &Value) -> Fields {
    let mut form = pick(wire, &["name"]);
    form.extend(pick(wire, PLAIN));
    form.insert("defaultCluster".into(), names.of(&wire["defaultClusterId"]));
    form
}

pub(super) fn plan(planner: &mut Planner<'_>, entry: &Entry, standing: Standing) -> Outcome {
    match standing {
        Standing::New(declared) => {
            let declared = Value::Object(declared);
            let mut body = pick(&declared, &["name"]);
            body.extend(pick(&declared, PLAIN));
            planner.push(planner.create(entry, Kind::Workspace.collection(), Value::Object(body)));
            // A cluster may be restricted to this workspace, so it comes later.
            if let Some(cluster) = declared.get("defaultCluster").filter(|name| !text(name).is_empty()) {
                let body = json!({
                    "name": declared["name"],
                    "description": text(&declared["description"]),
                    "cicdEnforcedDefault": declared["cicdEnforcedDefault"] == json!(true),
                    "defaultClusterId": planner.id(Kind::Cluster, cluster, &entry.at)?,
                });
                let call = planner.change_made(entry, "", body);
                planner.after_clusters.push(call);
            }
            Ok(())
        }
        Standing::Differs(found) => {
            let mut body = fields(json!({
                "name": found.wanted("name"),
                "description": text(&found.wanted("description")),
                "cicdEnforcedDefault": found.wanted("cicdEnforcedDefault"),
            }));
            for name in ["defaultCloudProvider", "defaultRegion"] {
                if found.is_in(&[name]) {
                    body.insert(name.into(), found.wanted(name));
                }
            }
            if found.is_in(&["defaultCluster"]) {
                let cluster = found.wanted("defaultCluster");
                let id = match text(&cluster) {
                    "" => Value::Null,
                    _ => planner.id(Kind::Cluster, &cluster, &entry.at)?,
                };
                body.insert("defaultClusterId".into(), id);
            }
            let call = planner.change(entry, &found, "", Value::Object(body));
            planner.after_clusters.push(call);
            Ok(())
        }
    }
}
