//! Clusters.

use super::{Entry, Fields, Kind, Names, Outcome, Planner, Standing, Value, fields, json, pick, text};

/// What never changes.
const FIXED: &[&str] = &[
    "type",
    "cloudProvider",
    "region",
    "providerAccount",
    "tenantId",
    "vpcSubnetRange",
    "podSubnetRange",
    "serviceSubnetRange",
    "servicePeeringRange",
    "secondaryVpcCidr",
    "drSecondaryVpcCidr",
];
/// What an update takes as it is.
const PLAIN: &[&str] = &["dbInstanceType", "isPrivateNetworkEgressEnabled", "enableReplicationTimeControl"];
/// What describes the standby region.
const STANDBY: &[&str] =
    &["drRegion", "drVpcSubnetRange", "drPodSubnetRange", "drServiceSubnetRange", "drServicePeeringRange"];

pub(super) fn form(names: &Names, wire: &Value) -> Fields {
    let mut form = pick(wire, &["name"]);
    form.extend(pick(wire, FIXED));
    form.extend(pick(wire, PLAIN));
    form.extend(pick(wire, STANDBY));
    if wire["isDrEnabled"] != json!(true) {
        form.remove("enableReplicationTimeControl");
    }
    let tags = wire["tags"].as_array().into_iter().flatten();
    form.insert("tags".into(), tags.map(|tag| Value::Object(pick(tag, &["key", "value"]))).collect());
    let pools = wire["nodePools"].as_array().into_iter().flatten();
    let pool = |pool| Value::Object(pick(pool, &["name", "nodeInstanceType", "maxNodeCount", "isDefault"]));
    form.insert("nodePools".into(), pools.map(pool).collect());
    form.insert("workspaces".into(), names.all(&wire["workspaceIds"]));
    form
}

pub(super) fn plan(planner: &mut Planner<'_>, entry: &Entry, standing: Standing) -> Outcome {
    match standing {
        Standing::New(mut body) => {
            if let Some(tags) = body.remove("tags") {
                body.insert("k8sTags".into(), tags);
            }
            if let Some(workspaces) = body.remove("workspaces") {
                body.insert("workspaceIds".into(), planner.ids(Kind::Workspace, &workspaces, &entry.at)?);
            }
            planner.push(planner.create(entry, Kind::Cluster.collection(), Value::Object(body)));
            Ok(())
        }
        Standing::Differs(found) => {
            Planner::never_changes(&found, entry, FIXED)?;
            let wire = &found.existing.wire;
            let is_hybrid = text(&wire["type"]) == "HYBRID";
            let mut body = match is_hybrid {
                true => fields(json!({ "clusterType": "HYBRID" })),
                false => fields(json!({
                    "clusterType": wire["type"], "name": found.wanted("name"), "k8sTags": found.wanted("tags"),
                })),
            };
            for name in PLAIN.iter().filter(|name| found.is_in(&[name])) {
                body.insert((*name).into(), found.wanted(name));
            }
            if found.is_in(STANDBY) {
                let has_region = !text(&found.wanted("drRegion")).is_empty();
                body.insert("enableDr".into(), has_region.into());
                for name in STANDBY.iter().filter(|name| has_region && found.fields.contains_key(**name)) {
                    body.insert((*name).into(), found.wanted(name));
                }
            }
            if found.is_in(&["nodePools"]) {
                body.insert("nodePools".into(), found.wanted("nodePools"));
            }
            if found.is_in(&["workspaces"]) {
                let ids = planner.ids(Kind::Workspace, &found.wanted("workspaces"), &entry.at)?;
                body.insert("workspaceIds".into(), ids);
            }
            planner.push(planner.change(entry, &found, "", Value::Object(body)));
            Ok(())
        }
    }
}
