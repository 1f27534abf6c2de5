//! Limits and settings of the HTTP side.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

/// Limits and settings of the HTTP side.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections at once; more wait to be accepted.
    pub connections: usize,
    /// How long a client may take to send the head of a request, and keep a connection open before the next.
    pub header_timeout: Duration,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    /// The largest body that is read.
    pub body_limit: usize,
    /// How long an upload may stand still; how long it takes in all is up to its sender.
    pub upload_idle_timeout: Duration,
    /// How long requests may finish once the server is told to stop.
    pub drain: Duration,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Origins whose pages may call the API from a browser.
    pub cors_origins: Vec<String>,
    /// Certificate and key, where connections are encrypted here.
    pub tls: Option<Tls>,
}

/// Files of a certificate chain and its private key, in PEM.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The chain.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections: 10_000,
            header_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            body_limit: 1024 * 1024,
            upload_idle_timeout: Duration::from_secs(60),
            drain: Duration::from_secs(20),
            trusted_proxies: Vec::new(),
            cors_origins: Vec::new(),
            tls: None,
        }
    }
}
