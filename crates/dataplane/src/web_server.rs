//! Where an environment's own web server is reached, for the front door that stands before it.

use std::net::SocketAddr;

use podium_domain::airflow::Line;

use crate::Secret;

/// The way to an environment's web server. It listens where only this machine reaches it, and believes whoever holds
/// the key: so whoever stands before it decides who comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebServer {
    /// Where it listens.
    pub address: SocketAddr,
    /// Which line of Apache Airflow answers there.
    pub line: Line,
    /// What the tokens that it believes are signed with.
    pub key: Secret,
}
