//! Users: one who is not there yet is invited.

use super::{Entry, Fields, Names, Outcome, Planner, Standing, Value, grants, json};

const INVITES: &str = "invites";

pub(super) fn form(names: &Names, wire: &Value) -> Fields {
    super::fields(json!({
        "email": wire["username"],
        "organizationRole": wire["organizationRole"],
        "roles": grants::of_subject(names, wire),
    }))
}

pub(super) fn plan(planner: &mut Planner<'_>, entry: &Entry, standing: Standing) -> Outcome {
    match standing {
        Standing::New(declared) => {
            let role = declared.get("organizationRole").cloned().unwrap_or("ORGANIZATION_MEMBER".into());
            let body = json!({ "inviteeEmail": declared["email"], "role": role });
            planner.push(planner.create(entry, INVITES, body));
            if declared.get("roles").and_then(Value::as_array).is_some_and(|roles| !roles.is_empty()) {
                let mut body = grants::lists(planner, &declared["roles"], &entry.at)?;
                body["organizationRole"] = role;
                let call = planner.change_made(entry, "/roles", body);
                planner.after_deployments.push(call);
            }
            Ok(())
        }
        Standing::Differs(found) => {
            let mut body = json!({});
            if found.is_in(&["roles"]) {
                body = grants::lists(planner, &found.wanted("roles"), &entry.at)?;
            }
            body["organizationRole"] = found.wanted("organizationRole");
            let call = planner.change(entry, &found, "/roles", body);
            planner.after_deployments.push(call);
            Ok(())
        }
    }
}
