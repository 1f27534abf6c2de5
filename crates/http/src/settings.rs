//! Limits and settings of the HTTP server.

use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;

/// Limits and settings of the HTTP side.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Connections at once; for more, idle ones are closed, and where none is idle they wait to be accepted.
    pub connections: usize,
    /// Connections at once of one address (of one network of IPv6). Loopback and trusted proxies, which many may be
    /// behind, may have most of all.
    pub connections_per_address: usize,
    /// How long a client may take to send the head of a request, and keep a connection open before the next.
    pub header_timeout: Duration,
    /// How long a client may take to send a body.
    pub body_timeout: Duration,
    pub body_limit: usize,
    /// How long an unauthenticated client (one that signs in or accepts an invite) may take to send a body.
    pub public_body_timeout: Duration,
    /// The largest body that is read from an unauthenticated client. A password of 1,024 escaped characters takes 12 KiB.
    pub public_body_limit: usize,
    /// How long a client may read nothing of an answer that waits for it.
    pub write_timeout: Duration,
    /// Bytes of answers that may wait to be read.
    pub waiting: Waiting,
    /// How long an upload, or another body that is passed on, may take for each `upload_floor` bytes; how long it takes
    /// in all is up to its sender.
    pub upload_idle_timeout: Duration,
    /// See `upload_idle_timeout`.
    pub upload_floor: u64,
    /// How long a page of the console waits for what it asks of an environment's Airflow.
    pub console_airflow_timeout: Duration,
    /// How long requests may finish once the server is told to stop.
    pub drain: Duration,
    /// Proxies whose `X-Forwarded-For` is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Origins whose pages may call the API from a browser.
    pub cors_origins: Vec<String>,
    /// Certificate and key, where connections are encrypted here.
    pub tls: Option<Tls>,
}

/// Bytes of answers that may wait to be read. One answer may always wait, however large it is.
#[derive(Clone, Copy, Debug)]
pub struct Waiting {
    pub connection: usize,
    /// On all connections of one address.
    pub address: usize,
    /// On all connections.
    pub all: usize,
}

/// Files of a certificate chain and its private key, in PEM.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The chain.
    pub certificate: PathBuf,
    pub key: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_address: 1000,
            header_timeout: Duration::from_secs(60),
            body_timeout: Duration::from_secs(30),
            body_limit: 1024 * 1024,
            public_body_timeout: Duration::from_secs(5),
            public_body_limit: 16 * 1024,
            write_timeout: Duration::from_secs(60),
            waiting: Waiting { connection: 8 << 20, address: 64 << 20, all: 256 << 20 },
            upload_idle_timeout: Duration::from_secs(60),
            upload_floor: 64 * 1024,
            console_airflow_timeout: Duration::from_secs(10),
            drain: Duration::from_secs(20),
            trusted_proxies: Vec::new(),
            cors_origins: Vec::new(),
            tls: None,
        }
    }
}
