//! Where the front door reaches an environment's web server.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use podium_domain::airflow::Line;

use crate::Secret;

/// How an environment's web server is reached. It trusts tokens signed with the key, and nobody else: the front door
/// decides who gets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebServer {
    /// Where it listens.
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
    /// The port.
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
    /// The scheme of its URLs.
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
