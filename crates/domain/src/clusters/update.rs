//! Validation of changes to clusters.
//!
//! Provider, region, type and the ranges of the first region never change. A failover changes nothing else.

use podium_api::clusters::{Cluster, ClusterDetails, UpdateClusterRequest};
use podium_api::enums::{CloudProvider, ClusterStatus, ClusterType};

use super::create::MAX_NAME;
use super::recovery;
use super::states::Event;
use super::{Definition, Facts, given, node_pools, settings};
use crate::names::{self, Name};
use crate::options::{Provider, provider};
use crate::refusal::{Fields, Result};

/// What an update requests: a failover, if it names another region than the deployments are in.
pub fn event(stored: &Cluster, body: &UpdateClusterRequest) -> Event {
    match body.is_failed_over {
        // It is uncertain where the deployments are, so either value is a request to move.
        Some(to) if stored.status == ClusterStatus::FailoverFailed => Event::FailOver(to),
        Some(to) if stored.is_failed_over != to => Event::FailOver(to),
        _ => Event::Update,
    }
}

pub fn update(stored: &Cluster, body: &UpdateClusterRequest, facts: &Facts<'_>) -> Result<Definition> {
    let mut fields = Fields::new();
    if body.cluster_type.is_some_and(|given| given != stored.r#type) {
        let message = format!("must be {}: the type of a cluster never changes", stored.r#type);
        fields.push("clusterType", "immutable", message);
        fields.into_result()?;
        fields = Fields::new();
    }
    let kept = Name { text: stored.name.clone(), key: names::fold(&stored.name) };
    let mut made = Definition {
        name: kept,
        details: stored.details.clone(),
        workspace_ids: stored.workspace_ids.clone(),
    };
    match stored.r#type {
        ClusterType::Hybrid => only_workspaces(&mut fields, body),
        ClusterType::Dedicated => dedicated(&mut fields, stored, body, facts, &mut made),
    }
    if let Some(requested) = &body.workspace_ids {
        made.workspace_ids = settings::workspaces(&mut fields, requested, facts);
    }
    if let Event::FailOver(_) = event(stored, body) {
        if !stored.details.is_dr_enabled && stored.r#type == ClusterType::Dedicated {
            fields.push("isFailedOver", "excluded", "must be omitted: this cluster has no standby region");
        }
        changes_nothing_else(&mut fields, stored, &made);
    }
    fields.into_result()?;
    if made.details.dr_region != stored.details.dr_region {
        settings::takes_clusters(provider(stored.cloud_provider), &[&made.details.dr_region])?;
    }
    Ok(made)
}

/// A cluster in the customer's own account is changed there; here it can be given to workspaces.
fn only_workspaces(fields: &mut Fields, body: &UpdateClusterRequest) {
    let asks = |flag: Option<bool>| flag == Some(true);
    let given_fields = [
        ("name", given(body.name.as_ref()).is_some()),
        ("k8sTags", body.k8s_tags.as_ref().is_some_and(|tags| !tags.is_empty())),
        ("dbInstanceType", given(body.db_instance_type.as_ref()).is_some()),
        ("enableDr", asks(body.enable_dr)),
        ("enableReplicationTimeControl", asks(body.enable_replication_time_control)),
        ("isFailedOver", asks(body.is_failed_over)),
        ("isPrivateNetworkEgressEnabled", asks(body.is_private_network_egress_enabled)),
        ("nodePools", body.node_pools.as_ref().is_some_and(|pools| !pools.is_empty())),
    ];
    let given_fields = given_fields.into_iter().chain(recovery::given(requested(body)));
    fields.push_each(given_fields, "excluded", "must be omitted: HYBRID does not support it");
}

fn dedicated(
    fields: &mut Fields,
    stored: &Cluster,
    body: &UpdateClusterRequest,
    facts: &Facts<'_>,
    made: &mut Definition,
) {
    let provider = provider(stored.cloud_provider);
    match &body.name {
        None => fields.push("name", "required", "is required"),
        Some(name) => {
            if let Some(name) = fields.take(names::name("name", name, MAX_NAME)) {
                made.name = name;
            }
        }
    }
    match &body.k8s_tags {
        None => fields.push("k8sTags", "required", "is required"),
        Some(tags) => made.details.tags = settings::tags(fields, tags),
    }
    if let Some(database) = given(body.db_instance_type.as_ref()) {
        made.details.db_instance_type = settings::database(fields, provider, database);
    }
    if let Some(requested) = &body.node_pools {
        let requested: Vec<_> = requested.iter().map(Into::into).collect();
        made.details.node_pools =
            node_pools::node_pools(fields, provider, &requested, &stored.details.node_pools, facts);
    }
    if let Some(egress) = body.is_private_network_egress_enabled {
        if stored.cloud_provider == CloudProvider::Aws {
            made.details.is_private_network_egress_enabled = Some(egress);
        } else if egress {
            let message = format!("must be omitted: {} clusters do not support it", provider.provider);
            fields.push("isPrivateNetworkEgressEnabled", "excluded", message);
        }
    }
    standing_by(fields, provider, stored, body, &mut made.details);
}

/// Switches disaster recovery on or off, or leaves it as it is.
fn standing_by(
    fields: &mut Fields,
    provider: &Provider,
    stored: &Cluster,
    body: &UpdateClusterRequest,
    details: &mut ClusterDetails,
) {
    let requested = requested(body);
    let was_on = stored.details.is_dr_enabled;
    let is_on = body.enable_dr.unwrap_or(was_on);
    if is_on && !was_on {
        recovery::switch_on(fields, provider, &stored.region, requested, details);
    } else {
        let differs = recovery::FIELDS.into_iter().zip(requested).zip(recovery::stored(&stored.details));
        let message = if was_on {
            "must stay unchanged: switch disaster recovery off first"
        } else {
            "must be omitted unless `enableDr` is true"
        };
        for ((field, text), stored) in differs {
            if text.is_some() && text != stored {
                fields.push(field, "immutable", message);
            }
        }
    }
    if was_on && !is_on {
        if stored.is_failed_over {
            let message = "must be true while the cluster is failed over: fail back first";
            fields.push("enableDr", "failedOver", message);
        }
        recovery::switch_off(details);
    }
    if let Some(requested) = body.enable_replication_time_control {
        if requested && !is_on {
            let message = "must be false unless the cluster has a standby region";
            fields.push("enableReplicationTimeControl", "excluded", message);
        }
        details.enable_replication_time_control = requested && is_on;
    }
}

/// Lists every field that would change in addition to the region of the deployments.
fn changes_nothing_else(fields: &mut Fields, stored: &Cluster, made: &Definition) {
    let (old, new) = (&stored.details, &made.details);
    let has_egress = |details: &ClusterDetails| details.is_private_network_egress_enabled;
    let is_controlled = |details: &ClusterDetails| details.enable_replication_time_control;
    let changed = [
        ("name", made.name.text != stored.name),
        ("k8sTags", new.tags != old.tags),
        ("dbInstanceType", new.db_instance_type != old.db_instance_type),
        ("nodePools", new.node_pools != old.node_pools),
        ("isPrivateNetworkEgressEnabled", has_egress(new) != has_egress(old)),
        ("enableDr", new.is_dr_enabled != old.is_dr_enabled),
        ("enableReplicationTimeControl", new.is_dr_enabled && is_controlled(new) != is_controlled(old)),
        ("workspaceIds", made.workspace_ids != stored.workspace_ids),
    ];
    fields.push_each(changed, "failover", "must stay unchanged: a failover changes nothing else");
}

fn requested(body: &UpdateClusterRequest) -> recovery::Texts<'_> {
    [
        &body.dr_region,
        &body.dr_vpc_subnet_range,
        &body.dr_pod_subnet_range,
        &body.dr_service_subnet_range,
        &body.dr_service_peering_range,
        &None,
    ]
    .map(|text| given(text.as_ref()))
}
