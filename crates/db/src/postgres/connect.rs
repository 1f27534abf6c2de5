//! Connecting to the server: the URL, its timeouts, and the settings of a new connection.

use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::time::Duration;

use tokio::net::{TcpStream, UnixStream, lookup_host};
use tokio::runtime::Runtime;
use tokio_postgres::config::{Host, LoadBalanceHosts, TargetSessionAttrs};
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::{Client, Config, Connection, Socket};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::stream::{Encrypting, Lent, Stream};
use super::wire::Wire;
use super::{Chain, tls};
use crate::{Error, Result};

/// The half of a connection that must be polled for anything to happen.
pub(super) type Driver = Connection<Socket, <MakeRustlsConnect as MakeTlsConnect<Socket>>::Stream>;

/// No statement runs longer, and no transaction waits longer for its unit.
const SETUP: &str = "SET statement_timeout = '30s'; SET idle_in_transaction_session_timeout = '30s'";

/// What the connections of the pool are told besides. Statements that are sent together and change nothing see one snapshot.
/// Every statement is prepared once and run many times; planning one anew takes up to ten times as long as running it.
const POOLED: &str =
    "SET default_transaction_isolation = 'repeatable read'; SET plan_cache_mode = 'force_generic_plan'";

/// How long connecting may take.
const GREETING: Duration = Duration::from_secs(5);

pub(super) struct Connector {
    config: Config,
    tls: MakeRustlsConnect,
}

/// Where a server is: its name, if it has one, and how to get there.
struct Place {
    name: String,
    host: Host,
    port: u16,
}

impl Connector {
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

    pub(super) async fn connect(&self) -> Result<(Client, Driver)> {
        // The driver's own timeout ends with the TCP handshake, and a server that accepts may still not respond.
        match tokio::time::timeout(GREETING, self.config.connect(self.tls.clone())).await {
            Ok(Ok(connected)) => Ok(connected),
            Ok(Err(error)) => Err(unreachable(&error)),
            Err(_) => Err(silent()),
        }
    }

    /// Makes a connection for the pool, to the first server that lets us in.
    pub(super) fn open(&self, runtime: &Runtime) -> Result<Wire> {
        let mut last = Error::unavailable("cannot connect to PostgreSQL: the URL names no host");
        for place in self.places() {
            let connected =
                runtime.block_on(async { tokio::time::timeout(GREETING, self.stream(&place)).await });
            let opened =
                connected.unwrap_or_else(|_| Err(silent())).and_then(|stream| self.greet(stream, runtime));
            match opened {
                Ok(wire) => return Ok(wire),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The servers of the URL, in the order in which to try them.
    fn places(&self) -> Vec<Place> {
        let (hosts, addresses) = (self.config.get_hosts(), self.config.get_hostaddrs());
        let ports = self.config.get_ports();
        let place = |index: usize| {
            let host = hosts.get(index).cloned();
            let name = if let Some(Host::Tcp(name)) = &host { name.clone() } else { String::new() };
            let address = addresses.get(index).map(|address: &IpAddr| Host::Tcp(address.to_string()));
            let port = ports.get(index).or(ports.first()).copied().unwrap_or(5432);
            address.or(host).map(|host| Place { name, host, port })
        };
        let mut places: Vec<Place> = (0..hosts.len().max(addresses.len())).filter_map(place).collect();
        if self.config.get_load_balance_hosts() == LoadBalanceHosts::Random && !places.is_empty() {
            let first = RandomState::new().hash_one(0) as usize % places.len();
            places.rotate_left(first);
        }
        places
    }

    async fn stream(&self, place: &Place) -> Result<Stream> {
        match &place.host {
            Host::Tcp(host) => {
                let addresses = lookup_host((host.as_str(), place.port)).await;
                let mut last = Error::unavailable("cannot connect to PostgreSQL: its host has no address");
                for address in addresses.map_err(|error| unreachable(&error))? {
                    let most = self.config.get_connect_timeout().copied().unwrap_or(GREETING);
                    match tokio::time::timeout(most, TcpStream::connect(address)).await {
                        Ok(Ok(socket)) => {
                            self.tune(&socket).map_err(|error| unreachable(&error))?;
                            return self.sign_in(socket, place, plain_tcp).await;
                        }
                        Ok(Err(error)) => last = unreachable(&error),
                        Err(_) => last = silent(),
                    }
                }
                Err(last)
            }
            Host::Unix(directory) => {
                let path = directory.join(format!(".s.PGSQL.{}", place.port));
                let socket = UnixStream::connect(path).await.map_err(|error| unreachable(&error))?;
                self.sign_in(socket, place, plain_unix).await
            }
        }
    }

    /// Notices a server that is gone, and sends what there is to send at once.
    fn tune(&self, socket: &TcpStream) -> std::io::Result<()> {
        use rustix::net::sockopt;
        socket.set_nodelay(true)?;
        if let Some(limit) = self.config.get_tcp_user_timeout() {
            sockopt::set_tcp_user_timeout(socket, u32::try_from(limit.as_millis()).unwrap_or(u32::MAX))?;
        }
        if self.config.get_keepalives() {
            sockopt::set_socket_keepalive(socket, true)?;
            sockopt::set_tcp_keepidle(socket, self.config.get_keepalives_idle())?;
            if let Some(interval) = self.config.get_keepalives_interval() {
                sockopt::set_tcp_keepintvl(socket, interval)?;
            }
            if let Some(count) = self.config.get_keepalives_retries() {
                sockopt::set_tcp_keepcnt(socket, count)?;
            }
        }
        Ok(())
    }

    /// Lets the driver encrypt and sign in, and takes the stream from it: the encrypted one if there is one.
    async fn sign_in<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static>(
        &self,
        socket: S,
        place: &Place,
        plain: fn(S) -> std::io::Result<Stream>,
    ) -> Result<Stream> {
        let (lent, encrypted) = (Lent::new(Some(socket)), Lent::new(None));
        let mut maker = self.tls.clone();
        let tls = MakeTlsConnect::<Lent<S>>::make_tls_connect(&mut maker, &place.name)
            .map_err(|error| unreachable(&error))?;
        let tls = Encrypting { tls, lent: encrypted.again() };
        let signed_in = self.config.connect_raw(lent.again(), tls).await;
        // Neither half is used any more. The server has said that it is ready, and says nothing until it is asked.
        drop(signed_in.map_err(|error| unreachable(&error))?);
        if let Some(stream) = encrypted.take() {
            return Ok(Stream::Tls(Box::new(stream), None));
        }
        let socket = lent.take();
        let socket = socket
            .ok_or_else(|| Error::unavailable("cannot connect to PostgreSQL: the connection was lost"))?;
        plain(socket).map_err(|error| unreachable(&error))
    }

    /// Tells a fresh connection its limits, and looks whether the server is of the kind that the URL wants.
    fn greet(&self, stream: Stream, runtime: &Runtime) -> Result<Wire> {
        let mut wire = Wire::new(stream).map_err(|error| unreachable(&error))?;
        wire.script(runtime, &format!("{SETUP}; {POOLED}")).map_err(super::Failure::into_error)?;
        let wanted = match self.config.get_target_session_attrs() {
            TargetSessionAttrs::ReadWrite => "off",
            TargetSessionAttrs::ReadOnly => "on",
            _ => return Ok(wire),
        };
        let shown = wire.script(runtime, "SHOW transaction_read_only").map_err(super::Failure::into_error)?;
        if shown.rows.first().is_some_and(|row| row.ends_with(wanted.as_bytes())) {
            return Ok(wire);
        }
        Err(Error::unavailable(
            "cannot connect to PostgreSQL: this server is of another kind than target_session_attrs",
        ))
    }

    /// Sets the timeouts of a new connection.
    pub(super) async fn prepare(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        client.batch_execute(SETUP).await
    }
}

fn plain_tcp(socket: TcpStream) -> std::io::Result<Stream> {
    let socket = socket.into_std()?;
    socket.set_nonblocking(false)?;
    Ok(Stream::Tcp(socket))
}

fn plain_unix(socket: UnixStream) -> std::io::Result<Stream> {
    let socket = socket.into_std()?;
    socket.set_nonblocking(false)?;
    Ok(Stream::Unix(socket))
}

fn unreachable(error: &(dyn std::error::Error + 'static)) -> Error {
    Error::Unavailable(format!("cannot connect to PostgreSQL: {}", Chain(error)))
}

fn silent() -> Error {
    Error::unavailable("cannot connect to PostgreSQL: it does not answer")
}

/// A runtime for the thread that uses it.
pub(super) fn runtime() -> Result<Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Error::unavailable)
}
