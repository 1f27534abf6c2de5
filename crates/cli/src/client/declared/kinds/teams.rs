//! Teams, their members and their roles.

use super::{
    Difference, Entry, Fields, Kind, Names, Outcome, Planner, Standing, Value, grants, json, pick, text,
};
use crate::client::declared::calls::Planned;

pub(super) fn form(names: &Names, wire: &Value) -> Fields {
    let mut form = pick(wire, &["name", "description", "organizationRole"]);
    if let Some(members) = wire["members"].as_array() {
        let mut emails: Vec<&str> = members.iter().map(|member| text(&member["username"])).collect();
        emails.sort_unstable();
        form.insert("members".into(), emails.into());
    }
    form.insert("roles".into(), grants::of_subject(names, wire));
    form
}

pub(super) fn plan(planner: &mut Planner<'_>, entry: &Entry, standing: Standing) -> Outcome {
    match standing {
        Standing::New(declared) => {
            let declared = Value::Object(declared);
            let mut body = pick(&declared, &["name", "description", "organizationRole"]);
            if let Some(members) = declared.get("members") {
                body.insert("memberIds".into(), planner.ids(Kind::User, members, &entry.at)?);
            }
            planner.push(planner.create(entry, Kind::Team.collection(), Value::Object(body)));
            if declared["roles"].as_array().is_some_and(|roles| !roles.is_empty()) {
                let mut body = grants::lists(planner, &declared["roles"], &entry.at)?;
                let role = declared.get("organizationRole").cloned();
                body["organizationRole"] = role.unwrap_or("ORGANIZATION_MEMBER".into());
                let call = planner.change_made(entry, "/roles", body);
                planner.after_deployments.push(call);
            }
            Ok(())
        }
        Standing::Differs(found) => {
            if found.is_in(&["name", "description"]) {
                let description = found.wanted("description");
                let body = json!({ "name": found.wanted("name"), "description": text(&description) });
                planner.push(planner.change(entry, &found, "", body));
            }
            if found.is_in(&["members"]) {
                change_members(planner, entry, &found)?;
            }
            if found.is_in(&["organizationRole", "roles"]) {
                let mut body = json!({});
                if found.is_in(&["roles"]) {
                    body = grants::lists(planner, &found.wanted("roles"), &entry.at)?;
                }
                body["organizationRole"] = found.wanted("organizationRole");
                let call = planner.change(entry, &found, "/roles", body);
                planner.after_deployments.push(call);
            }
            Ok(())
        }
    }
}

fn change_members(planner: &mut Planner<'_>, entry: &Entry, found: &Difference) -> Outcome {
    let wanted = found.wanted("members");
    let wanted: Vec<&Value> = wanted.as_array().into_iter().flatten().collect();
    let members: Vec<&Value> = found.existing.wire["members"].as_array().into_iter().flatten().collect();
    let is = |email: &Value, member: &Value| {
        text(email).to_lowercase() == text(&member["username"]).to_lowercase()
    };
    let (mut added, mut details) = (Vec::new(), Vec::new());
    for email in wanted.iter().filter(|email| !members.iter().any(|member| is(email, member))) {
        added.push(planner.id(Kind::User, email, &entry.at)?);
        details.push(format!("adds the member {}", text(email)));
    }
    if !added.is_empty() {
        let call = planner.change(entry, found, "/members", json!({ "memberIds": added }));
        planner.push(Planned { details, ..call });
    }
    for member in members.iter().filter(|member| !wanted.iter().any(|email| is(email, member))) {
        let call = planner.change(entry, found, "/members", Value::Null);
        let details = vec![format!("removes the member {}", text(&member["username"]))];
        planner.push(Planned { body: None, member: Some(member["userId"].clone()), details, ..call });
    }
    Ok(())
}
