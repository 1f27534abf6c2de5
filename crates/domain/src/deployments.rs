//! Deployments: what is wanted of one, what may be asked of it, and what follows.

pub mod plan;
pub mod spec;

pub use plan::plan;
pub use spec::{
    Bundle, EnvironmentVariable, Hibernation, HibernationOverride, Queue, Release, RemoteExecution, Running,
    RunningBundle, Secret, Spec,
};
