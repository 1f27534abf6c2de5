//! Connecting to the server: the URL, its timeouts, and the settings of a new connection.

use std::time::Duration;

use tokio::runtime::Runtime;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::{Chain, tls};
use crate::{Error, Result};

/// The half of a connection that must be polled for anything to happen.
pub(super) type Driver = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// No statement runs longer, and no transaction waits longer for its unit.
const SETUP: &str = "SET statement_timeout = '30s'; SET idle_in_transaction_session_timeout = '30s'";

/// How long connecting may take.
const GREETING: Duration = Duration::from_secs(5);

/// Opens connections.
pub(super) struct Connector {
    config: Config,
    tls: MakeRustlsConnect,
}

impl Connector {
    /// Parses a connection URL.
    pub(super) fn new(url: &str) -> Result<Self> {
        let (url, policy) = tls::Policy::split(url)?;
        let mut config: Config = url
            .parse()
            .map_err(|error| Error::Other(format!("the database URL is not valid: {}", Chain(&error))))?;
        if config.get_application_name().is_none() {
            config.application_name("podium");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(Duration::from_secs(3));
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(Duration::from_secs(30));
        }
        config.keepalives_idle(Duration::from_secs(30)).keepalives_interval(Duration::from_secs(10));
        Ok(Self { config, tls: MakeRustlsConnect::new(policy.client()?) })
    }

    /// Opens a connection.
    pub(super) async fn connect(&self) -> Result<(Client, Driver)> {
        // The driver's own timeout ends with the TCP handshake, and a server that accepts may still not respond.
        match tokio::time::timeout(GREETING, self.config.connect(self.tls.clone())).await {
            Ok(Ok(connected)) => Ok(connected),
            Ok(Err(error)) => {
                Err(Error::Unavailable(format!("cannot connect to PostgreSQL: {}", Chain(&error))))
            }
            Err(_) => Err(Error::unavailable("cannot connect to PostgreSQL: it does not respond")),
        }
    }

    /// Sets the timeouts of a new connection.
    pub(super) async fn prepare(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        client.batch_execute(SETUP).await
    }
}

/// A runtime for the thread that uses it.
pub(super) fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::unavailable)
}
