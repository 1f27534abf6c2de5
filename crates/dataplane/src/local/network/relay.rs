//! The relay to the machine's loopback interface: it forwards from a socket inside to the same address outside.

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::Semaphore;

use super::Forward;

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
