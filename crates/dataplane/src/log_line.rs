//! Log lines of components of environments.

use podium_api::{DeploymentId, Timestamp};

/// A line that a component wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// The deployment.
    pub deployment_id: DeploymentId,
    /// The component, as the API names sources of logs.
    pub source: String,
    /// When it was written.
    pub timestamp: Timestamp,
    /// What was written.
    pub text: String,
}
