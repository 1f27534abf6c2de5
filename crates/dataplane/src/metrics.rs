//! Resource metrics of environments, for operators; no decision depends on them.

use podium_api::{DeploymentId, Timestamp};
use podium_domain::UserText;

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
    /// Why it does not work.
    pub problem: Option<UserText>,
    /// How often it was restarted.
    pub restarts: Option<u64>,
    /// The memory of its process group in bytes.
    pub memory: Option<u64>,
    /// When it was started.
    pub started_at: Option<Timestamp>,
    /// Its last heartbeat.
    pub heartbeat_at: Option<Timestamp>,
}
