//! Environment objects: connections, variables and metrics exports.

use super::{
    Difference, Entry, Fields, Kind, Names, Outcome, Planner, Standing, Value, given, json, pick, text,
};
use crate::client::declared::references::{is_kept, secret, variable_name};

/// What an object holds, by type.
const BODIES: &[(&str, &str)] = &[
    ("connection", "connectionOverrides"),
    ("environmentVariable", "environmentVariableOverrides"),
    ("airflowVariable", "airflowVariableOverrides"),
    ("metricsExport", "metricsExportOverrides"),
];

pub(super) fn form(names: &Names, wire: &Value) -> Fields {
    let mut form = pick(wire, &["objectKey", "objectType"]);
    let id = &wire["scopeEntityId"];
    if text(&wire["scope"]) == "DEPLOYMENT" {
        form.insert("workspace".into(), names.workspace_of(id));
        form.insert("deployment".into(), names.of(id));
    } else {
        form.insert("workspace".into(), names.of(id));
    }
    form.extend(pick(wire, &["description", "autoLinkDeployments"]));
    let (key, id) = (text(&wire["objectKey"]), &wire["scopeEntityId"]);
    let home = names.of(id);
    let links = wire["links"].as_array().into_iter().flatten().map(|link| {
        let deployment = names.of(&link["scopeEntityId"]);
        let mut shown = Fields::from_iter([("deployment".to_owned(), deployment.clone())]);
        for (body, overrides) in BODIES {
            if let Some(values) = link.get(*overrides) {
                let words = [text(&home), key, text(&deployment)];
                shown.insert((*body).to_owned(), with_secrets(values, &link["setFields"], &words, false));
            }
        }
        Value::Object(shown)
    });
    form.insert("links".into(), links.collect());
    let excluded = wire["excludeLinks"].as_array().into_iter().flatten();
    let excluded: Value = excluded.map(|link| link["scopeEntityId"].clone()).collect();
    form.insert("excludedDeployments".into(), names.all(&excluded));
    for (body, _) in BODIES {
        if let Some(values) = wire.get(*body) {
            let is_secret = values["isSecret"] == json!(true);
            let mut shown = with_secrets(values, &wire["setFields"], &[text(&home), key], is_secret);
            if let Some(auth_type) = values.get("connectionAuthType") {
                shown["authTypeId"] = auth_type["id"].clone();
                shown.as_object_mut().and_then(|shown| shown.remove("connectionAuthType"));
            }
            form.insert((*body).to_owned(), shown);
        }
    }
    form
}

/// Values with what stands for secrets in the place of those that are set and not shown.
fn with_secrets(values: &Value, set: &Value, words: &[&str], is_secret: bool) -> Value {
    let mut shown = given(values.clone());
    for field in set.as_array().into_iter().flatten().map(text) {
        let is_hidden = |value: Option<&Value>| value.is_none_or(|value| value == "") || is_secret;
        let (map, name) = field.split_once('.').map_or((None, field), |(map, name)| (Some(map), name));
        let place = match map {
            Some(map) => &mut shown[map],
            None => &mut shown,
        };
        if is_hidden(place.get(name)) {
            let words = [words, &[name]].concat();
            place[name] = secret(&variable_name(&words));
        }
    }
    shown
}

pub(super) fn plan(planner: &mut Planner<'_>, entry: &Entry, standing: Standing) -> Outcome {
    match standing {
        Standing::New(declared) => {
            let declared = Value::Object(declared);
            let (scope, id) = match declared.get("deployment") {
                Some(name) => ("DEPLOYMENT", planner.deployment(&declared["workspace"], name, &entry.at)?),
                None => ("WORKSPACE", planner.id(Kind::Workspace, &declared["workspace"], &entry.at)?),
            };
            let mut body =
                pick(&declared, &["objectKey", "objectType", "description", "autoLinkDeployments"]);
            body.insert("scope".into(), scope.into());
            body.insert("scopeEntityId".into(), id);
            for (name, _) in BODIES {
                body.extend(pick(&declared, &[name]));
            }
            body.extend(links(planner, entry, &declared, None)?);
            planner.push(planner.create(entry, Kind::EnvironmentObject.collection(), Value::Object(body)));
            Ok(())
        }
        Standing::Differs(found) => {
            let changed: Fields = found
                .fields
                .iter()
                .filter(|(name, _)| found.is_in(&[name]))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect();
            let changed = Value::Object(changed);
            let mut body =
                pick(&changed, &["description", "autoLinkDeployments", "connection", "metricsExport"]);
            for name in ["environmentVariable", "airflowVariable"] {
                if let Some(variable) = changed.get(name) {
                    body.insert(name.into(), Value::Object(pick(variable, &["value"])));
                }
            }
            body.extend(links(planner, entry, &changed, Some(&found))?);
            let body = blank(Value::Object(body));
            planner.push(planner.change(entry, &found, "", body));
            Ok(())
        }
    }
}

/// A secret that stays as it is, is sent as an empty text.
fn blank(value: Value) -> Value {
    match value {
        value if is_kept(&value) => "".into(),
        Value::Array(items) => items.into_iter().map(blank).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, blank(value))).collect(),
        other => other,
    }
}

/// Links and exclusions, as requests take them.
fn links(
    planner: &Planner<'_>,
    entry: &Entry,
    declared: &Value,
    found: Option<&Difference>,
) -> Outcome<Fields> {
    let workspace = &entry.fields["workspace"];
    let scoped = |name: &Value| -> Outcome<Value> {
        let id = planner.deployment(workspace, name, &entry.at)?;
        Ok(json!({ "scope": "DEPLOYMENT", "scopeEntityId": id }))
    };
    let mut requests = Fields::new();
    if let Some(links) = declared["links"].as_array() {
        let mut all = Vec::new();
        for link in links {
            let mut request = scoped(&link["deployment"])?;
            let mut overrides = Fields::new();
            for (name, _) in BODIES {
                overrides.extend(pick(link, &[name]));
            }
            let unset = found.map_or_else(Vec::new, |found| no_more_different(found, &request, &overrides));
            if !unset.is_empty() {
                overrides.insert("unsetFields".into(), unset.into());
            }
            if !overrides.is_empty() {
                request["overrides"] = Value::Object(overrides);
            }
            all.push(request);
        }
        requests.insert("links".into(), all.into());
    }
    if let Some(names) = declared["excludedDeployments"].as_array() {
        let all = names.iter().map(scoped).collect::<Outcome<Vec<_>>>()?;
        requests.insert("excludeLinks".into(), all.into());
    }
    Ok(requests)
}

/// The fields that a link overrides, and that are not declared for it.
fn no_more_different(found: &Difference, link: &Value, overrides: &Fields) -> Vec<String> {
    let links = found.existing.wire["links"].as_array().into_iter().flatten();
    let known = links.into_iter().find(|known| known["scopeEntityId"] == link["scopeEntityId"]);
    let set = known.and_then(|known| known["setFields"].as_array()).into_iter().flatten().map(text);
    let is_declared = |field: &&str| {
        let path = field.split('.');
        overrides.values().any(|body| path.clone().try_fold(body, |at, name| at.get(name)).is_some())
    };
    set.filter(|field| !is_declared(field)).map(str::to_owned).collect()
}
