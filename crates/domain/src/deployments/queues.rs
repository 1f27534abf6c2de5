//! Worker queues.

use podium_api::WorkerQueueId;
use podium_api::deployments::WorkerQueueRequest;
use podium_api::enums::{DeploymentType, Executor, WorkerMachineName};

use super::settings::Facts;
use super::spec::{Queue, Spec};
use crate::options::{self, Memory};
use crate::refusal::Fields;

pub const DEFAULT: &str = "default";
const DEFAULT_MACHINE: WorkerMachineName = WorkerMachineName::A5;
const MAX_NAME: usize = 63;
const MAX_STORAGE: Memory = Memory::from_thousandths(100_000);

/// The queues after a request; the missing are deleted. `new_id` gives an id to each queue that is created.
pub(super) fn check(
    requested: Option<&[WorkerQueueRequest]>,
    spec: &Spec,
    facts: &Facts,
    new_id: &mut dyn FnMut() -> WorkerQueueId,
    fields: &mut Fields,
) -> Vec<Queue> {
    let stored = spec.worker_queues.as_slice();
    let is_remote = spec.remote_execution.is_some();
    if spec.executor == Executor::Kubernetes {
        if requested.is_some_and(|requested| !requested.is_empty()) {
            let message = "must be omitted: the KUBERNETES executor has no worker queues";
            fields.push("workerQueues", "excluded", message);
        }
        return Vec::new();
    }
    let Some(requested) = requested else {
        let is_needed = stored.is_empty() && !is_remote;
        return if is_needed { vec![default_queue(facts, new_id())] } else { stored.to_vec() };
    };
    if requested.is_empty() && is_remote {
        return Vec::new();
    }
    if requested.is_empty() {
        let message = "must have at least 1 item: the queue `default` always exists";
        fields.push("workerQueues", "minItems", message);
        return stored.to_vec();
    }
    check_names(requested, fields);
    let mut queues: Vec<Queue> = Vec::with_capacity(requested.len());
    for (index, queue) in requested.iter().enumerate() {
        let path = format!("workerQueues[{index}]");
        let known = find(queue, requested, stored);
        match known {
            Some(known) if known.name == DEFAULT && queue.name != DEFAULT => {
                let message = "must be `default`: that queue cannot be renamed";
                fields.push(format!("{path}.name"), "fixed", message);
            }
            Some(known) if known.name != DEFAULT && queue.name == DEFAULT => {
                let message = "must not be `default`: that queue cannot be replaced by another";
                fields.push(format!("{path}.name"), "fixed", message);
            }
            _ => {}
        }
        let taken = known.is_some_and(|known| queues.iter().any(|other| other.id == known.id));
        if taken && queue.id == known.map(|known| known.id) {
            let message = "names a queue that another entry already changes";
            fields.push(format!("{path}.id"), "duplicate", message);
        }
        let id = known.filter(|_| !taken).map_or_else(&mut *new_id, |known| known.id);
        queues.push(one(&path, queue, (id, known), facts, fields));
    }
    queues.sort_by(|a, b| a.name.cmp(&b.name));
    queues
}

/// A known id, else a known name that no id lays claim to, means that queue.
fn find<'a>(
    queue: &WorkerQueueRequest,
    requested: &[WorkerQueueRequest],
    stored: &'a [Queue],
) -> Option<&'a Queue> {
    let by_id = queue.id.and_then(|id| stored.iter().find(|known| known.id == id));
    let is_claimed = |known: &&Queue| requested.iter().any(|other| other.id == Some(known.id));
    by_id.or_else(|| stored.iter().find(|known| known.name == queue.name).filter(|known| !is_claimed(known)))
}

fn default_queue(facts: &Facts, id: WorkerQueueId) -> Queue {
    let hybrid = facts.kind == DeploymentType::Hybrid;
    let machine = options::machine(DEFAULT_MACHINE);
    Queue {
        id,
        name: DEFAULT.into(),
        machine: (!hybrid).then_some(machine.name),
        node_pool_id: facts.default_node_pool().filter(|_| hybrid),
        min_workers: options::MIN_WORKERS.default,
        max_workers: options::MAX_WORKERS.default,
        concurrency: options::WORKER_CONCURRENCY.default,
        ephemeral_storage: (!hybrid).then(|| options::DEFAULT_STORAGE.into()),
    }
}

fn check_names(requested: &[WorkerQueueRequest], fields: &mut Fields) {
    for (index, queue) in requested.iter().enumerate() {
        let path = format!("workerQueues[{index}]");
        let mut letters = queue.name.bytes();
        let begins = letters.next().is_some_and(|byte| byte.is_ascii_lowercase());
        let goes_on = letters.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-');
        if !begins || !goes_on || queue.name.len() > MAX_NAME {
            let message = format!(
                "must begin with a lower-case letter and continue with lower-case letters, digits or `-`, at most {MAX_NAME}"
            );
            fields.push(format!("{path}.name"), "format", message);
        } else if requested[..index].iter().any(|other| other.name == queue.name) {
            fields.push(format!("{path}.name"), "duplicate", "is the name of another queue in this request");
        }
        if queue.is_default != (queue.name == DEFAULT) {
            let message = if queue.is_default {
                "must be false: the default queue is the one named `default`"
            } else {
                "must be true for the queue named `default`"
            };
            fields.push(format!("{path}.isDefault"), "default", message);
        }
    }
    if !requested.iter().any(|queue| queue.name == DEFAULT) {
        fields.push("workerQueues", "default", "must contain a queue named `default` with `isDefault` true");
    }
}

/// A queue after a request; what the request leaves out of a known queue stays.
fn one(
    path: &str,
    queue: &WorkerQueueRequest,
    (id, known): (WorkerQueueId, Option<&Queue>),
    facts: &Facts,
    fields: &mut Fields,
) -> Queue {
    let hybrid = facts.kind == DeploymentType::Hybrid;
    let mut wrong =
        |name: &str, code: &str, message: String| fields.push(format!("{path}.{name}"), code, message);
    let mut concurrency = options::WORKER_CONCURRENCY;
    let machine = queue.platform_machine.or_else(|| known?.machine);
    let node_pool_id = queue.node_pool_id.or_else(|| known?.node_pool_id);
    let storage = queue.pod_ephemeral_storage.as_deref().filter(|text| !text.is_empty());
    if hybrid {
        if queue.platform_machine.is_some() {
            let message = "must be omitted: HYBRID sizes queues by `nodePoolId`".into();
            wrong("platformMachine", "excluded", message);
        }
        match node_pool_id {
            None => wrong("nodePoolId", "required", "is required: HYBRID sizes queues by node pool".into()),
            Some(id) if !facts.node_pools.iter().any(|pool| pool.id == id) => {
                wrong("nodePoolId", "notFound", "must be a node pool of the deployment's cluster".into());
            }
            Some(_) => {}
        }
        if storage.is_some() {
            let message = "must be omitted: HYBRID sizes queues by node pool".into();
            wrong("podEphemeralStorage", "excluded", message);
        }
    } else {
        if queue.node_pool_id.is_some() {
            let message = format!("must be omitted: {} sizes queues by `platformMachine`", facts.kind);
            wrong("nodePoolId", "excluded", message);
        }
        match machine {
            None => wrong("platformMachine", "required", "is required, such as A5".into()),
            Some(machine) => concurrency = options::machine(machine).concurrency,
        }
    }
    if queue.min_worker_count > queue.max_worker_count {
        wrong("minWorkerCount", "maximum", "must not be more than `maxWorkerCount`".into());
    }
    let counts = [
        ("minWorkerCount", queue.min_worker_count, options::MIN_WORKERS),
        ("maxWorkerCount", queue.max_worker_count, options::MAX_WORKERS),
        ("workerConcurrency", queue.worker_concurrency, concurrency),
    ];
    for (name, value, bounds) in counts {
        if !bounds.contains(value) {
            wrong(name, "range", format!("must be {} to {}", bounds.floor, bounds.ceiling));
        }
    }
    if !hybrid
        && let Some(text) = storage
        && Memory::parse(text).is_none_or(|size| size.thousandths() == 0 || size > MAX_STORAGE)
    {
        let message = format!("must be in Gi, such as 10Gi, and at most {MAX_STORAGE}");
        wrong("podEphemeralStorage", "format", message);
    }
    let storage = storage.or_else(|| known?.ephemeral_storage.as_deref()).unwrap_or(options::DEFAULT_STORAGE);
    Queue {
        id,
        name: queue.name.clone(),
        machine,
        node_pool_id,
        min_workers: queue.min_worker_count,
        max_workers: queue.max_worker_count,
        concurrency: queue.worker_concurrency,
        ephemeral_storage: (!hybrid).then(|| storage.to_owned()),
    }
}

#[cfg(test)]
mod tests;
