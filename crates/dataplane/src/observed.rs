//! What planes report besides the state of environments: clusters, metrics for operators, log lines, and how a web
//! server is reached; and the machine that a plane is bound to.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use podium_api::clusters::ClusterMetadata;
use podium_api::{DeploymentId, Timestamp};
use podium_domain::UserText;
use podium_domain::airflow::Line;
use podium_domain::clusters::plan::Progress;

use crate::{PlaneFuture, Secret};

/// A cluster as it is wanted.
#[derive(Clone, Debug)]
pub struct Cluster {
    /// Advanced by every change of what is wanted.
    pub generation: i64,
    /// Whether its deployments are to run in the standby region.
    pub wants_failed_over: bool,
    pub cluster: podium_api::clusters::Cluster,
}

impl Cluster {
    /// The region that its deployments are to run in.
    pub fn region(&self) -> &str {
        if self.wants_failed_over { &self.cluster.details.dr_region } else { &self.cluster.region }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedCluster {
    pub generation: i64,
    /// How far that got.
    pub progress: Progress,
    pub metadata: ClusterMetadata,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvironmentMetrics {
    pub id: DeploymentId,
    pub components: Vec<ComponentMetrics>,
    /// Its disk usage in bytes, as last measured.
    pub disk: Option<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComponentMetrics {
    /// Its name, such as `scheduler`.
    pub name: String,
    pub is_up: bool,
    /// Why it does not work.
    pub problem: Option<UserText>,
    pub restarts: Option<u64>,
    /// The memory of its process group in bytes.
    pub memory: Option<u64>,
    pub started_at: Option<Timestamp>,
    pub heartbeat_at: Option<Timestamp>,
}

/// A line that a component wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    pub deployment_id: DeploymentId,
    /// The component, as the API names sources of logs.
    pub source: String,
    pub timestamp: Timestamp,
    pub text: String,
}

/// The machine that a plane is bound to. No other replica can manage what runs there.
pub trait Machine: Send + Sync {
    fn environments(&self) -> Vec<DeploymentId>;

    /// Whether the process at the other end of a connection, whose own end is the second address, belongs to an
    /// environment. Where that cannot be determined, a process of this machine counts as one.
    fn runs_peer(&self, peer: SocketAddr, own: Option<SocketAddr>) -> PlaneFuture<'_, bool>;

    /// Resource metrics of the components of all environments on this machine, for operators.
    fn all_metrics(&self) -> PlaneFuture<'_, Vec<EnvironmentMetrics>>;

    /// Stops an environment that another machine now runs. Its data is moved to where nothing starts it again, for an
    /// operator to inspect or delete.
    fn set_aside(&self, id: DeploymentId) -> PlaneFuture<'_, ()>;

    /// Called when the server has stopped: ends what runs of environments that are being removed, and leaves the others
    /// running for the next start. The plane manages none of them any more.
    fn end(&self) -> PlaneFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// How an environment's web server is reached. It trusts tokens signed with the key, and nobody else: the front door
/// decides who gets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebServer {
    pub upstream: Upstream,
    /// The major version of Apache Airflow that serves there, which decides how requests are signed.
    pub line: Line,
    /// The key that signs the tokens it accepts.
    pub key: Secret,
}

/// Where a web server listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Upstream {
    /// An address, or a name to look up; an IPv6 address in brackets.
    pub host: String,
    pub port: u16,
    /// How the connection is encrypted; it is plain if there is nothing here.
    pub tls: Option<UpstreamTls>,
}

/// How the connection to a web server is encrypted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpstreamTls {
    /// The name that its certificate must have.
    pub server_name: String,
    /// The certificates that may have signed it, as PEM.
    pub authorities: Arc<str>,
}

impl Upstream {
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

impl From<SocketAddr> for Upstream {
    fn from(address: SocketAddr) -> Self {
        let host = match address {
            SocketAddr::V4(address) => address.ip().to_string(),
            SocketAddr::V6(address) => format!("[{}]", address.ip()),
        };
        Self { host, port: address.port(), tls: None }
    }
}

/// Host and port, as in a URL.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}
