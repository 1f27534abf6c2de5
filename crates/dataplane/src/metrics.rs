//! What the components of an environment take: numbers for the operator, never for a decision.

use podium_api::{DeploymentId, Timestamp};

/// An environment, component by component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentMetrics {
    /// The environment.
    pub id: DeploymentId,
    /// Its components, by name.
    pub components: Vec<ComponentMetrics>,
    /// The bytes that it has on disk, as they were last measured.
    pub disk: Option<u64>,
}

/// A component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentMetrics {
    /// Its name, such as `scheduler`.
    pub name: String,
    /// Whether it works.
    pub is_up: bool,
    /// How often it was started again since this process began to keep it.
    pub restarts: Option<u64>,
    /// The bytes that it and what it started have in memory.
    pub memory: Option<u64>,
    /// When it was last heard of.
    pub heartbeat_at: Option<Timestamp>,
}
