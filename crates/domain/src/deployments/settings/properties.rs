//! Properties that hold for every request to create or change a deployment.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::super::fixtures::*;
use super::super::spec::Spec;
use super::*;
use crate::options::Cpu;

const NAMES: &[&str] = &["default", "a", "b", "c", "Big", ""];
const AMOUNTS: &[&str] = &["", "0.1", "0.25", "1", "10", "32", "100", "x"];
const MEMORIES: &[&str] = &["", "0.5Gi", "2Gi", "20Gi", "64Gi", "200Gi", "1"];

/// A queue of a request, which may name one of three that there may be by now.
fn any_queue() -> impl Strategy<Value = Value> {
    let number = option::weighted(0.3, 1001..1006u64);
    (select(NAMES), any::<bool>(), 0..4u32, 0..4u32, number).prop_map(
        |(name, is_default, min, max, number)| {
            let changes = json!({
                "isDefault": is_default || name == "default", "minWorkerCount": min, "maxWorkerCount": max,
                "id": number.map(id::<WorkerQueueId>),
            });
            queue(Standard, name, changes)
        },
    )
}

fn any_change() -> impl Strategy<Value = Value> {
    let sizes = (
        option::of(select(AMOUNTS)),
        option::of(select(MEMORIES)),
        option::of(select(AMOUNTS)),
        option::of(select(MEMORIES)),
    );
    let executor = select(vec!["CELERY", "CELERY", "PLATFORM", "KUBERNETES"]);
    (option::of(vec(any_queue(), 0..4)), sizes, executor, option::of(any::<bool>())).prop_map(
        |(queues, (pod, pod_memory, quota, quota_memory), executor, mode)| {
            let fields = [
                ("workerQueues", queues.map(Value::from)),
                ("defaultTaskPodCpu", pod.map(Value::from)),
                ("defaultTaskPodMemory", pod_memory.map(Value::from)),
                ("resourceQuotaCpu", quota.map(Value::from)),
                ("resourceQuotaMemory", quota_memory.map(Value::from)),
                ("executor", Some(executor.into())),
                ("isDevelopmentMode", mode.map(Value::from)),
            ];
            let given = fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
            Value::Object(given.collect::<Map<_, _>>())
        },
    )
}

/// What holds of every deployment.
fn is_sound(spec: &Spec) {
    let queues = &spec.worker_queues;
    let names: Vec<&str> = queues.iter().map(|queue| queue.name.as_str()).collect();
    if spec.executor == Executor::Kubernetes {
        assert!(queues.is_empty());
    } else {
        assert!(names.contains(&"default"), "{names:?}");
        assert!(names.is_sorted_by(|a, b| a < b), "each once, in order: {names:?}");
    }
    let mut ids: Vec<WorkerQueueId> = queues.iter().map(|queue| queue.id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), queues.len(), "each has an id of its own");
    for queue in queues {
        assert!(queue.min_workers <= queue.max_workers && queue.max_workers >= 1);
        assert!(options::machine(queue.machine.unwrap()).concurrency.contains(queue.concurrency));
    }
    let cpu = |text: &Option<String>| Cpu::parse(text.as_deref().unwrap()).unwrap();
    let (pod, quota) = (cpu(&spec.default_task_pod_cpu), cpu(&spec.resource_quota_cpu));
    assert!(pod <= quota, "{pod} of {quota}");
    assert_eq!(spec.default_task_pod_memory, Some(pod.memory().to_string()));
    assert_eq!(spec.resource_quota_memory, Some(quota.memory().to_string()));
}

proptest! {
    #[test]
    fn whatever_is_accepted_leaves_a_sound_deployment(first in any_change(), changes in vec(any_change(), 0..6)) {
        let Ok(Wanted { mut spec, .. }) = created(Standard, first) else { return Ok(()) };
        is_sound(&spec);
        for change in changes {
            let before = spec.clone();
            if let Ok(after) = updated(&spec, change) {
                is_sound(&after.spec);
                spec = after.spec;
            }
            prop_assert!(before.is_development_mode || !spec.is_development_mode, "it is never switched on");
            prop_assert_eq!((before.kind, before.runtime_version), (spec.kind, spec.runtime_version.clone()));
        }
    }

    #[test]
    fn sending_back_what_is_stored_changes_nothing(first in any_change()) {
        let Ok(Wanted { spec, .. }) = created(Standard, first) else { return Ok(()) };
        let queues: Vec<Value> = spec.worker_queues.iter().map(|stored| {
            queue(Standard, &stored.name, json!({
                "id": stored.id, "platformMachine": stored.machine, "minWorkerCount": stored.min_workers,
                "maxWorkerCount": stored.max_workers, "workerConcurrency": stored.concurrency,
                "podEphemeralStorage": stored.ephemeral_storage,
            }))
        }).collect();
        let same = json!({
            "workerQueues": queues, "isDevelopmentMode": spec.is_development_mode,
            "defaultTaskPodCpu": spec.default_task_pod_cpu, "defaultTaskPodMemory": spec.default_task_pod_memory,
            "resourceQuotaCpu": spec.resource_quota_cpu, "resourceQuotaMemory": spec.resource_quota_memory,
        });
        prop_assert_eq!(updated(&spec, same).unwrap().spec, spec);
    }
}
