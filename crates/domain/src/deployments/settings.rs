//! The settings of a deployment: one table of rules for new ones and for changes.
//!
//! Omitted settings stay as they are: the defaults of a new deployment, or the stored values.

mod requested;

use podium_api::deployments::{CreateDeploymentRequest, InstanceSpecRequest, UpdateDeploymentRequest};
use podium_api::enums::{CloudProvider, DeploymentType, Executor, SchedulerSize};
use podium_api::{NodePoolId, Timestamp, WorkerQueueId};

use self::requested::Requested;
use super::spec::{Hibernation, Spec};
use super::variables::Seals;
use super::{clean_up, hibernation, queues, remote_execution, resources, variables};
use crate::names::{self, Name};
use crate::refusal::{Fields, Refusal, Result};
use crate::{emails, options};

const MAX_NAME: usize = 500;

/// Facts about a deployment's surroundings that the rules need.
#[derive(Clone, Debug)]
pub struct Facts {
    pub kind: DeploymentType,
    pub node_pools: Vec<NodePool>,
    /// Whether its cluster can fail over.
    pub is_dr_enabled: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct NodePool {
    pub id: NodePoolId,
    pub is_default: bool,
}

impl Facts {
    pub fn default_node_pool(&self) -> Option<NodePoolId> {
        self.node_pools.iter().find(|pool| pool.is_default).map(|pool| pool.id)
    }
}

/// Inputs from outside the rules: time, ids and encryption.
pub struct Services<'a> {
    pub now: Timestamp,
    pub new_id: &'a mut dyn FnMut() -> WorkerQueueId,
    /// Encrypts the values of variables.
    pub seals: &'a dyn Seals,
}

/// Where a new deployment was placed, and what it inherits from its workspace.
pub struct Placed {
    pub cloud_provider: Option<CloudProvider>,
    pub region: Option<String>,
    /// Whether the workspace's deployments accept deploys only from API tokens.
    pub is_cicd_enforced: bool,
}

/// The result of a request for a deployment.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub name: Name,
    pub spec: Spec,
}

pub fn create(
    body: &CreateDeploymentRequest,
    placed: Placed,
    facts: &Facts,
    services: &mut Services<'_>,
) -> Result<Wanted> {
    let mut fields = Fields::new();
    let name = fields.take(names::name("name", &body.name, MAX_NAME));
    let runtime = match body.platform_runtime_version.as_deref().filter(|version| !version.is_empty()) {
        None => Some(options::newest_stable()),
        Some(version) => {
            let known = options::runtime(version);
            if known.is_none() {
                let newest = &options::newest_stable().version;
                let message = format!("is not an available runtime; the newest stable one is {newest}");
                fields.push("platformRuntimeVersion", "unknown", message);
            }
            known
        }
    };
    let version = runtime.unwrap_or_else(|| options::newest_stable()).version.to_string();
    let base = defaults(placed, facts, version);
    let spec = apply(&requested::of_new(body), base, true, facts, services, &mut fields);
    fields.finish(name.map(|name| Wanted { name, spec }))
}

/// All field errors of a new deployment that cannot be placed: those of its placement, and the others.
pub fn misplaced(body: &CreateDeploymentRequest, refusal: Refusal, services: &mut Services<'_>) -> Refusal {
    let kind = match (body.kind, body.cluster_id) {
        (None, None) => DeploymentType::Standard,
        (Some(kind), _) if kind != DeploymentType::Hybrid => kind,
        // What there is to choose from is known by the cluster only.
        _ => return refusal,
    };
    let Refusal::Invalid { fields: mut wrong, message } = refusal else { return refusal };
    if wrong.is_empty() {
        return Refusal::Invalid { fields: wrong, message };
    }
    let placed = Placed { cloud_provider: None, region: None, is_cicd_enforced: false };
    let facts = Facts { kind, node_pools: Vec::new(), is_dr_enabled: true };
    if let Err(Refusal::Invalid { fields, .. }) = create(body, placed, &facts, services) {
        wrong.extend(fields);
    }
    wrong.into()
}

pub fn update(
    body: &UpdateDeploymentRequest,
    stored: Spec,
    facts: &Facts,
    services: &mut Services<'_>,
) -> Result<Wanted> {
    if body.kind.is_some_and(|kind| kind != stored.kind) {
        let message = format!("must be {}: the type of a deployment does not change", stored.kind);
        return Err(Refusal::field("type", "fixed", message));
    }
    let mut fields = Fields::new();
    let name = fields.take(names::name("name", &body.name, MAX_NAME));
    let spec = apply(&requested::of_stored(body), stored, false, facts, services, &mut fields);
    fields.finish(name.map(|name| Wanted { name, spec }))
}

fn defaults(placed: Placed, facts: &Facts, runtime_version: String) -> Spec {
    let Placed { cloud_provider, region, is_cicd_enforced } = placed;
    Spec { cloud_provider, region, is_cicd_enforced, ..Spec::new(facts.kind, runtime_version) }
}

fn apply(
    requested: &Requested<'_>,
    base: Spec,
    is_new: bool,
    facts: &Facts,
    services: &mut Services<'_>,
    fields: &mut Fields,
) -> Spec {
    let mut spec = base;
    set(&mut spec.description, requested.description.map(str::to_owned));
    spec.drain_grace_seconds = requested.drain_grace_seconds.or(spec.drain_grace_seconds);
    spec.is_strict_deploy_enabled = requested.is_strict_deploy_enabled.or(spec.is_strict_deploy_enabled);
    clean_up::set(requested.clean_up, &mut spec, services.now, fields);
    set(&mut spec.is_cicd_enforced, requested.is_cicd_enforced);
    set(&mut spec.is_dag_deploy_enabled, requested.is_dag_deploy_enabled);
    set(&mut spec.executor, requested.executor);
    if !options::executors(facts.kind).contains(&spec.executor) {
        let names: Vec<&str> = options::executors(facts.kind).iter().map(|e| e.as_str()).collect();
        let message = format!("must be one of {} on {} deployments", names.join(", "), facts.kind);
        fields.push("executor", "unsupported", message);
    }
    scheduler(requested, &mut spec, facts, fields);
    development(requested, &mut spec, is_new, services.now, fields);
    remote_execution(requested, &mut spec, facts, fields);
    spec.worker_queues = queues::check(requested.worker_queues, &spec, facts, services.new_id, fields);
    resources::check(requested.default_task_pod, requested.resource_quota, &mut spec, fields);
    node_pool(requested, &mut spec, facts, fields);
    if let Some(variables) = requested.environment_variables {
        let stored = std::mem::take(&mut spec.environment_variables);
        spec.environment_variables =
            variables::check(variables, &stored, services.now, services.seals, fields);
    }
    if let Some(addresses) = requested.contact_emails {
        contacts(addresses, &mut spec, fields);
    }
    identities(requested, &mut spec, facts, fields);
    spec
}

fn set<T>(stored: &mut T, requested: Option<T>) {
    if let Some(requested) = requested {
        *stored = requested;
    }
}

fn excluded(fields: &mut Fields, field: &str, facts: &Facts) {
    fields.push(field, "excluded", format!("must be omitted: {} deployments do not support it", facts.kind));
}

fn scheduler(requested: &Requested<'_>, spec: &mut Spec, facts: &Facts, fields: &mut Fields) {
    if facts.kind == DeploymentType::Hybrid {
        if requested.scheduler_size.is_some() {
            excluded(fields, "schedulerSize", facts);
        }
        if requested.is_high_availability == Some(true) {
            excluded(fields, "isHighAvailability", facts);
        }
        if let Some(InstanceSpecRequest { au, replicas }) = requested.scheduler {
            spec.scheduler_au = au.or(spec.scheduler_au);
            set(&mut spec.scheduler_replicas, replicas);
        }
        return;
    }
    if requested.scheduler.is_some_and(|requested| requested.au.is_some() || requested.replicas.is_some()) {
        excluded(fields, "scheduler", facts);
    }
    spec.scheduler_size = requested.scheduler_size.or(spec.scheduler_size);
    set(&mut spec.is_high_availability, requested.is_high_availability);
    spec.scheduler_replicas = if spec.is_high_availability { 2 } else { 1 };
}

fn development(
    requested: &Requested<'_>,
    spec: &mut Spec,
    is_new: bool,
    now: Timestamp,
    fields: &mut Fields,
) {
    if spec.kind == DeploymentType::Hybrid && requested.is_development_mode == Some(true) {
        fields.push("isDevelopmentMode", "excluded", "must be omitted: HYBRID deployments do not support it");
        return;
    }
    if requested.is_development_mode == Some(true) && !spec.is_development_mode && !is_new {
        let message = "can be switched on only at creation";
        fields.push("isDevelopmentMode", "fixed", message);
    }
    set(&mut spec.is_development_mode, requested.is_development_mode);
    if spec.is_development_mode {
        if spec.is_high_availability {
            fields.push("isHighAvailability", "contradiction", "must be false in development mode");
        }
        if spec.scheduler_size != Some(SchedulerSize::Small) {
            fields.push("schedulerSize", "contradiction", "must be SMALL in development mode");
        }
    }
    let Some(scaling) = requested.scaling_spec else {
        if !spec.is_development_mode {
            spec.hibernation = Hibernation::default();
        }
        return;
    };
    // All of it is replaced: what is left out of it is taken away.
    spec.hibernation = Hibernation::default();
    let Some(wanted) = &scaling.hibernation_spec else { return };
    if spec.is_development_mode {
        spec.hibernation = hibernation::check(wanted, now, fields);
    } else {
        let asks = wanted.schedules.as_ref().is_some_and(|schedules| !schedules.is_empty())
            || wanted.override_.as_ref().is_some_and(|requested| requested.is_hibernating.is_some());
        if asks {
            let message = "must be omitted: only deployments in development mode hibernate";
            fields.push("scalingSpec.hibernationSpec", "unsupported", message);
        }
    }
}

fn node_pool(requested: &Requested<'_>, spec: &mut Spec, facts: &Facts, fields: &mut Fields) {
    if facts.kind != DeploymentType::Hybrid {
        if requested.task_pod_node_pool_id.is_some() {
            excluded(fields, "taskPodNodePoolId", facts);
        }
        return;
    }
    if let Some(id) = requested.task_pod_node_pool_id
        && !facts.node_pools.iter().any(|pool| pool.id == id)
    {
        fields.push("taskPodNodePoolId", "notFound", "must be a node pool of the deployment's cluster");
    }
    // It is the KUBERNETES executor's, and goes with it.
    let stored = spec.task_pod_node_pool_id.take();
    if spec.executor == Executor::Kubernetes {
        spec.task_pod_node_pool_id =
            requested.task_pod_node_pool_id.or(stored).or_else(|| facts.default_node_pool());
    }
}

fn contacts(addresses: &[String], spec: &mut Spec, fields: &mut Fields) {
    spec.contact_emails.clear();
    for (index, address) in addresses.iter().enumerate() {
        if let Some(email) = fields.take(emails::email(&format!("contactEmails[{index}]"), address))
            && !spec.contact_emails.contains(&email.address)
        {
            spec.contact_emails.push(email.address);
        }
    }
}

fn remote_execution(requested: &Requested<'_>, spec: &mut Spec, facts: &Facts, fields: &mut Fields) {
    if let Some(remote) = requested.remote_execution {
        if remote.enabled && facts.kind != DeploymentType::Dedicated {
            excluded(fields, "remoteExecution", facts);
            return;
        }
        let stored = spec.remote_execution.take();
        let was_enabled = stored.is_some();
        spec.remote_execution =
            remote.enabled.then(|| remote_execution::check(remote, stored.unwrap_or_default(), fields));
        match (was_enabled, remote.enabled) {
            // Nothing of what runs tasks here is had any more, but for what the request says.
            (false, true) => {
                spec.worker_queues.clear();
                resources::clear(spec);
            }
            (true, false) => resources::fill(spec),
            _ => {}
        }
    }
    if spec.remote_execution.is_some() && spec.executor != Executor::Platform {
        fields.push("executor", "contradiction", "must be PLATFORM when `remoteExecution` is enabled");
    }
}

fn identities(requested: &Requested<'_>, spec: &mut Spec, facts: &Facts, fields: &mut Fields) {
    if let Some(identity) = requested.workload_identity {
        spec.workload_identity = Some(identity.to_owned()).filter(|identity| !identity.is_empty());
    }
    let Some(identity) = requested.dr_workload_identity else { return };
    if !identity.is_empty() && facts.kind != DeploymentType::Dedicated {
        excluded(fields, "drWorkloadIdentity", facts);
    } else if !identity.is_empty() && !facts.is_dr_enabled {
        let message = "needs a cluster with disaster recovery: enable it there, or omit this";
        fields.push("drWorkloadIdentity", "unsupported", message);
    }
    spec.dr_workload_identity = Some(identity.to_owned()).filter(|identity| !identity.is_empty());
}

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
