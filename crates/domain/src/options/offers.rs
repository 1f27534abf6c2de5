//! The catalogue as the options endpoints return it: only the entries that match the query.

use podium_api::enums::{CloudProvider, DeploymentType, Executor, SchedulerSize};
use podium_api::options::{
    ClusterOptions, DeploymentOptions, MachineSpec, ProviderInstanceType, Range, ResourceOption,
    ResourceQuotaOptions, ResourceRange, RuntimeRelease, SchedulerMachine, WorkerMachine, WorkerQueueOptions,
};

use super::providers::{Provider, node_counts, providers};
use super::runtimes::{Runtime, Version, runtimes};
use super::sizes::{
    Bounds, DEFAULT_STORAGE, MAX_WORKERS, MIN_WORKERS, Machine, POD, QUOTA, Resources, Size,
    WORKER_CONCURRENCY, executors, machines, scheduler,
};

/// The options for a cluster, for each requested provider.
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

/// The query for deployment options.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeploymentQuestion {
    /// Only what deployments of this type can have.
    pub deployment_type: Option<DeploymentType>,
    /// Only what goes with this executor.
    pub executor: Option<Executor>,
    /// No runtimes older than this.
    pub oldest: Option<Version>,
}

/// What can be chosen for a deployment; machines are the same at every provider.
pub fn deployment_options(question: DeploymentQuestion) -> DeploymentOptions {
    let DeploymentQuestion { deployment_type, executor, oldest } = question;
    let is_hybrid = deployment_type == Some(DeploymentType::Hybrid);
    let mut known = deployment_type.map_or(Executor::ALL, executors).to_vec();
    known.retain(|one| executor.is_none_or(|requested| requested == *one));
    let has_queues = known.iter().any(|executor| *executor != Executor::Kubernetes);
    let schedulers = SchedulerSize::ALL.iter().filter(|_| !is_hybrid);
    let workers = machines().iter().filter(|_| !is_hybrid && has_queues);
    let newer = |runtime: &&Runtime| oldest.is_none_or(|oldest| runtime.version >= oldest);
    DeploymentOptions {
        runtime_releases: runtimes().iter().filter(newer).map(release).collect(),
        executors: known.iter().map(Executor::to_string).collect(),
        scheduler_machines: schedulers
            .map(|name| SchedulerMachine { name: *name, spec: spec(scheduler(*name)) })
            .collect(),
        worker_machines: workers.map(worker).collect(),
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
    fn only_options_that_fit_the_type_and_the_executor_are_offered() {
        use DeploymentType::{Dedicated, Hybrid, Standard};
        use Executor::{Celery, Kubernetes, Platform};
        let all = ["CELERY", "KUBERNETES", "PLATFORM"].as_slice();
        let table = [
            (None, None, all, 4, 7),
            (Some(Standard), None, all, 4, 7),
            (Some(Dedicated), None, all, 4, 7),
            (Some(Hybrid), None, &all[..2], 0, 0),
            (None, Some(Celery), &all[..1], 4, 7),
            (None, Some(Kubernetes), &all[1..2], 4, 0),
            (Some(Dedicated), Some(Platform), &all[2..], 4, 7),
            (Some(Hybrid), Some(Platform), &[], 0, 0),
        ];
        for (deployment_type, executor, executors, schedulers, workers) in table {
            let options = deployment_options(DeploymentQuestion { deployment_type, executor, oldest: None });
            assert_eq!(options.executors, executors, "{deployment_type:?} {executor:?}");
            assert_eq!(options.scheduler_machines.len(), schedulers, "{deployment_type:?} {executor:?}");
            assert_eq!(options.worker_machines.len(), workers, "{deployment_type:?} {executor:?}");
            assert_eq!(options.runtime_releases.len(), runtimes().len());
        }
    }

    #[test]
    fn a_deployment_is_not_offered_an_older_runtime() {
        let names = |oldest: &str| {
            let oldest = oldest.parse().ok();
            let options = deployment_options(DeploymentQuestion { oldest, ..DeploymentQuestion::default() });
            options.runtime_releases.into_iter().map(|release| release.version).collect::<Vec<_>>()
        };
        assert_eq!(names("3.3.1"), ["3.3.2", "3.3.1"]);
        assert_eq!(names("3.3.2"), ["3.3.2"]);
        assert_eq!(names("2.9.0").len(), runtimes().len());
    }
}
