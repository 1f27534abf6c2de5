//! Settings that new and changed clusters share: the database, tags, and the workspaces that a cluster accepts.

use std::collections::BTreeSet;

use podium_api::WorkspaceId;
use podium_api::clusters::ClusterK8sTag;

use super::Facts;
use crate::options::Provider;
use crate::refusal::{Fields, Refusal, Result};

pub(super) fn database(fields: &mut Fields, provider: &Provider, name: &str) -> String {
    if provider.database_instance(name).is_none() {
        let word = provider.provider;
        let message = format!("must be one of the `databaseInstances` in the cluster options of {word}");
        fields.push("dbInstanceType", "unknown", message);
    }
    name.to_owned()
}

/// Checks tags: each has a key, and no key occurs twice.
pub(super) fn tags(fields: &mut Fields, requested: &[ClusterK8sTag]) -> Vec<ClusterK8sTag> {
    let mut keys = BTreeSet::new();
    let mut kept = Vec::new();
    for (index, tag) in requested.iter().enumerate() {
        let field = format!("k8sTags[{index}].key");
        let key = tag.key.as_deref().unwrap_or_default().trim();
        if key.is_empty() {
            fields.push(field, "required", "must not be blank");
        } else if !keys.insert(key) {
            fields.push(field, "repeated", "must not repeat an earlier key");
        }
        kept.push(ClusterK8sTag {
            key: Some(key.to_owned()),
            value: Some(tag.value.clone().unwrap_or_default()),
        });
    }
    kept
}

/// Checks the workspaces that a cluster accepts; duplicates are merged.
pub(super) fn workspaces(
    fields: &mut Fields,
    requested: &[WorkspaceId],
    facts: &Facts<'_>,
) -> Vec<WorkspaceId> {
    for (index, id) in requested.iter().enumerate().filter(|(_, id)| !facts.workspaces.contains(id)) {
        let message = format!("is not a workspace of the organization: {id}");
        fields.push(format!("workspaceIds[{index}]"), "notFound", message);
    }
    let kept: BTreeSet<WorkspaceId> = requested.iter().copied().collect();
    let missing: Vec<&str> = facts.in_use_by.difference(&kept).map(WorkspaceId::as_str).collect();
    if !kept.is_empty() && !missing.is_empty() {
        let message = format!(
            "must contain every workspace that has deployments on the cluster; missing: {}",
            missing.join(", ")
        );
        fields.push("workspaceIds", "inUse", message);
    }
    kept.into_iter().collect()
}

/// Refuses regions that take no new clusters.
pub(super) fn takes_clusters(provider: &Provider, regions: &[&str]) -> Result<()> {
    let limited = |name: &&&str| provider.region(name).is_some_and(|region| region.limited);
    match regions.iter().find(limited) {
        Some(name) => Err(Refusal::Precondition(format!(
            "The region {name} of {} is limited and accepts no new clusters: choose another one.",
            provider.provider
        ))),
        None => Ok(()),
    }
}
