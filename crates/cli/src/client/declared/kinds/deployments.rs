//! Deployments.

use super::{
    Difference, Entry, Failed, Fields, Kind, Names, Outcome, Planner, Standing, Value, fields, given, json,
    pick, read, text,
};
use crate::client::commands::deployments::Kept;
use crate::client::declared::references::{is_kept, secret, variable_name};

/// What never changes.
const FIXED: &[&str] = &["type", "cluster", "cloudProvider", "region"];
/// What requests take as it is.
const PLAIN: &[&str] = &[
    "description",
    "executor",
    "schedulerSize",
    "scheduler",
    "isHighAvailability",
    "isDevelopmentMode",
    "isCicdEnforced",
    "isDagDeployEnabled",
    "defaultTaskPodCpu",
    "defaultTaskPodMemory",
    "resourceQuotaCpu",
    "resourceQuotaMemory",
    "contactEmails",
    "remoteExecution",
    "drainGraceSeconds",
    "isStrictDeployEnabled",
    "historyRetentionDays",
    "cleanUpCron",
];
const OF_A_QUEUE: &[&str] = &[
    "name",
    "platformMachine",
    "minWorkerCount",
    "maxWorkerCount",
    "workerConcurrency",
    "podEphemeralStorage",
];

pub(super) fn form(names: &Names, wire: &Value) -> Fields {
    let mut form = pick(wire, &["name"]);
    let workspace = names.of(&wire["workspaceId"]);
    form.insert("workspace".into(), workspace.clone());
    form.extend(pick(wire, &["type", "platformRuntimeVersion"]));
    let is_shared = text(&wire["type"]) == "STANDARD";
    if is_shared {
        form.extend(pick(wire, &["cloudProvider", "region"]));
    } else {
        form.insert("cluster".into(), names.of(&wire["clusterId"]));
    }
    form.extend(pick(wire, PLAIN));
    if text(&wire["type"]) == "HYBRID" {
        form.remove("schedulerSize");
        let scheduler = json!({ "au": wire["schedulerAu"], "replicas": wire["schedulerReplicas"] });
        form.insert("scheduler".into(), scheduler);
    }
    let queues = wire["workerQueues"].as_array().into_iter().flatten().map(|queue| {
        let mut shown = pick(queue, OF_A_QUEUE);
        shown.insert("nodePool".into(), names.of(&queue["nodePoolId"]));
        given(Value::Object(shown))
    });
    form.insert("workerQueues".into(), queues.collect());
    form.insert("taskPodNodePool".into(), names.of(&wire["taskPodNodePoolId"]));
    let variables = wire["environmentVariables"].as_array().into_iter().flatten();
    let variable = |variable: &Value| {
        let key = text(&variable["key"]);
        if variable["isSecret"] == json!(true) {
            let name = variable_name(&[text(&workspace), text(&wire["name"]), key]);
            return json!({ "key": key, "value": secret(&name), "isSecret": true });
        }
        json!({ "key": key, "value": variable["value"], "isSecret": false })
    };
    form.insert("environmentVariables".into(), variables.map(variable).collect());
    if let Some(schedules) = wire["scalingSpec"]["hibernationSpec"].get("schedules") {
        form.insert("scalingSpec".into(), json!({ "hibernationSpec": { "schedules": schedules } }));
    }
    if let Some(remote) = form.get_mut("remoteExecution").and_then(Value::as_object_mut) {
        remote.remove("remoteApiUrl");
    }
    form
}

pub(super) fn plan(planner: &mut Planner<'_>, entry: &Entry, standing: Standing) -> Outcome {
    match standing {
        Standing::New(declared) => {
            let declared = Value::Object(declared);
            let mut body =
                pick(&declared, &["name", "type", "cloudProvider", "region", "platformRuntimeVersion"]);
            let workspace = planner.id(Kind::Workspace, &declared["workspace"], &entry.at)?;
            body.insert("workspaceId".into(), workspace);
            if let Some(cluster) = declared.get("cluster") {
                body.insert("clusterId".into(), planner.id(Kind::Cluster, cluster, &entry.at)?);
            }
            body.extend(pick(&declared, PLAIN));
            body.extend(parts(planner, entry, &declared, declared.get("cluster"))?);
            planner.push(planner.create(entry, Kind::Deployment.collection(), Value::Object(body)));
            Ok(())
        }
        Standing::Differs(found) => {
            Planner::never_changes(&found, entry, FIXED)?;
            if found.is_in(&["platformRuntimeVersion"]) {
                planner.note(format!(
                    "{}: the runtime is {}, but declared as {}: a deploy changes it, not this file.",
                    entry.at,
                    found.existing.form["platformRuntimeVersion"],
                    found.fields["platformRuntimeVersion"]
                ));
            }
            let mut changed = Fields::new();
            for name in found.fields.keys().filter(|name| is_changed(&found, name)) {
                changed.insert(name.clone(), found.wanted(name));
            }
            if changed.is_empty() {
                return Ok(());
            }
            let changed = Value::Object(changed);
            let mut change = pick(&changed, &["name"]);
            change.extend(pick(&changed, PLAIN));
            change.extend(parts(planner, entry, &changed, found.existing.form.get("cluster"))?);
            let held = &found.existing.wire["scalingSpec"]["hibernationSpec"]["override"];
            if let (Some(scaling), false) = (change.get_mut("scalingSpec"), held.is_null()) {
                let held = Value::Object(pick(held, &["isHibernating", "overrideUntil"]));
                scaling["hibernationSpec"]["override"] = held;
            }
            let body = read::<Kept>(&found.existing.wire)?.changed(&Value::Object(change), &[], &[]);
            planner.push(planner.change(entry, &found, "", body));
            Ok(())
        }
    }
}

fn is_changed(found: &Difference, name: &str) -> bool {
    name != "platformRuntimeVersion" && found.is_in(&[name])
}

/// A declared queue as requests take it, but for its node pool.
fn queue_request(queue: &Value) -> Fields {
    let mut request = pick(queue, OF_A_QUEUE);
    request.insert("isDefault".into(), (text(&queue["name"]) == "default").into());
    request
}

/// What requests take in another form.
fn parts(planner: &Planner<'_>, entry: &Entry, declared: &Value, cluster: Option<&Value>) -> Outcome<Fields> {
    let mut parts = Fields::new();
    if let Some(queues) = declared["workerQueues"].as_array() {
        let mut all = Vec::new();
        for queue in queues {
            let mut request = queue_request(queue);
            if let Some(pool) = queue.get("nodePool") {
                request.insert("nodePoolId".into(), node_pool(planner, entry, cluster, pool)?);
            }
            all.push(Value::Object(request));
        }
        parts.insert("workerQueues".into(), all.into());
    }
    if let Some(pool) = declared.get("taskPodNodePool") {
        parts.insert("taskPodNodePoolId".into(), node_pool(planner, entry, cluster, pool)?);
    }
    if let Some(variables) = declared["environmentVariables"].as_array() {
        let request = |variable: &Value| {
            let is_kept = variable.get("value").is_some_and(is_kept);
            let is_secret = is_kept || variable["isSecret"] == json!(true);
            let mut request = fields(json!({ "key": variable["key"], "isSecret": is_secret }));
            // A secret without a value keeps the stored one.
            if let Some(value) = variable.get("value").filter(|_| !is_kept) {
                request.insert("value".into(), value.clone());
            }
            Value::Object(request)
        };
        parts.insert("environmentVariables".into(), variables.iter().map(request).collect());
    }
    parts.extend(pick(declared, &["scalingSpec"]));
    Ok(parts)
}

/// The id of a node pool of the cluster.
fn node_pool(planner: &Planner<'_>, entry: &Entry, cluster: Option<&Value>, pool: &Value) -> Outcome<Value> {
    let pools = cluster.and_then(|name| planner.wire(Kind::Cluster, name)).map(|wire| &wire["nodePools"]);
    let found = pools.and_then(Value::as_array).into_iter().flatten().find(|known| known["name"] == *pool);
    match found {
        Some(known) => Ok(known["id"].clone()),
        None => Err(Failed::usage(format!(
            "{} names the node pool {pool}, which its cluster does not have",
            entry.at
        ))
        .hint("A cluster that is new needs to be applied before deployments can name its pools.")),
    }
}
