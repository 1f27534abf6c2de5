//! Deployments: where one runs, which settings are valid, and its desired state.

pub mod clean_up;
mod cron;
#[cfg(test)]
mod fixtures;
pub mod hibernation;
pub mod namespaces;
pub mod place;
pub mod plan;
pub mod queues;
mod remote_execution;
mod resources;
pub mod rollout;
pub mod settings;
pub mod spec;
pub mod transfer;
pub mod variables;

pub use plan::plan;
pub use settings::{Facts, NodePool, Placed, Services, Wanted, create, misplaced, update};
pub use spec::{
    Bundle, EnvironmentVariable, Hibernation, HibernationOverride, Queue, Release, RemoteExecution, Running,
    RunningBundle, Secret, Spec,
};
