//! Deployments: what is wanted of one, what may be asked of it, and what follows.

pub mod spec;

pub use spec::{
    Bundle, EnvironmentVariable, Hibernation, HibernationOverride, Queue, Release, RemoteExecution, Running,
    RunningBundle, Secret, Spec,
};
