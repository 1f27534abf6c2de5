//! Pairs of CPU and memory.

use serde_json::{Value, json};

use super::super::fixtures::*;
use super::*;

fn amounts(spec: &Spec) -> [String; 4] {
    [
        &spec.default_task_pod_cpu,
        &spec.default_task_pod_memory,
        &spec.resource_quota_cpu,
        &spec.resource_quota_memory,
    ]
    .map(|amount| amount.clone().unwrap_or_default())
}

#[test]
fn memory_is_twice_the_cpu_and_one_follows_from_the_other() {
    let usual = ["0.25", "0.5Gi", "10", "20Gi"];
    let table = [
        (json!({}), usual),
        (json!({ "defaultTaskPodCpu": "", "defaultTaskPodMemory": "", "resourceQuotaCpu": "" }), usual),
        (json!({ "defaultTaskPodCpu": "1" }), ["1", "2Gi", "10", "20Gi"]),
        (json!({ "defaultTaskPodMemory": "3Gi" }), ["1.5", "3Gi", "10", "20Gi"]),
        (
            json!({ "defaultTaskPodCpu": "0.5", "defaultTaskPodMemory": "1.0Gi" }),
            ["0.5", "1Gi", "10", "20Gi"],
        ),
        (json!({ "resourceQuotaCpu": "160.0" }), ["0.25", "0.5Gi", "160", "320Gi"]),
        (json!({ "resourceQuotaMemory": "0.5Gi" }), ["0.25", "0.5Gi", "0.25", "0.5Gi"]),
        (json!({ "defaultTaskPodCpu": "32", "resourceQuotaCpu": "1600" }), ["32", "64Gi", "1600", "3200Gi"]),
    ];
    for (changes, expected) in table {
        let spec = stored(Standard, changes.clone());
        assert_eq!(amounts(&spec), expected, "new {changes}");
        let spec = updated(&stored(Standard, json!({})), changes.clone()).unwrap().spec;
        assert_eq!(amounts(&spec), expected, "changed {changes}");
    }
}

#[test]
fn amounts_that_are_none() {
    let table: Vec<(Value, &[&str])> = vec![
        (json!({ "defaultTaskPodCpu": "one" }), &["defaultTaskPodCpu: format"]),
        (json!({ "defaultTaskPodCpu": "250m" }), &["defaultTaskPodCpu: format"]),
        (json!({ "defaultTaskPodCpu": "-1" }), &["defaultTaskPodCpu: format"]),
        (json!({ "defaultTaskPodCpu": "0" }), &["defaultTaskPodCpu: format"]),
        (json!({ "defaultTaskPodCpu": "0.2" }), &["defaultTaskPodCpu: format"]),
        (json!({ "defaultTaskPodCpu": "33", "resourceQuotaCpu": "40" }), &["defaultTaskPodCpu: format"]),
        (json!({ "defaultTaskPodMemory": "2" }), &["defaultTaskPodMemory: format"]),
        (json!({ "defaultTaskPodMemory": "512Mi" }), &["defaultTaskPodMemory: format"]),
        (json!({ "defaultTaskPodMemory": "0.25Gi" }), &["defaultTaskPodMemory: range"]),
        (json!({ "defaultTaskPodMemory": "1.001Gi" }), &["defaultTaskPodMemory: range"]),
        (json!({ "resourceQuotaCpu": "1601" }), &["resourceQuotaCpu: format"]),
        (json!({ "resourceQuotaMemory": "3201Gi" }), &["resourceQuotaMemory: range"]),
        (
            json!({ "defaultTaskPodCpu": "x", "defaultTaskPodMemory": "y", "resourceQuotaCpu": "z" }),
            &["defaultTaskPodCpu: format", "defaultTaskPodMemory: format", "resourceQuotaCpu: format"],
        ),
        (
            json!({ "defaultTaskPodCpu": "1", "defaultTaskPodMemory": "1Gi" }),
            &["defaultTaskPodMemory: ratio"],
        ),
        (json!({ "resourceQuotaCpu": "10", "resourceQuotaMemory": "10Gi" }), &["resourceQuotaMemory: ratio"]),
    ];
    for (changes, expected) in table {
        assert_eq!(wrong(created(Standard, changes.clone())), expected, "new {changes}");
        let made = updated(&stored(Standard, json!({})), changes.clone());
        assert_eq!(wrong(made), expected, "changed {changes}");
    }
}

#[test]
fn a_pod_fits_into_the_quota() {
    let table: Vec<(Value, &[&str])> = vec![
        (json!({ "defaultTaskPodCpu": "10" }), &[]),
        (json!({ "defaultTaskPodCpu": "10.25" }), &["defaultTaskPodCpu: maximum"]),
        (json!({ "defaultTaskPodMemory": "21Gi" }), &["defaultTaskPodCpu: maximum"]),
        (json!({ "defaultTaskPodCpu": "2", "resourceQuotaCpu": "1" }), &["defaultTaskPodCpu: maximum"]),
        (json!({ "defaultTaskPodCpu": "16", "resourceQuotaCpu": "many" }), &["resourceQuotaCpu: format"]),
    ];
    for (changes, expected) in table {
        assert_eq!(wrong(created(Dedicated, changes.clone())), expected, "{changes}");
    }
    let spec = stored(Standard, json!({ "defaultTaskPodCpu": "4" }));
    assert_eq!(wrong(updated(&spec, json!({ "resourceQuotaCpu": "2" }))), ["defaultTaskPodCpu: maximum"]);
    assert_eq!(wrong(updated(&spec, json!({ "resourceQuotaCpu": "2", "defaultTaskPodCpu": "2" }))), NONE);
}

#[test]
fn refusals_say_what_is_expected() {
    let told = |changes: Value| created(Standard, changes).unwrap_err().message();
    assert_eq!(
        told(json!({ "defaultTaskPodCpu": "1", "defaultTaskPodMemory": "1Gi" })),
        "defaultTaskPodMemory must be numerically twice `defaultTaskPodCpu`, that is 2Gi"
    );
    assert_eq!(
        told(json!({ "defaultTaskPodMemory": "65Gi" })),
        "defaultTaskPodMemory must be 0.5Gi to 64Gi, in steps of 0.002Gi"
    );
    assert_eq!(
        told(json!({ "defaultTaskPodCpu": "12" })),
        "defaultTaskPodCpu must not be more than the quota, which is 10"
    );
}
