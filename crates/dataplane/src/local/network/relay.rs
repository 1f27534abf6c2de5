//! The relays of an environment. One forwards from a socket inside its network to the same address on the machine's
//! loopback interface. The other passes its connections on to the plane's own database server.
//!
//! A server has a place for every connection from the moment that it is opened, before it knows whose it is. Whoever
//! could reach the database server's socket could take all of them. So each environment has a socket of its own, and a
//! process that passes on a limited number of connections. It outlives the control plane, like the environment and the
//! server.

use std::future::Future;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fs, io};

use clap::Args;
use rustix::thread::set_no_new_privs;
use tokio::net::{TcpListener, TcpStream, UdpSocket, UnixListener, UnixStream};
use tokio::sync::Semaphore;

use super::Forward;
use crate::local::layout::missing_is_none;
use crate::local::privileges::{become_user, drop_capabilities};

/// How many connections and requests of one address are handled concurrently.
const AT_ONCE: usize = 512;
/// How long to wait for the reply to a datagram: resolvers give up earlier.
const ANSWER: Duration = Duration::from_secs(10);
/// The pause after a local failure.
const PAUSE: Duration = Duration::from_millis(100);
const LARGEST: usize = 65_535;

/// Relays from a socket inside, forever.
pub(super) async fn relay(socket: OwnedFd, forward: Forward) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    if forward.is_datagram {
        let inside = std::net::UdpSocket::from(socket);
        inside.set_nonblocking(true)?;
        datagrams(Arc::new(UdpSocket::from_std(inside)?), forward.address, &places).await
    } else {
        let inside = std::net::TcpListener::from(socket);
        inside.set_nonblocking(true)?;
        connections(&TcpListener::from_std(inside)?, forward.address, &places).await
    }
}

async fn connections(inside: &TcpListener, outside: SocketAddr, places: &Arc<Semaphore>) -> io::Result<()> {
    loop {
        match inside.accept().await {
            Ok((mut stream, _)) => {
                within(places, async move {
                    let mut there = connect(outside).await?;
                    tokio::io::copy_bidirectional(&mut stream, &mut there).await.map(drop)
                })
                .await;
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

/// Connects to a service, which may listen on the IPv4 or IPv6 loopback address.
async fn connect(outside: SocketAddr) -> io::Result<TcpStream> {
    match TcpStream::connect(outside).await {
        Err(error) if outside.ip() == Ipv4Addr::LOCALHOST => {
            TcpStream::connect((Ipv6Addr::LOCALHOST, outside.port())).await.map_err(|_| error)
        }
        done => done,
    }
}

async fn datagrams(inside: Arc<UdpSocket>, outside: SocketAddr, places: &Arc<Semaphore>) -> io::Result<()> {
    let mut buffer = vec![0; LARGEST];
    loop {
        let Ok((length, from)) = inside.recv_from(&mut buffer).await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let (question, inside) = (buffer[..length].to_vec(), Arc::clone(&inside));
        within(places, async move {
            let there = UdpSocket::bind(SocketAddr::new(outside.ip(), 0)).await?;
            there.connect(outside).await?;
            there.send(&question).await?;
            let mut answer = vec![0; LARGEST];
            let length = tokio::time::timeout(ANSWER, there.recv(&mut answer)).await??;
            inside.send_to(&answer[..length], from).await.map(drop)
        })
        .await;
    }
}

/// Runs work concurrently, once a permit is available. Its result is visible only to the peer.
async fn within(places: &Arc<Semaphore>, work: impl Future<Output = io::Result<()>> + Send + 'static) {
    let place = Arc::clone(places).acquire_owned().await;
    tokio::spawn(async move {
        let _place = place;
        let _ = work.await;
    });
}

#[derive(Clone, Debug, Args)]
pub struct DatabaseRelay {
    /// Id of the user to run as.
    #[arg(long)]
    pub user: u32,
    /// Id of the user whose connections are passed on.
    #[arg(long)]
    pub client: u32,
    /// How many connections there may be at once.
    #[arg(long)]
    pub most: usize,
    /// Socket to listen on.
    #[arg(long)]
    pub listen: PathBuf,
    /// Socket of the server; may be repeated: the first that accepts a connection gets it.
    #[arg(long)]
    pub to: Vec<PathBuf>,
}

impl DatabaseRelay {
    /// Relays until it is ended. Returns why it cannot. It must be called while this process has a single thread.
    pub fn run(self) -> String {
        match self.relay() {
            Ok(()) => "the relay to the database server ended".into(),
            Err(error) => format!("the relay to the database server failed: {error}"),
        }
    }

    fn relay(self) -> io::Result<()> {
        become_user(Some(self.user), false)?;
        set_no_new_privs(true)?;
        drop_capabilities()?;
        let listener = self.listen()?;
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(self.serve(listener))
    }

    fn listen(&self) -> io::Result<std::os::unix::net::UnixListener> {
        // Of an earlier relay, which is gone.
        missing_is_none(fs::remove_file(&self.listen))?;
        let listener = std::os::unix::net::UnixListener::bind(&self.listen)?;
        fs::set_permissions(&self.listen, fs::Permissions::from_mode(0o777))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    async fn serve(self, listener: std::os::unix::net::UnixListener) -> io::Result<()> {
        let listener = UnixListener::from_std(listener)?;
        let (places, to): (_, Arc<[PathBuf]>) = (Arc::new(Semaphore::new(self.most)), self.to.into());
        loop {
            let Ok((mut inside, _)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            // Others do not even count.
            let is_clients = inside.peer_cred().is_ok_and(|peer| peer.uid() == self.client);
            let Some(place) = is_clients.then(|| Arc::clone(&places).try_acquire_owned().ok()).flatten()
            else {
                continue;
            };
            let to = Arc::clone(&to);
            tokio::spawn(async move {
                let _place = place;
                let Ok(mut there) = connect_to_any(&to).await else { return };
                let _ = tokio::io::copy_bidirectional(&mut inside, &mut there).await;
            });
        }
    }
}

/// Connects to the first of these that accepts.
async fn connect_to_any(sockets: &[PathBuf]) -> io::Result<UnixStream> {
    let mut why = io::ErrorKind::NotFound.into();
    for socket in sockets {
        match UnixStream::connect(socket).await {
            Ok(stream) => return Ok(stream),
            Err(error) => why = error,
        }
    }
    Err(why)
}
