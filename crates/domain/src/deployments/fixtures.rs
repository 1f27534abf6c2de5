//! Test fixtures: a deployment of each type, and valid requests to modify.

use podium_api::deployments::{CreateDeploymentRequest, UpdateDeploymentRequest};
use podium_api::enums::DeploymentType;
use podium_api::{Id, NodePoolId, Timestamp, TypedId};
use serde_json::{Value, json};

use super::settings::{Facts, NodePool, Placed, Services, Wanted, create, misplaced, update};
use super::spec::{Secret, Spec};
use super::variables::Seals;
use crate::fixtures::w1;
use crate::refusal::{Refusal, Result};

pub(super) use crate::fixtures::{with, wrong};
pub(super) use DeploymentType::{Dedicated, Hybrid, Standard};

/// When everything happens: 2027-01-15T08:00:00Z.
pub(super) const NOW: i64 = 1_800_000_000_000;

pub(super) fn id<I: TypedId>(number: u64) -> I {
    I::from_raw(Id::from_parts(NOW.unsigned_abs(), 0, number))
}

/// Seals by spelling out what is sealed.
pub(super) struct Spelled;

impl Seals for Spelled {
    fn seal(&self, key: &str, value: &str) -> Secret {
        Secret(format!("sealed {key} {value}"))
    }

    fn holds(&self, key: &str, sealed: &Secret, value: &str) -> bool {
        *sealed == self.seal(key, value)
    }
}

pub(super) fn pool() -> NodePoolId {
    id(501)
}

/// Another node pool of the same cluster.
pub(super) fn other_pool() -> NodePoolId {
    id(502)
}

/// A queue of no deployment, or a node pool of no cluster.
pub(super) fn nowhere<I: TypedId>() -> I {
    id(999)
}

/// What surrounds a deployment of a type.
pub(super) fn facts(kind: DeploymentType) -> Facts {
    let pools = [(other_pool(), false), (pool(), true)].map(|(id, is_default)| NodePool { id, is_default });
    let node_pools = if kind == Hybrid { pools.to_vec() } else { Vec::new() };
    Facts { kind, node_pools, is_dr_enabled: false }
}

pub(super) fn queue(kind: DeploymentType, name: &str, changes: Value) -> Value {
    let size = match kind {
        Hybrid => json!({ "nodePoolId": pool() }),
        _ => json!({ "platformMachine": "A5" }),
    };
    let body = json!({
        "name": name, "isDefault": name == "default", "minWorkerCount": 0, "maxWorkerCount": 10, "workerConcurrency": 5,
    });
    with(with(body, size), changes)
}

fn new_body(changes: Value) -> CreateDeploymentRequest {
    let body = with(json!({ "name": "Reports", "workspaceId": w1() }), changes);
    serde_json::from_value(body).unwrap()
}

/// Runs a rule with the means that it takes; ids count up from 1000 more for each generation of things.
fn with_means<T>(first: u64, rule: impl FnOnce(&mut Services<'_>) -> T) -> T {
    let mut next = first;
    let mut new_id = || {
        next += 1;
        id(next)
    };
    rule(&mut Services { now: Timestamp::from_millis(NOW), new_id: &mut new_id, seals: &Spelled })
}

pub(super) fn created(kind: DeploymentType, changes: Value) -> Result<Wanted> {
    created_there(&facts(kind), changes)
}

/// What comes of creating a deployment in these surroundings.
pub(super) fn created_there(facts: &Facts, changes: Value) -> Result<Wanted> {
    let placed = Placed { cloud_provider: None, region: None, is_cicd_enforced: false };
    with_means(1000, |services| create(&new_body(changes), placed, facts, services))
}

/// What comes of creating a deployment that has no place.
pub(super) fn created_nowhere(changes: Value, refusal: Refusal) -> Refusal {
    with_means(1000, |services| misplaced(&new_body(changes), refusal, services))
}

pub(super) fn stored(kind: DeploymentType, changes: Value) -> Spec {
    created(kind, changes).unwrap().spec
}

/// What comes of an update that sends back what is stored, but for these changes.
pub(super) fn updated(stored: &Spec, changes: Value) -> Result<Wanted> {
    updated_there(&facts(stored.kind), stored, changes)
}

/// The same in other surroundings.
pub(super) fn updated_there(facts: &Facts, stored: &Spec, changes: Value) -> Result<Wanted> {
    let common = json!({
        "type": stored.kind, "name": "Reports", "workspaceId": w1(), "executor": stored.executor,
        "isCicdEnforced": stored.is_cicd_enforced, "isDagDeployEnabled": stored.is_dag_deploy_enabled,
        "environmentVariables": [],
    });
    let own = match stored.kind {
        Hybrid => {
            json!({ "scheduler": { "au": stored.scheduler_au, "replicas": stored.scheduler_replicas } })
        }
        _ => json!({
            "schedulerSize": stored.scheduler_size, "isHighAvailability": stored.is_high_availability,
        }),
    };
    let body: UpdateDeploymentRequest = serde_json::from_value(with(with(common, own), changes)).unwrap();
    with_means(2000, |services| update(&body, stored.clone(), facts, services))
}

/// No wrong field.
pub(super) const NONE: [&str; 0] = [];
