//! The catalogue: runtimes, machines, sizes, bounds, and what each cloud provider offers.
//!
//! Validation, defaults and the options endpoints all read it here, so that what is offered is what is accepted. It
//! holds facts and no decisions; the longer tables are data files next to the code.

mod amounts;
mod offers;
mod providers;
mod runtimes;
mod sizes;

pub use amounts::{Cpu, Memory};
pub use offers::{cluster_options, deployment_options};
pub use providers::{NodeCounts, Provider, Ranges, node_counts, provider, providers, region};
pub use runtimes::{Runtime, Version, newest_stable, runtime, runtimes};
pub use sizes::{
    AU, AU_PER_SCHEDULER, Bounds, DEFAULT_STORAGE, MAX_WORKERS, MIN_WORKERS, Machine, POD, QUOTA, Resources,
    SCHEDULER_REPLICAS, Size, WORKER_CONCURRENCY, au, executors, machine, machines, scheduler,
};
