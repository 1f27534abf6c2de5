//! The catalogue as the options endpoints return it.

use podium_api::enums::{CloudProvider, Executor, SchedulerSize};
use podium_api::options::{
    ClusterOptions, DeploymentOptions, MachineSpec, ProviderInstanceType, Range, ResourceOption,
    ResourceQuotaOptions, ResourceRange, RuntimeRelease, SchedulerMachine, WorkerMachine, WorkerQueueOptions,
};

use super::providers::{Provider, node_counts, providers};
use super::runtimes::{Runtime, Version, runtimes};
use super::sizes::{
    Bounds, DEFAULT_STORAGE, MAX_WORKERS, MIN_WORKERS, Machine, POD, QUOTA, Resources, Size,
    WORKER_CONCURRENCY, machines, scheduler,
};

pub fn cluster_options(requested: Option<CloudProvider>) -> Vec<ClusterOptions> {
    let is_asked = |provider: &&Provider| requested.is_none_or(|requested| requested == provider.provider);
    providers().iter().filter(is_asked).map(offer).collect()
}

fn offer(provider: &Provider) -> ClusterOptions {
    let instance = |found: Option<&ProviderInstanceType>| found.cloned().expect("a default is in its list");
    let counts = node_counts();
    let ranges = &provider.ranges;
    ClusterOptions {
        provider: provider.provider,
        regions: provider.regions.clone(),
        default_region: provider.region(&provider.default_region).cloned().expect("a default is in its list"),
        node_instances: provider.node_instances.clone(),
        default_node_instance: instance(provider.node_instance(&provider.default_node_instance)),
        database_instances: provider.database_instances.clone(),
        default_database_instance: instance(provider.database_instance(&provider.default_database_instance)),
        node_count_min: counts.min,
        node_count_default: counts.default,
        node_count_max: counts.max,
        default_vpc_subnet_range: ranges.vpc.clone(),
        default_pod_subnet_range: ranges.pod.clone(),
        default_service_subnet_range: ranges.service.clone(),
        default_service_peering_range: ranges.peering.clone(),
    }
}

/// What can be chosen for a deployment: all that there is, whatever its type and executor, and no runtimes older than
/// the one that it has.
pub fn deployment_options(oldest: Option<Version>) -> DeploymentOptions {
    let newer = |runtime: &&Runtime| oldest.is_none_or(|oldest| runtime.version >= oldest);
    DeploymentOptions {
        runtime_releases: runtimes().iter().filter(newer).map(release).collect(),
        executors: Executor::ALL.iter().map(Executor::to_string).collect(),
        scheduler_machines: SchedulerSize::ALL
            .iter()
            .map(|name| SchedulerMachine { name: *name, spec: spec(scheduler(*name)) })
            .collect(),
        worker_machines: machines().iter().map(worker).collect(),
        worker_queues: WorkerQueueOptions {
            min_workers: range(MIN_WORKERS),
            max_workers: range(MAX_WORKERS),
            worker_concurrency: range(WORKER_CONCURRENCY),
        },
        resource_quotas: ResourceQuotaOptions {
            default_pod_size: resources(&POD),
            resource_quota: resources(&QUOTA),
        },
        workload_identity_options: Vec::new(),
    }
}

fn release(runtime: &Runtime) -> RuntimeRelease {
    RuntimeRelease {
        version: runtime.name.clone(),
        airflow_version: runtime.name.clone(),
        channel: runtime.channel.clone(),
        release_date: runtime.released_at,
        airflow_database_migration: runtime.migrates_database,
        platform_database_migration: false,
    }
}

fn spec(size: Size) -> MachineSpec {
    MachineSpec {
        cpu: size.cpu.to_string(),
        memory: size.memory.to_string(),
        ephemeral_storage: None,
        concurrency: None,
    }
}

fn worker(machine: &Machine) -> WorkerMachine {
    let spec = MachineSpec {
        ephemeral_storage: Some(DEFAULT_STORAGE.into()),
        concurrency: Some(machine.concurrency.default),
        ..spec(machine.size)
    };
    WorkerMachine { name: machine.name, spec, concurrency: range(machine.concurrency) }
}

fn range(bounds: Bounds<u32>) -> Range {
    Range { floor: bounds.floor, default: bounds.default, ceiling: bounds.ceiling }
}

fn resources(resources: &Resources) -> ResourceOption {
    ResourceOption { cpu: amounts(&resources.cpu), memory: amounts(&resources.memory()) }
}

fn amounts<T: ToString>(bounds: &Bounds<T>) -> ResourceRange {
    ResourceRange {
        floor: bounds.floor.to_string(),
        default: bounds.default.to_string(),
        ceiling: bounds.ceiling.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_offered() {
        let options = deployment_options(None);
        assert_eq!(options.executors, ["CELERY", "KUBERNETES", "PLATFORM"]);
        assert_eq!((options.scheduler_machines.len(), options.worker_machines.len()), (4, 7));
        assert_eq!(options.runtime_releases.len(), runtimes().len());
    }

    #[test]
    fn a_deployment_is_not_offered_an_older_runtime() {
        let names = |oldest: &str| {
            let options = deployment_options(oldest.parse().ok());
            options.runtime_releases.into_iter().map(|release| release.version).collect::<Vec<_>>()
        };
        assert_eq!(names("3.3.1"), ["3.3.2", "3.3.1"]);
        assert_eq!(names("3.3.2"), ["3.3.2"]);
        assert_eq!(names("2.9.0").len(), runtimes().len());
    }
}
