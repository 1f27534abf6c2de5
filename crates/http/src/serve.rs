//! The accept loop: connections within a cap, heads within a time, and a stop that lets requests finish.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use http::header::ACCEPT_ENCODING;
use http::{Extensions, HeaderMap, Request, StatusCode, Version};
use http_body_util::Either;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tower::{ServiceExt as _, service_fn as service_fn_of_tower};
use tower_http::compression::Compression;
use tower_http::compression::predicate::{DefaultPredicate, Predicate as _};

use crate::front_door::Entrance;
use crate::peer::Peer;
use crate::ports::{Arrived, Ports};
use crate::respond::PassedOn;
use crate::server::Server;
use crate::settings::Settings;
use crate::tls::{self, Certificate};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
const MAX_HEAD: usize = 64 * 1024;

/// How serving ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// Every request was answered.
    Drained,
    /// Some requests were still running at the deadline, and were cut off.
    CutOff,
}

/// Whether the settings can be served with: a certificate and a key that cannot be read are found here.
pub fn check(settings: &Settings) -> Result<(), String> {
    settings.tls.as_ref().map_or(Ok(()), |tls| Certificate::load(tls).map(drop))
}

/// Serves until `stop` resolves, then lets running requests finish within the deadline.
pub async fn serve(
    server: Server,
    listener: TcpListener,
    stop: impl Future<Output = ()>,
) -> Result<Serving, String> {
    let certificate = server.settings().tls.as_ref().map(Certificate::load).transpose()?;
    // Listened for before anybody is told that this serves: a SIGHUP that nobody listens for ends a process.
    let asked = signal(SignalKind::hangup()).map_err(|error| error.to_string())?;
    let _following = AbortOnDrop(tokio::spawn(tls::follow(asked, certificate.clone())));
    let permits = Arc::new(Semaphore::new(server.settings().connections));
    let graceful = GracefulShutdown::new();
    let address = listener.local_addr().map_err(|error| error.to_string())?.ip();
    let address = server.app().environments_address(address);
    let (ports, mut arrived) = Ports::listen(server.app().clone(), address);
    let mut stop = std::pin::pin!(stop);
    loop {
        let permit = Arc::clone(&permits).acquire_owned();
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = async {
                let permit = permit.await;
                tokio::select! {
                    accepted = listener.accept() => {
                        (permit, accepted.map(|(stream, peer)| (Entrance::Main, stream, peer)))
                    }
                    Some(Arrived { port, stream, peer }) = arrived.recv() => {
                        (permit, Ok((Entrance::Port(port), stream, peer)))
                    }
                }
            } => accepted,
        };
        let (permit, (entrance, stream, peer)) = match accepted {
            (permit, Ok(connection)) => (permit, connection),
            (_, Err(error)) => {
                // Out of file descriptors, most likely: wait for some to come back.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            }
        };
        let tls = certificate.as_ref().map(Certificate::acceptor);
        let (server, watcher) = (server.clone(), graceful.watcher());
        tokio::spawn(async move {
            server.open_connections().fetch_add(1, Ordering::Relaxed);
            connection((&server, entrance), tls, watcher, stream, peer).await;
            server.open_connections().fetch_sub(1, Ordering::Relaxed);
            drop(permit);
        });
    }
    drop((listener, ports));
    server.stop();
    tokio::select! {
        () = graceful.shutdown() => Ok(Serving::Drained),
        () = tokio::time::sleep(server.settings().drain) => Ok(Serving::CutOff),
    }
}

/// A task that ends with whoever started it.
struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn connection(
    server: (&Server, Entrance),
    tls: Option<TlsAcceptor>,
    watcher: Watcher,
    stream: TcpStream,
    peer: SocketAddr,
) {
    // Without it every small answer may wait for the client's acknowledgement.
    let _ = stream.set_nodelay(true);
    let peer = Arc::new(Peer::new(peer, stream.local_addr().ok()));
    let Some(tls) = tls else { return http_1(server, watcher, stream, peer).await };
    match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
            http_2(server, watcher, stream, peer).await;
        }
        Ok(Ok(stream)) => http_1(server, watcher, stream, peer).await,
        _ => tracing::debug!(peer = %peer.address, "a TLS handshake failed"),
    }
}

/// Compresses for clients that can take it; for others nothing is put in the way.
macro_rules! service {
    ($server:expr, $peer:expr) => {{
        let ((server, entrance), peer) = ($server, $peer);
        let server = server.clone();
        service_fn(move |request: Request<Incoming>| {
            let (server, peer) = (server.clone(), Arc::clone(&peer));
            async move {
                if !request.headers().contains_key(ACCEPT_ENCODING) {
                    return Ok::<_, Infallible>(
                        server.answer(entrance, request, peer).await.map(Either::Left),
                    );
                }
                let answer = service_fn_of_tower(move |request| {
                    let (server, peer) = (server.clone(), Arc::clone(&peer));
                    async move { Ok::<_, Infallible>(server.answer(entrance, request, peer).await) }
                });
                let compressing =
                    Compression::new(answer).compress_when(DefaultPredicate::new().and(is_ours));
                Ok(compressing.oneshot(request).await?.map(Either::Right))
            }
        })
    }};
}

/// Whether an answer was made here: others are passed on as they come.
fn is_ours(_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions) -> bool {
    extensions.get::<PassedOn>().is_none()
}

async fn http_1<S>(server: (&Server, Entrance), watcher: Watcher, stream: S, peer: Arc<Peer>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let address = peer.address;
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(server.0.settings().header_timeout)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service!(server, peer));
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(peer = %address, %error, "a connection ended early");
    }
}

async fn http_2<S>(server: (&Server, Entrance), watcher: Watcher, stream: S, peer: Arc<Peer>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + 'static,
{
    let address = peer.address;
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        .max_concurrent_streams(100)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
        .serve_connection(TokioIo::new(stream), service!(server, peer));
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(peer = %address, %error, "a connection ended early");
    }
}
