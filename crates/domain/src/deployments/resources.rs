//! CPU and memory of task pods: memory is numerically twice the CPU, and a pod fits into the quota.

use podium_api::enums::DeploymentType;

use super::spec::Spec;
use crate::options::{self, Bounds, Cpu, Memory, Resources};
use crate::refusal::Fields;

/// The least difference between two amounts of CPU.
const STEP: Cpu = Cpu::from_thousandths(1);

/// Sets the requested values; if only one of a pair is given, the other follows from it.
pub(super) fn check(
    pod: (Option<&str>, Option<&str>),
    quota: (Option<&str>, Option<&str>),
    spec: &mut Spec,
    fields: &mut Fields,
) {
    let pod_names = ["defaultTaskPodCpu", "defaultTaskPodMemory"];
    let quota_names = ["resourceQuotaCpu", "resourceQuotaMemory"];
    if spec.kind == DeploymentType::Hybrid {
        let names = pod_names.into_iter().chain(quota_names);
        let given = [pod.0, pod.1, quota.0, quota.1].map(|text| text.is_some_and(|text| !text.is_empty()));
        let message = "must be omitted: HYBRID deployments do not support it";
        fields.push_each(names.zip(given), "excluded", message);
        return;
    }
    let pod = pair(pod_names, pod, options::POD, fields);
    let quota = pair(quota_names, quota, options::QUOTA, fields);
    let (Ok(pod), Ok(quota)) = (pod, quota) else { return };
    if let Some(cpu) = pod {
        spec.default_task_pod_cpu = Some(cpu.to_string());
        spec.default_task_pod_memory = Some(cpu.memory().to_string());
    }
    if let Some(cpu) = quota {
        spec.resource_quota_cpu = Some(cpu.to_string());
        spec.resource_quota_memory = Some(cpu.memory().to_string());
    }
    let cpu = |text: &Option<String>| text.as_deref().and_then(Cpu::parse);
    let (pod, quota) = (cpu(&spec.default_task_pod_cpu), cpu(&spec.resource_quota_cpu));
    if let (Some(pod), Some(quota)) = (pod, quota)
        && pod > quota
    {
        fields.push(pod_names[0], "maximum", format!("must not be more than the quota, which is {quota}"));
    }
}

/// Takes all sizes away.
pub(super) fn clear(spec: &mut Spec) {
    for size in sizes(spec) {
        *size = None;
    }
}

/// Gives what has no size the default one.
pub(super) fn fill(spec: &mut Spec) {
    let mut usual = Spec::new(spec.kind, "");
    for (size, usual) in sizes(spec).into_iter().zip(sizes(&mut usual)) {
        if size.is_none() {
            *size = usual.take();
        }
    }
}

fn sizes(spec: &mut Spec) -> [&mut Option<String>; 4] {
    [
        &mut spec.default_task_pod_cpu,
        &mut spec.default_task_pod_memory,
        &mut spec.resource_quota_cpu,
        &mut spec.resource_quota_memory,
    ]
}

/// A field was wrong, and is noted.
struct Wrong;

/// The CPU that a pair of texts requests, if any.
fn pair(
    names: [&str; 2],
    (cpu, memory): (Option<&str>, Option<&str>),
    bounds: Resources,
    fields: &mut Fields,
) -> Result<Option<Cpu>, Wrong> {
    let given = |text: Option<&'_ str>| text.filter(|text| !text.is_empty()).map(str::to_owned);
    let (cpu, memory) = (given(cpu), given(memory));
    let asked_cpu = cpu.as_deref().map(|text| Cpu::parse(text).filter(|cpu| bounds.cpu.contains(*cpu)));
    let asked_memory = memory.as_deref().map(Memory::parse);
    if asked_cpu == Some(None) {
        let Bounds { floor, ceiling, .. } = bounds.cpu;
        let message = format!("must be CPU such as 0.25 or 1, from {floor} to {ceiling}");
        fields.push(names[0], "format", message);
    }
    if asked_memory == Some(None) {
        fields.push(names[1], "format", "must be memory in Gi, such as 0.5Gi or 2Gi");
    }
    let (cpu, memory) = match (asked_cpu, asked_memory) {
        (Some(None), _) | (_, Some(None)) => return Err(Wrong),
        (cpu, memory) => (cpu.flatten(), memory.flatten()),
    };
    let Some(memory) = memory else { return Ok(cpu) };
    let half = Cpu::from_thousandths(memory.thousandths() / 2);
    let fits = |cpu: Cpu| bounds.cpu.contains(cpu) && cpu.memory() == memory;
    match cpu {
        Some(cpu) if !fits(cpu) => {
            let message = format!("must be numerically twice `{}`, that is {}", names[0], cpu.memory());
            fields.push(names[1], "ratio", message);
            Err(Wrong)
        }
        None if !fits(half) => {
            let Bounds { floor, ceiling, .. } = bounds.memory();
            let message = format!("must be {floor} to {ceiling}, in steps of {}", STEP.memory());
            fields.push(names[1], "range", message);
            Err(Wrong)
        }
        cpu => Ok(Some(cpu.unwrap_or(half))),
    }
}

#[cfg(test)]
mod tests;
