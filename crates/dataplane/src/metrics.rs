//! Resource metrics of environments, for operators; no decision depends on them.

use podium_api::{DeploymentId, Timestamp};

/// The metrics of an environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentMetrics {
    /// The environment.
    pub id: DeploymentId,
    /// Its components, by name.
    pub components: Vec<ComponentMetrics>,
    /// Its disk usage in bytes, as last measured.
    pub disk: Option<u64>,
}

/// A component.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentMetrics {
    /// Its name, such as `scheduler`.
    pub name: String,
    /// Whether it works.
    pub is_up: bool,
    /// How often it was restarted.
    pub restarts: Option<u64>,
    /// The memory of its process group in bytes.
    pub memory: Option<u64>,
    /// Its last heartbeat.
    pub heartbeat_at: Option<Timestamp>,
}
