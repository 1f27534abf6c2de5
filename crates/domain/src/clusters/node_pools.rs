//! Pools of nodes: exactly one is the default, and every machine is in the catalogue.

use std::collections::BTreeSet;

use podium_api::NodePoolId;
use podium_api::clusters::{CreateNodePoolRequest, NodePool, UpdateNodePoolRequest};
use podium_api::options::ProviderInstanceType;

use super::Facts;
use crate::names;
use crate::options::{Cpu, Memory, Provider, machines, node_counts};
use crate::refusal::Fields;

const MAX_NAME: usize = 63;

pub(super) struct Requested<'a> {
    id: Option<NodePoolId>,
    name: &'a str,
    node_instance_type: &'a str,
    max_node_count: i64,
    is_default: Option<bool>,
}

impl<'a> From<&'a CreateNodePoolRequest> for Requested<'a> {
    fn from(request: &'a CreateNodePoolRequest) -> Self {
        let CreateNodePoolRequest { name, node_instance_type, max_node_count, is_default } = request;
        let (max_node_count, is_default) = (*max_node_count, *is_default);
        Self { id: None, name, node_instance_type, max_node_count, is_default }
    }
}

impl<'a> From<&'a UpdateNodePoolRequest> for Requested<'a> {
    fn from(request: &'a UpdateNodePoolRequest) -> Self {
        let UpdateNodePoolRequest { id, name, node_instance_type, max_node_count, is_default } = request;
        let (id, max_node_count, is_default) = (*id, *max_node_count, *is_default);
        Self { id, name, node_instance_type, max_node_count, is_default }
    }
}

/// Checks pools. A known id, else a known name, changes that pool; others are new; pools not listed are removed.
pub(super) fn node_pools(
    fields: &mut Fields,
    provider: &Provider,
    requested: &[Requested<'_>],
    stored: &[NodePool],
    facts: &Facts<'_>,
) -> Vec<NodePool> {
    let defaults = requested.iter().filter(|pool| pool.is_default == Some(true)).count();
    let only_one = matches!(requested, [Requested { is_default: None, .. }]);
    if !requested.is_empty() && defaults != 1 && !only_one {
        let message = format!("must have exactly one pool with `isDefault`, has {defaults}");
        fields.push("nodePools", "default", message);
    }
    let (mut names, mut ids) = (BTreeSet::new(), BTreeSet::new());
    let known = known(requested, stored);
    let mut pools: Vec<NodePool> = Vec::new();
    for (index, ((pool, known), new_id)) in requested.iter().zip(known).zip(facts.pool_ids).enumerate() {
        let at = |field: &str| format!("nodePools[{index}].{field}");
        if pool.id.is_some_and(|id| !ids.insert(id)) {
            fields.push(at("id"), "repeated", "must not repeat an earlier pool");
        }
        let name = fields.take(names::name(&at("name"), pool.name, MAX_NAME));
        if name.as_ref().is_some_and(|name| !names.insert(name.key.clone())) {
            fields.push(at("name"), "repeated", "must not repeat an earlier name");
        }
        let instance = provider.node_instance(pool.node_instance_type);
        if instance.is_none() {
            let word = provider.provider;
            let message = format!("must be one of the `nodeInstances` in the cluster options of {word}");
            fields.push(at("nodeInstanceType"), "unknown", message);
        }
        let counts = node_counts();
        let max_node_count = u32::try_from(pool.max_node_count).ok();
        let max_node_count = max_node_count.filter(|count| (counts.min..=counts.max).contains(count));
        if max_node_count.is_none() {
            let message = format!("must be from {} to {}", counts.min, counts.max);
            fields.push(at("maxNodeCount"), "range", message);
        }
        let Some(((name, instance), max_node_count)) = name.zip(instance).zip(max_node_count) else {
            continue;
        };
        let made = NodePool {
            id: known.map_or(*new_id, |known| known.id),
            name: name.text,
            cluster_id: facts.cluster_id,
            cloud_provider: provider.provider,
            is_default: pool.is_default.unwrap_or(only_one),
            max_node_count,
            node_instance_type: instance.name.clone(),
            supported_platform_machines: fitting(instance),
            created_at: known.map_or(facts.now, |known| known.created_at),
            updated_at: known.map_or(facts.now, |known| known.updated_at),
        };
        let is_same = known.is_none_or(|known| *known == made);
        pools.push(if is_same { made } else { NodePool { updated_at: facts.now, ..made } });
    }
    pools.sort_by(|one, other| (!one.is_default, &one.name).cmp(&(!other.is_default, &other.name)));
    pools
}

/// The stored pool that each requested pool refers to: matched by id first, then by name.
fn known<'s>(requested: &[Requested<'_>], stored: &'s [NodePool]) -> Vec<Option<&'s NodePool>> {
    let by_id = |pool: &Requested<'_>| stored.iter().find(|known| Some(known.id) == pool.id);
    let taken: BTreeSet<NodePoolId> = requested.iter().filter_map(by_id).map(|known| known.id).collect();
    let by_name = |pool: &Requested<'_>| {
        let key = names::fold(pool.name);
        stored.iter().find(|known| !taken.contains(&known.id) && names::fold(&known.name) == key)
    };
    requested.iter().map(|pool| by_id(pool).or_else(|| by_name(pool))).collect()
}

/// The machines of workers that fit on a node.
fn fitting(instance: &ProviderInstanceType) -> Vec<String> {
    let cpu = Cpu::from_thousandths(u64::from(instance.cpu) * 1000);
    let memory = Memory::parse(&instance.memory).unwrap_or(cpu.memory());
    let fits = machines().iter().filter(|machine| machine.size.cpu <= cpu && machine.size.memory <= memory);
    fits.map(|machine| machine.name.to_string()).collect()
}
