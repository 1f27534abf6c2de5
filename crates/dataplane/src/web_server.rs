//! Where the front door reaches an environment's web server.

use std::net::SocketAddr;

use podium_domain::airflow::Line;

use crate::Secret;

/// Address and key of an environment's web server. It listens where only this machine can reach it and trusts tokens
/// signed with the key, so the front door decides who gets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// The major version of Apache Airflow that serves there.
    pub line: Line,
    /// The key that signs the tokens it accepts.
    pub key: Secret,
}
