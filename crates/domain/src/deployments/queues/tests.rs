//! Worker queues, rule by rule.

use serde_json::{Value, json};

use super::super::fixtures::*;
use super::*;

fn standard(queues: &[Value]) -> crate::Result<Vec<Queue>> {
    created(Standard, json!({ "workerQueues": queues })).map(|wanted| wanted.spec.worker_queues)
}

fn plain(name: &str) -> Value {
    queue(Standard, name, json!({}))
}

fn default_with(changes: Value) -> Vec<String> {
    wrong(standard(&[queue(Standard, "default", changes)]))
}

#[test]
fn without_a_request_the_default_applies() {
    let [made] = &stored(Standard, json!({})).worker_queues[..] else { panic!("one queue") };
    let expected = Queue {
        id: made.id,
        name: "default".into(),
        machine: Some(WorkerMachineName::A5),
        node_pool_id: None,
        min_workers: 0,
        max_workers: 10,
        concurrency: 5,
        ephemeral_storage: Some("10Gi".into()),
    };
    assert_eq!(*made, expected);
    let [made] = &stored(Hybrid, json!({})).worker_queues[..] else { panic!("one queue") };
    let expected =
        Queue { id: made.id, machine: None, node_pool_id: Some(pool()), ephemeral_storage: None, ..expected };
    assert_eq!(*made, expected);
}

#[test]
fn exactly_one_is_the_default_and_it_is_named_default() {
    let named = |name: &str, is_default: bool| queue(Standard, name, json!({ "isDefault": is_default }));
    let table: Vec<(Vec<Value>, &[&str])> = vec![
        (vec![named("default", true)], &[]),
        (vec![named("big", false), named("default", true)], &[]),
        (vec![named("default", false)], &["workerQueues[0].isDefault: default"]),
        (vec![named("big", false)], &["workerQueues: default"]),
        (vec![named("big", true)], &["workerQueues[0].isDefault: default", "workerQueues: default"]),
        (vec![named("default", true), named("big", true)], &["workerQueues[1].isDefault: default"]),
        (vec![named("default", true), named("default", true)], &["workerQueues[1].name: duplicate"]),
    ];
    for (queues, expected) in table {
        assert_eq!(wrong(standard(&queues)), expected, "{queues:?}");
    }
}

#[test]
fn names_begin_with_a_letter_and_are_small() {
    let long = format!("a{}", "b".repeat(62));
    for name in ["a", "a-", "z9-8-x", long.as_str()] {
        assert_eq!(wrong(standard(&[plain("default"), plain(name)])), NONE, "{name}");
    }
    let longer = format!("{long}c");
    for name in ["", "A", "aB", "9a", "-a", "a_b", "a.b", "a b", "ä", longer.as_str()] {
        let made = standard(&[plain("default"), plain(name)]);
        assert_eq!(wrong(made), ["workerQueues[1].name: format"], "{name:?}");
    }
}

#[test]
fn names_are_unique() {
    let queues = [plain("default"), plain("a"), plain("b"), plain("a"), plain("a")];
    assert_eq!(
        wrong(standard(&queues)),
        ["workerQueues[3].name: duplicate", "workerQueues[4].name: duplicate"]
    );
}

#[test]
fn workers_are_counted_within_bounds() {
    let counts = |min: u32, max: u32| default_with(json!({ "minWorkerCount": min, "maxWorkerCount": max }));
    for (min, max) in [(0, 1), (1, 1), (0, 200), (200, 200)] {
        assert_eq!(counts(min, max), NONE, "{min}..{max}");
    }
    assert_eq!(counts(2, 1), ["workerQueues[0].minWorkerCount: maximum"]);
    assert_eq!(counts(0, 0), ["workerQueues[0].maxWorkerCount: range"]);
    assert_eq!(counts(0, 201), ["workerQueues[0].maxWorkerCount: range"]);
    assert_eq!(
        counts(201, 201),
        ["workerQueues[0].minWorkerCount: range", "workerQueues[0].maxWorkerCount: range"]
    );
}

#[test]
fn the_concurrency_of_a_worker_follows_from_its_machine() {
    for (machine, most) in
        [("A5", 15), ("A10", 30), ("A20", 60), ("A40", 120), ("A60", 180), ("A120", 360), ("A160", 480)]
    {
        let tasks =
            |count: u32| default_with(json!({ "platformMachine": machine, "workerConcurrency": count }));
        assert_eq!((tasks(1), tasks(most)), (vec![], vec![]), "{machine}");
        let refused = ["workerQueues[0].workerConcurrency: range"];
        assert_eq!(tasks(0), refused, "{machine}");
        assert_eq!(tasks(most + 1), refused, "{machine}");
    }
    let on_nodes = |count: u32| {
        let queues = json!([queue(Hybrid, "default", json!({ "workerConcurrency": count }))]);
        wrong(created(Hybrid, json!({ "workerQueues": queues })))
    };
    assert_eq!(on_nodes(480), NONE);
    assert_eq!(on_nodes(481), ["workerQueues[0].workerConcurrency: range"]);
}

#[test]
fn a_worker_has_a_disk() {
    let disk = |size: &str| default_with(json!({ "podEphemeralStorage": size }));
    for size in ["", "1Gi", "10Gi", "0.5Gi", "100Gi"] {
        assert_eq!(disk(size), NONE, "{size}");
    }
    for size in ["0Gi", "10", "10G", "101Gi", "-1Gi", "much"] {
        assert_eq!(disk(size), ["workerQueues[0].podEphemeralStorage: format"], "{size}");
    }
}

#[test]
fn queues_are_in_the_order_of_their_names() {
    let queues = standard(&[plain("zoo"), plain("big"), plain("default"), plain("aaa")]).unwrap();
    let names: Vec<&str> = queues.iter().map(|queue| queue.name.as_str()).collect();
    assert_eq!(names, ["aaa", "big", "default", "zoo"]);
}

/// A deployment with the queues `default`, `a` and `b`.
fn three() -> crate::deployments::Spec {
    stored(Standard, json!({ "workerQueues": [plain("default"), plain("a"), plain("b")] }))
}

fn id_of(name: &str, stored: &crate::deployments::Spec) -> WorkerQueueId {
    stored.worker_queues.iter().find(|queue| queue.name == name).unwrap().id
}

fn after(stored: &crate::deployments::Spec, queues: &[Value]) -> crate::Result<Vec<(String, WorkerQueueId)>> {
    let made = updated(stored, json!({ "workerQueues": queues }))?;
    Ok(made.spec.worker_queues.into_iter().map(|queue| (queue.name, queue.id)).collect())
}

fn new_ids(queues: &[(String, WorkerQueueId)], stored: &crate::deployments::Spec) -> Vec<String> {
    let is_new = |id: &WorkerQueueId| !stored.worker_queues.iter().any(|known| known.id == *id);
    queues.iter().filter(|(_, id)| is_new(id)).map(|(name, _)| name.clone()).collect()
}

#[test]
fn a_known_id_or_else_a_known_name_is_changed_others_are_created_and_missing_ones_deleted() {
    let stored = three();
    let [default, a, b] = ["default", "a", "b"].map(|name| id_of(name, &stored));
    let with_id = |name: &str, id: WorkerQueueId| queue(Standard, name, json!({ "id": id }));

    let kept = after(&stored, &[plain("b"), plain("default")]).unwrap();
    assert_eq!(kept, [("b".into(), b), ("default".into(), default)], "by name; `a` is deleted");

    let renamed = after(&stored, &[plain("default"), with_id("c", a), plain("b")]).unwrap();
    assert_eq!(renamed, [("b".into(), b), ("c".into(), a), ("default".into(), default)], "by id");

    let swapped = after(&stored, &[plain("default"), with_id("b", a), with_id("a", b)]).unwrap();
    assert_eq!(swapped, [("a".into(), b), ("b".into(), a), ("default".into(), default)], "ids come first");

    let unknown = after(&stored, &[plain("default"), with_id("a", nowhere()), with_id("new", nowhere())]);
    let unknown = unknown.unwrap();
    assert_eq!(unknown[0], ("a".into(), a), "an unknown id counts for nothing, the name does");
    assert_eq!(new_ids(&unknown, &stored), ["new"]);
    assert_ne!(unknown[2].1, nowhere(), "callers choose no ids");

    let taken_over = after(&stored, &[plain("default"), with_id("b", a), plain("c")]).unwrap();
    assert_eq!(taken_over[0], ("b".into(), a));
    assert_eq!(new_ids(&taken_over, &stored), ["c"]);
}

#[test]
fn a_queue_whose_old_name_is_given_to_a_new_one_stays_itself() {
    let stored = three();
    let a = id_of("a", &stored);
    for order in [[0, 1], [1, 0]] {
        let both = [queue(Standard, "c", json!({ "id": a })), plain("a")];
        let queues = [plain("default"), both[order[0]].clone(), both[order[1]].clone()];
        let made = after(&stored, &queues).unwrap();
        assert_eq!(made[1], ("c".into(), a), "{order:?}");
        assert_eq!(new_ids(&made, &stored), ["a"], "{order:?}");
    }
}

#[test]
fn one_queue_is_changed_once() {
    let stored = three();
    let a = id_of("a", &stored);
    let twice = [
        plain("default"),
        queue(Standard, "x", json!({ "id": a })),
        queue(Standard, "y", json!({ "id": a })),
    ];
    assert_eq!(wrong(after(&stored, &twice)), ["workerQueues[2].id: duplicate"]);
}

#[test]
fn the_default_is_never_renamed_or_removed() {
    let stored = three();
    let default = id_of("default", &stored);
    assert_eq!(wrong(after(&stored, &[plain("a")])), ["workerQueues: default"]);
    assert_eq!(wrong(after(&stored, &[])), ["workerQueues: minItems"]);
    let renamed = queue(Standard, "main", json!({ "id": default }));
    assert_eq!(
        wrong(after(&stored, std::slice::from_ref(&renamed))),
        ["workerQueues: default", "workerQueues[0].name: fixed"]
    );
    assert_eq!(wrong(after(&stored, &[renamed, plain("default")])), ["workerQueues[0].name: fixed"]);
    let a = id_of("a", &stored);
    let usurped = [queue(Standard, "default", json!({ "id": a }))];
    assert_eq!(wrong(after(&stored, &usurped)), ["workerQueues[0].name: fixed"], "nor is another put there");
}

#[test]
fn a_known_queue_keeps_omitted_fields() {
    let big = queue(
        Standard,
        "big",
        json!({ "platformMachine": "A20", "podEphemeralStorage": "20Gi", "workerConcurrency": 60 }),
    );
    let spec = stored(Standard, json!({ "workerQueues": [plain("default"), big] }));
    let less = json!({ "platformMachine": null, "workerConcurrency": 60 });
    let same = [plain("default"), queue(Standard, "big", less)];
    assert_eq!(updated(&spec, json!({ "workerQueues": same })).unwrap().spec, spec);
    let unsized_ = queue(Standard, "new", json!({ "platformMachine": null }));
    let made = updated(&spec, json!({ "workerQueues": [plain("default"), unsized_] }));
    assert_eq!(wrong(made), ["workerQueues[1].platformMachine: required"]);

    let queues = [queue(Hybrid, "default", json!({ "nodePoolId": other_pool() }))];
    let spec = stored(Hybrid, json!({ "workerQueues": queues }));
    let less = [queue(Hybrid, "default", json!({ "nodePoolId": null }))];
    assert_eq!(updated(&spec, json!({ "workerQueues": less })).unwrap().spec, spec);
}
