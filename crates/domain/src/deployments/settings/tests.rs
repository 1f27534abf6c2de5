//! The table of rules, field by field and type by type.

use podium_api::enums::{Executor, SchedulerSize};
use serde_json::{Value, json};

use super::super::fixtures::*;
use super::super::spec::{Release, RemoteExecution, Spec};
use super::*;
use crate::fixtures::w1;

const TYPES: [DeploymentType; 3] = [Standard, Dedicated, Hybrid];

/// A type of deployment, changes of its request, and the fields that are wrong with them.
type Case = (DeploymentType, Value, &'static [&'static str]);

fn holds_at_creation(table: Vec<Case>) {
    for (kind, changes, expected) in table {
        assert_eq!(wrong(created(kind, changes.clone())), expected, "new {kind} {changes}");
    }
}

fn holds(table: Vec<Case>) {
    for (kind, changes, expected) in table {
        let made = created(kind, changes.clone());
        assert_eq!(wrong(made), expected, "new {kind} {changes}");
        let made = updated(&stored(kind, json!({})), changes.clone());
        assert_eq!(wrong(made), expected, "changed {kind} {changes}");
    }
}

#[test]
fn a_name_is_enough_and_the_rest_has_defaults() {
    let spec = stored(Standard, json!({}));
    let expected = Spec {
        kind: Standard,
        description: String::new(),
        cloud_provider: None,
        region: None,
        runtime_version: "3.3.2".into(),
        executor: Executor::Celery,
        scheduler_size: Some(SchedulerSize::Small),
        scheduler_au: None,
        scheduler_replicas: 1,
        is_high_availability: false,
        is_development_mode: false,
        is_cicd_enforced: false,
        is_dag_deploy_enabled: true,
        worker_queues: spec.worker_queues.clone(),
        default_task_pod_cpu: Some("0.25".into()),
        default_task_pod_memory: Some("0.5Gi".into()),
        resource_quota_cpu: Some("10".into()),
        resource_quota_memory: Some("20Gi".into()),
        task_pod_node_pool_id: None,
        environment_variables: Vec::new(),
        contact_emails: Vec::new(),
        workload_identity: None,
        dr_workload_identity: None,
        drain_grace_seconds: None,
        is_strict_deploy_enabled: None,
        history_retention_days: None,
        clean_up_cron: None,
        clean_up_since: None,
        remote_execution: None,
        hibernation: Hibernation::default(),
        release: Release {
            deploy_id: None,
            image_tag: "3.3.2".into(),
            dag_version: None,
            bundles: Vec::new(),
            git: None,
            is_strict: false,
        },
    };
    assert_eq!(spec, expected);
    assert_eq!(stored(Dedicated, json!({})), Spec { kind: Dedicated, ..expected.clone() });
    let hybrid = stored(Hybrid, json!({}));
    let expected = Spec {
        kind: Hybrid,
        scheduler_size: None,
        scheduler_au: Some(5),
        is_dag_deploy_enabled: false,
        worker_queues: hybrid.worker_queues.clone(),
        default_task_pod_cpu: None,
        default_task_pod_memory: None,
        resource_quota_cpu: None,
        resource_quota_memory: None,
        ..expected
    };
    assert_eq!(hybrid, expected);
}

#[test]
fn executors_of_each_type() {
    holds(vec![
        (Standard, json!({ "executor": "CELERY" }), &[]),
        (Standard, json!({ "executor": "KUBERNETES" }), &[]),
        (Standard, json!({ "executor": "PLATFORM" }), &[]),
        (Dedicated, json!({ "executor": "CELERY" }), &[]),
        (Dedicated, json!({ "executor": "KUBERNETES" }), &[]),
        (Dedicated, json!({ "executor": "PLATFORM" }), &[]),
        (Hybrid, json!({ "executor": "CELERY" }), &[]),
        (Hybrid, json!({ "executor": "KUBERNETES" }), &[]),
        (Hybrid, json!({ "executor": "PLATFORM" }), &["executor: unsupported"]),
    ]);
}

#[test]
fn scheduler_sizes_are_for_all_but_hybrid() {
    for size in ["SMALL", "MEDIUM", "LARGE", "EXTRA_LARGE"] {
        holds(vec![
            (Standard, json!({ "schedulerSize": size }), &[]),
            (Dedicated, json!({ "schedulerSize": size }), &[]),
            (Hybrid, json!({ "schedulerSize": size }), &["schedulerSize: excluded"]),
        ]);
    }
}

#[test]
fn high_availability_is_for_all_but_hybrid_and_means_two_schedulers() {
    holds(vec![
        (Standard, json!({ "isHighAvailability": true }), &[]),
        (Dedicated, json!({ "isHighAvailability": true }), &[]),
        (Hybrid, json!({ "isHighAvailability": true }), &["isHighAvailability: excluded"]),
        (Hybrid, json!({ "isHighAvailability": false }), &[]),
    ]);
    let spec = stored(Standard, json!({ "isHighAvailability": true }));
    assert_eq!(spec.scheduler_replicas, 2);
    let spec = updated(&spec, json!({ "isHighAvailability": false })).unwrap().spec;
    assert_eq!(spec.scheduler_replicas, 1);
}

#[test]
fn schedulers_are_counted_on_hybrid_only() {
    let scheduler = json!({ "scheduler": { "au": 24, "replicas": 4 } });
    holds(vec![
        (Standard, scheduler.clone(), &["scheduler: excluded"]),
        (Dedicated, scheduler.clone(), &["scheduler: excluded"]),
        (Standard, json!({ "scheduler": {} }), &[]),
        (Hybrid, scheduler.clone(), &[]),
    ]);
    let spec = stored(Hybrid, scheduler);
    assert_eq!((spec.scheduler_au, spec.scheduler_replicas), (Some(24), 4));
    let spec = stored(Hybrid, json!({ "scheduler": { "replicas": 2 } }));
    assert_eq!((spec.scheduler_au, spec.scheduler_replicas), (Some(5), 2));
}

#[test]
fn development_mode_is_for_all_but_hybrid() {
    holds_at_creation(vec![
        (Standard, json!({ "isDevelopmentMode": true }), &[]),
        (Dedicated, json!({ "isDevelopmentMode": true }), &[]),
        (Hybrid, json!({ "isDevelopmentMode": true }), &["isDevelopmentMode: excluded"]),
        (Hybrid, json!({ "isDevelopmentMode": false }), &[]),
    ]);
}

#[test]
fn development_mode_is_small_and_not_highly_available() {
    let mode = |others: Value| with(json!({ "isDevelopmentMode": true }), others);
    holds_at_creation(vec![
        (Standard, mode(json!({ "schedulerSize": "SMALL" })), &[]),
        (Standard, mode(json!({ "schedulerSize": "MEDIUM" })), &["schedulerSize: contradiction"]),
        (Standard, mode(json!({ "isHighAvailability": true })), &["isHighAvailability: contradiction"]),
        (
            Dedicated,
            mode(json!({ "schedulerSize": "LARGE", "isHighAvailability": true })),
            &["isHighAvailability: contradiction", "schedulerSize: contradiction"],
        ),
    ]);
    let spec = stored(Standard, mode(json!({})));
    for (changes, expected) in [
        (json!({}), vec![]),
        (json!({ "schedulerSize": "LARGE" }), vec!["schedulerSize: contradiction"]),
        (json!({ "isHighAvailability": true }), vec!["isHighAvailability: contradiction"]),
        (json!({ "isDevelopmentMode": false, "schedulerSize": "LARGE", "isHighAvailability": true }), vec![]),
    ] {
        assert_eq!(wrong(updated(&spec, changes.clone())), expected, "{changes}");
    }
}

#[test]
fn development_mode_is_switched_off_and_never_on() {
    let plain = stored(Standard, json!({}));
    assert_eq!(wrong(updated(&plain, json!({ "isDevelopmentMode": true }))), ["isDevelopmentMode: fixed"]);
    assert_eq!(wrong(updated(&plain, json!({ "isDevelopmentMode": false }))), NONE);
    let on = stored(Standard, json!({ "isDevelopmentMode": true, "scalingSpec": nightly() }));
    assert!(updated(&on, json!({})).unwrap().spec.is_development_mode);
    assert_eq!(updated(&on, json!({ "isDevelopmentMode": true })).unwrap().spec, on);
    let off = updated(&on, json!({ "isDevelopmentMode": false })).unwrap().spec;
    assert!(!off.is_development_mode);
    assert_eq!(off.hibernation, Hibernation::default(), "what hibernates no more has no schedules");
    assert_eq!(wrong(updated(&off, json!({ "isDevelopmentMode": true }))), ["isDevelopmentMode: fixed"]);
}

fn nightly() -> Value {
    let schedule = json!({ "hibernateAtCron": "0 20 * * *", "wakeAtCron": "0 6 * * *", "isEnabled": true });
    json!({ "hibernationSpec": { "schedules": [schedule] } })
}

#[test]
fn only_development_mode_hibernates() {
    let refused: &[&str] = &["scalingSpec.hibernationSpec: unsupported"];
    let on = json!({ "hibernationSpec": { "override": { "isHibernating": true } } });
    holds(vec![
        (Standard, json!({ "scalingSpec": nightly() }), refused),
        (Standard, json!({ "scalingSpec": on }), refused),
        (Dedicated, json!({ "scalingSpec": nightly() }), refused),
        (Hybrid, json!({ "scalingSpec": nightly() }), refused),
        (Standard, json!({ "scalingSpec": {} }), &[]),
        (Standard, json!({ "scalingSpec": { "hibernationSpec": { "schedules": [] } } }), &[]),
        (Standard, json!({ "scalingSpec": { "hibernationSpec": { "override": {} } } }), &[]),
    ]);
    let mode = |scaling: Value| json!({ "isDevelopmentMode": true, "scalingSpec": scaling });
    holds_at_creation(vec![(Standard, mode(nightly()), &[]), (Dedicated, mode(on), &[])]);
}

#[test]
fn an_update_replaces_all_of_the_scaling_or_nothing() {
    let mut scaling = nightly();
    scaling["hibernationSpec"]["override"] = json!({ "isHibernating": true });
    let spec = stored(Standard, json!({ "isDevelopmentMode": true, "scalingSpec": scaling }));
    let after = |scaling: Value| {
        let changes = json!({ "scalingSpec": scaling });
        let hibernation = updated(&spec, changes).unwrap().spec.hibernation;
        (hibernation.schedules.len(), hibernation.override_.map(|it| it.is_hibernating))
    };
    let of = |hibernation: Value| after(json!({ "hibernationSpec": hibernation }));
    assert_eq!(after(Value::Null), (1, Some(true)), "left out");
    assert_eq!(after(json!({})), (0, None));
    assert_eq!(of(json!({})), (0, None));
    assert_eq!(of(json!({ "schedules": [] })), (0, None));
    assert_eq!(of(json!({ "override": { "isHibernating": false } })), (0, Some(false)));
    assert_eq!(of(json!({ "override": {} })), (0, None));
    assert_eq!(after(nightly()), (1, None));
}

#[test]
fn remote_execution_is_for_dedicated_and_its_own_executor() {
    let on = |executor: &str| json!({ "executor": executor, "remoteExecution": { "enabled": true } });
    holds(vec![
        (Standard, on("PLATFORM"), &["remoteExecution: excluded"]),
        (Hybrid, on("CELERY"), &["remoteExecution: excluded"]),
        (Dedicated, on("PLATFORM"), &[]),
        (Dedicated, on("CELERY"), &["executor: contradiction"]),
        (Dedicated, on("KUBERNETES"), &["executor: contradiction"]),
        (Standard, json!({ "remoteExecution": { "enabled": false } }), &[]),
        (Dedicated, json!({ "remoteExecution": { "enabled": false } }), &[]),
        (Hybrid, json!({ "remoteExecution": { "enabled": false } }), &[]),
    ]);
    let spec = stored(Dedicated, on("PLATFORM"));
    assert_eq!(wrong(updated(&spec, json!({ "executor": "CELERY" }))), ["executor: contradiction"]);
    let off = json!({ "executor": "CELERY", "remoteExecution": { "enabled": false } });
    assert_eq!(updated(&spec, off).unwrap().spec.remote_execution, None);
}

#[test]
fn remote_execution_keeps_omitted_fields() {
    let remote = |fields: Value| json!({ "executor": "PLATFORM", "remoteExecution": with(json!({ "enabled": true }), fields) });
    let all = json!({
        "allowedIpAddressRanges": ["203.0.113.0/24"], "taskLogBucket": "logs", "taskLogUrlPattern": "https://x/{task}",
    });
    let spec = stored(Dedicated, remote(all));
    let kept = updated(&spec, remote(json!({}))).unwrap().spec;
    assert_eq!(kept, spec);
    let cleared = json!({ "allowedIpAddressRanges": [], "taskLogBucket": "", "taskLogUrlPattern": "" });
    let cleared = updated(&spec, remote(cleared)).unwrap().spec.remote_execution;
    assert_eq!(cleared, Some(RemoteExecution::default()));
    let ranges = json!({ "allowedIpAddressRanges": ["10.0.0.1/8", "10.0.0.0/8", "any"] });
    assert_eq!(
        wrong(created(Dedicated, remote(ranges))),
        [
            "remoteExecution.allowedIpAddressRanges[0]: format",
            "remoteExecution.allowedIpAddressRanges[2]: format"
        ]
    );
}

#[test]
fn an_identity_after_a_failover_needs_a_cluster_that_can_fail_over() {
    let identity = json!({ "drWorkloadIdentity": "arn:dr" });
    holds(vec![
        (Standard, identity.clone(), &["drWorkloadIdentity: excluded"]),
        (Dedicated, identity.clone(), &["drWorkloadIdentity: unsupported"]),
        (Hybrid, identity.clone(), &["drWorkloadIdentity: excluded"]),
        (Standard, json!({ "drWorkloadIdentity": "" }), &[]),
        (Dedicated, json!({ "drWorkloadIdentity": "" }), &[]),
        (Hybrid, json!({ "drWorkloadIdentity": "" }), &[]),
    ]);
    let there = Facts { is_dr_enabled: true, ..facts(Dedicated) };
    let spec = created_there(&there, identity).unwrap().spec;
    assert_eq!(spec.dr_workload_identity.as_deref(), Some("arn:dr"));
    let kept = updated_there(&there, &spec, json!({})).unwrap().spec;
    assert_eq!(kept.dr_workload_identity.as_deref(), Some("arn:dr"));
    let cleared = updated_there(&there, &spec, json!({ "drWorkloadIdentity": "" })).unwrap().spec;
    assert_eq!(cleared.dr_workload_identity, None);
}

#[test]
fn pods_are_sized_on_all_but_hybrid() {
    let fields = [
        ("defaultTaskPodCpu", "1"),
        ("defaultTaskPodMemory", "2Gi"),
        ("resourceQuotaCpu", "1"),
        ("resourceQuotaMemory", "2Gi"),
    ];
    for (field, amount) in fields {
        let changes = json!({ field: amount });
        assert_eq!(wrong(created(Standard, changes.clone())), NONE, "{field}");
        assert_eq!(wrong(created(Dedicated, changes.clone())), NONE, "{field}");
        assert_eq!(wrong(created(Hybrid, changes)), [format!("{field}: excluded")]);
        assert_eq!(wrong(created(Hybrid, json!({ field: "" }))), NONE);
    }
}

#[test]
fn pods_are_put_on_a_node_pool_on_hybrid_only() {
    let on = |id: NodePoolId| json!({ "taskPodNodePoolId": id });
    holds(vec![
        (Standard, on(pool()), &["taskPodNodePoolId: excluded"]),
        (Dedicated, on(pool()), &["taskPodNodePoolId: excluded"]),
        (Hybrid, on(other_pool()), &[]),
        (Hybrid, on(nowhere()), &["taskPodNodePoolId: notFound"]),
    ]);
    assert_eq!(stored(Hybrid, json!({})).task_pod_node_pool_id, None);
    let kubernetes = stored(Hybrid, json!({ "executor": "KUBERNETES" }));
    assert_eq!(kubernetes.task_pod_node_pool_id, Some(pool()), "the cluster's default");
    let other = updated(&kubernetes, on(other_pool())).unwrap().spec;
    assert_eq!(other.task_pod_node_pool_id, Some(other_pool()));
    assert_eq!(updated(&other, json!({})).unwrap().spec.task_pod_node_pool_id, Some(other_pool()));
    for sent in [json!({ "executor": "CELERY" }), with(on(other_pool()), json!({ "executor": "CELERY" }))] {
        let celery = updated(&other, sent).unwrap().spec;
        assert_eq!(celery.task_pod_node_pool_id, None, "it goes when the executor changes");
        let back = updated(&celery, json!({ "executor": "KUBERNETES" })).unwrap().spec;
        assert_eq!(back.task_pod_node_pool_id, Some(pool()));
    }
}

#[test]
fn queues_are_for_every_executor_but_kubernetes() {
    for kind in TYPES {
        let one = json!([queue(kind, "default", json!({}))]);
        holds(vec![
            (kind, json!({ "executor": "CELERY", "workerQueues": one }), &[]),
            (kind, json!({ "executor": "CELERY", "workerQueues": [] }), &["workerQueues: minItems"]),
            (kind, json!({ "executor": "KUBERNETES" }), &[]),
            (kind, json!({ "executor": "KUBERNETES", "workerQueues": [] }), &[]),
            (kind, json!({ "executor": "KUBERNETES", "workerQueues": one }), &["workerQueues: excluded"]),
        ]);
        let spec = stored(kind, json!({}));
        assert_eq!(spec.worker_queues.len(), 1);
        let without = updated(&spec, json!({ "executor": "KUBERNETES" })).unwrap().spec;
        assert_eq!(without.worker_queues, [], "stored ones are dropped");
        let again = updated(&without, json!({ "executor": "CELERY" })).unwrap().spec;
        assert_eq!(again.worker_queues[0].name, "default");
        assert_ne!(again.worker_queues[0].id, spec.worker_queues[0].id);
    }
}

#[test]
fn queues_are_sized_by_machine_or_by_node_pool() {
    let by_machine = |kind, size| json!({ "workerQueues": [queue(kind, "default", size)] });
    let pool_too = json!({ "nodePoolId": pool() });
    let machine_too = json!({ "platformMachine": "A5" });
    let table: Vec<Case> = vec![
        (Standard, by_machine(Standard, json!({})), &[]),
        (Dedicated, by_machine(Dedicated, json!({})), &[]),
        (Hybrid, by_machine(Hybrid, json!({})), &[]),
        (Standard, by_machine(Standard, pool_too.clone()), &["workerQueues[0].nodePoolId: excluded"]),
        (Dedicated, by_machine(Dedicated, pool_too), &["workerQueues[0].nodePoolId: excluded"]),
        (Hybrid, by_machine(Hybrid, machine_too), &["workerQueues[0].platformMachine: excluded"]),
        (
            Hybrid,
            by_machine(Hybrid, json!({ "nodePoolId": nowhere::<NodePoolId>() })),
            &["workerQueues[0].nodePoolId: notFound"],
        ),
        (
            Hybrid,
            by_machine(Hybrid, json!({ "podEphemeralStorage": "5Gi" })),
            &["workerQueues[0].podEphemeralStorage: excluded"],
        ),
    ];
    holds(table);
    holds_at_creation(vec![
        (
            Standard,
            by_machine(Standard, json!({ "platformMachine": null })),
            &["workerQueues[0].platformMachine: required"],
        ),
        (
            Hybrid,
            by_machine(Hybrid, json!({ "nodePoolId": null })),
            &["workerQueues[0].nodePoolId: required"],
        ),
    ]);
}

#[test]
fn a_runtime_is_one_that_there_is() {
    let wanted = |version: &str| created(Standard, json!({ "platformRuntimeVersion": version }));
    assert_eq!(wanted("3.1.0").unwrap().spec.runtime_version, "3.1.0");
    assert_eq!(wanted("3.1.0").unwrap().spec.release.image_tag, "3.1.0");
    assert_eq!(wanted("").unwrap().spec.runtime_version, "3.3.2");
    for version in ["1.10.15", "3.1", "newest"] {
        assert_eq!(wrong(wanted(version)), ["platformRuntimeVersion: unknown"], "{version}");
    }
}

#[test]
fn a_type_does_not_change() {
    for (kind, other) in [(Standard, "DEDICATED"), (Dedicated, "HYBRID"), (Hybrid, "STANDARD")] {
        let spec = stored(kind, json!({}));
        assert_eq!(wrong(updated(&spec, json!({ "type": other }))), ["type: fixed"]);
    }
}

#[test]
fn an_update_keeps_omitted_fields() {
    for kind in TYPES {
        let spec = stored(
            kind,
            json!({
                "description": "Daily", "contactEmails": ["a@podium.test"], "workloadIdentity": "arn:x",
                "isCicdEnforced": true, "isDagDeployEnabled": true,
                "workerQueues": [queue(kind, "default", json!({})), queue(kind, "big", json!({}))],
            }),
        );
        assert_eq!(updated(&spec, json!({})).unwrap().spec, spec);
        let cleared = json!({ "description": "", "contactEmails": [], "workloadIdentity": "" });
        let cleared = updated(&spec, cleared).unwrap().spec;
        assert_eq!((cleared.description.as_str(), cleared.workload_identity.as_deref()), ("", None));
        assert_eq!(cleared.contact_emails, NONE);
    }
    let spec = stored(Standard, json!({ "defaultTaskPodCpu": "2", "resourceQuotaMemory": "80Gi" }));
    assert_eq!(updated(&spec, json!({})).unwrap().spec, spec);
}

#[test]
fn contacts_are_addresses_without_duplicates() {
    let emails = json!({ "contactEmails": ["a@podium.test", "A@podium.test ", "b@podium.test", "nobody"] });
    assert_eq!(wrong(created(Standard, emails)), ["contactEmails[3]: format"]);
    let emails = json!({ "contactEmails": ["a@podium.test", "b@podium.test", "a@podium.test"] });
    assert_eq!(stored(Standard, emails).contact_emails, ["a@podium.test", "b@podium.test"]);
}

#[test]
fn every_wrong_field_is_reported_at_once() {
    let body = json!({
        "name": "  ", "platformRuntimeVersion": "0", "executor": "KUBERNETES", "schedulerSize": "LARGE",
        "isDevelopmentMode": true, "isHighAvailability": true,
        "scalingSpec": { "hibernationSpec": { "schedules": [
            { "hibernateAtCron": "never", "wakeAtCron": "0 6 * * *", "isEnabled": true }
        ], "override": { "isHibernating": true, "overrideUntil": "2027-01-15T08:00:00Z" } } },
        "workerQueues": [queue(Standard, "default", json!({}))],
        "defaultTaskPodCpu": "1x", "defaultTaskPodMemory": "2", "resourceQuotaCpu": "4", "resourceQuotaMemory": "4Gi",
        "taskPodNodePoolId": pool(), "scheduler": { "au": 5 },
        "environmentVariables": [{ "key": "9", "value": "", "isSecret": true }],
        "contactEmails": ["nobody"], "remoteExecution": { "enabled": true }, "drWorkloadIdentity": "x",
    });
    assert_eq!(
        wrong(created(Standard, body)),
        [
            "name: required",
            "platformRuntimeVersion: unknown",
            "scheduler: excluded",
            "isHighAvailability: contradiction",
            "schedulerSize: contradiction",
            "scalingSpec.hibernationSpec.schedules[0].hibernateAtCron: format",
            "scalingSpec.hibernationSpec.override.overrideUntil: past",
            "remoteExecution: excluded",
            "workerQueues: excluded",
            "defaultTaskPodCpu: format",
            "defaultTaskPodMemory: format",
            "resourceQuotaMemory: ratio",
            "taskPodNodePoolId: excluded",
            "environmentVariables[0].key: format",
            "environmentVariables[0].value: required",
            "contactEmails[0]: format",
            "drWorkloadIdentity: excluded",
        ]
    );
}

#[test]
fn a_deployment_without_a_placement_gets_its_other_field_errors_too() {
    let refusal = || Refusal::field("region", "unknown", "must be a region");
    let blank = json!({ "name": " " });
    assert_eq!(
        wrong::<()>(Err(created_nowhere(blank.clone(), refusal()))),
        ["region: unknown", "name: required"]
    );
    let hybrid = with(blank.clone(), json!({ "type": "HYBRID" }));
    assert_eq!(wrong::<()>(Err(created_nowhere(hybrid, refusal()))), ["region: unknown"]);
    let on_cluster = with(blank.clone(), json!({ "clusterId": w1() }));
    assert_eq!(wrong::<()>(Err(created_nowhere(on_cluster, refusal()))), ["region: unknown"]);
    let whole = Refusal::invalid("Say where.");
    assert_eq!(created_nowhere(blank.clone(), whole.clone()), whole);
    let gone = Refusal::not_found("workspace");
    assert_eq!(created_nowhere(blank, gone.clone()), gone);
}
