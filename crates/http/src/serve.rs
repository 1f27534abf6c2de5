//! The accept loop: a limit on connections, a timeout for request heads, and a graceful shutdown.

#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulConnection;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_rustls::TlsAcceptor;

use crate::checks;
use crate::compress::Accepted;
use crate::connections::{CloseReason, Connection, Connections, PendingRequest, WatchedStream};
use crate::front_door::ListenerKind;
use crate::outgoing::{Outgoing, RequestInfo, send};
use crate::peer::Peer;
use crate::ports::{self, AbortOnDrop, Arrived};
use crate::server::Server;
use crate::settings::Settings;
use crate::tls::{self, Certificate, TlsError, blocking};

const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const MAX_HEAD: usize = 64 * 1024;
/// What the kernel may hold of what a client has not read: enough for a fast line across a continent, and no more.
const SEND_BUFFER: usize = 128 * 1024;
/// How long to wait when no connection can be accepted.
pub(crate) const PAUSE: Duration = Duration::from_millis(50);
/// How long a connection may take to close once asked to.
const FAREWELL: Duration = Duration::from_secs(5);

/// Bounds of HTTP/2. Floods of pings, of settings and of continuations are held off by the library itself.
const STREAMS: u32 = 100;
const SEND_BUFFER_OF_STREAM: usize = 64 * 1024;
const WINDOW_OF_STREAM: u32 = 256 * 1024;
const WINDOW_OF_CONNECTION: u32 = 1024 * 1024;
const RESETS_UNSEEN: usize = 20;
const RESETS_BY_ERRORS: usize = 100;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serving {
    /// Every request was completed.
    Drained,
    /// Some requests were still running at the deadline, and were cut off.
    CutOff,
}

/// Why the server cannot start.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// Whether there can be a server with these settings: a certificate and a key that cannot be read are found here, schemas that
/// requests cannot be checked against, and tables of rules that are none.
pub fn check(settings: &Settings) -> Result<(), ServeError> {
    checks::make_all();
    podium_domain::roles::load();
    podium_domain::airflow::load();
    Ok(settings.tls.as_ref().map_or(Ok(()), |tls| Certificate::load(tls).map(drop))?)
}

/// Bounds what the kernel holds for each connection that a listener accepts.
pub(crate) fn bound_send_buffer(listener: &TcpListener) {
    if let Err(error) = rustix::net::sockopt::set_socket_send_buffer_size(listener, SEND_BUFFER) {
        tracing::warn!(%error, "cannot limit the send buffers of connections");
    }
}

/// Serves until `stop` resolves, then lets running requests finish within the deadline.
pub fn serve<'s>(
    server: Server,
    listener: TcpListener,
    stop: impl Future<Output = ()> + Send + 's,
) -> Erased<'s, Result<Serving, ServeError>> {
    erased(server, listener, Box::pin(stop))
}

/// A future of an erased type.
type Erased<'s, T> = Pin<Box<dyn Future<Output = T> + Send + 's>>;

/// Not generic and of an erased type, so that serving is compiled in this crate and not again in every crate that serves.
fn erased(
    server: Server,
    listener: TcpListener,
    stop: Erased<'_, ()>,
) -> Erased<'_, Result<Serving, ServeError>> {
    Box::pin(serve_until(server, listener, stop))
}

async fn serve_until(
    server: Server,
    listener: TcpListener,
    mut stop: Erased<'_, ()>,
) -> Result<Serving, ServeError> {
    let certificate = match server.settings().tls.clone() {
        Some(files) => Some(blocking(move || Certificate::load(&files)).await?),
        None => None,
    };
    // Registered before the server reports that it is ready: an unhandled SIGHUP ends the process.
    let asked = signal(SignalKind::hangup())?;
    let _following = AbortOnDrop(tokio::spawn(tls::follow(asked, certificate.clone())));
    let most = u32::try_from(server.settings().connections).unwrap_or(u32::MAX).max(1);
    let permits = Arc::new(Semaphore::new(most as usize));
    let connections = Arc::clone(server.connections());
    bound_send_buffer(&listener);
    let address = listener.local_addr()?.ip();
    let address = server.app().environments_address(address);
    let (ports, mut arrived) = ports::listen(server.app().clone(), address);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = accept(&listener, &mut arrived) => accepted,
        };
        let (listener, stream, peer) = match accepted {
            Ok(connection) => connection,
            Err(error) => {
                // Out of file descriptors, most likely: idle connections give some back.
                tracing::warn!(%error, "could not accept a connection");
                let _ = tokio::time::timeout(PAUSE, connections.make_room()).await;
                continue;
            }
        };
        let Some(admitted) = connections.admit(peer.ip()) else {
            tracing::debug!(%peer, "closed a connection: its address has too many");
            continue;
        };
        let permit = tokio::select! {
            () = &mut stop => break,
            permit = room(&permits, &connections) => permit,
        };
        admitted.open();
        let tls = certificate.as_ref().map(Certificate::acceptor);
        let server = server.clone();
        tokio::spawn(async move {
            let connection = Arc::clone(admitted.connection());
            tokio::select! {
                () = talk((&server, listener), tls, stream, peer, &connection) => {}
                () = connection.close_requested() => {}
            }
            drop((admitted, permit));
        });
    }
    drop((listener, ports));
    server.stop();
    tokio::select! {
        _ = permits.acquire_many(most) => Ok(Serving::Drained),
        () = tokio::time::sleep(server.settings().drain) => Ok(Serving::CutOff),
    }
}

async fn accept(
    listener: &TcpListener,
    arrived: &mut mpsc::Receiver<Arrived>,
) -> std::io::Result<(ListenerKind, TcpStream, SocketAddr)> {
    tokio::select! {
        accepted = listener.accept() => accepted.map(|(stream, peer)| (ListenerKind::Main, stream, peer)),
        Some(Arrived { port, stream, peer }) = arrived.recv() => Ok((ListenerKind::Port(port), stream, peer)),
    }
}

/// Makes room for a connection: closes idle ones, or waits until one is idle.
async fn room(permits: &Arc<Semaphore>, connections: &Connections) -> Option<OwnedSemaphorePermit> {
    if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
        return Some(permit);
    }
    tokio::select! {
        permit = Arc::clone(permits).acquire_owned() => permit.ok(),
        () = connections.make_room() => None,
    }
}

async fn talk(
    server: (&Server, ListenerKind),
    tls: Option<TlsAcceptor>,
    stream: TcpStream,
    peer: SocketAddr,
    connection: &Arc<Connection>,
) {
    // Without it every small response may wait for the client's acknowledgement.
    let _ = stream.set_nodelay(true);
    let peer = Arc::new(Peer::new(peer, stream.local_addr().ok(), Some(Arc::clone(connection))));
    let stream = WatchedStream::new(stream, Arc::clone(connection), server.0.settings().write_timeout);
    let address = peer.address;
    let ended = match tls {
        None => http_1(server, stream, peer, connection).await,
        Some(tls) => match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
            Ok(Ok(stream)) if stream.get_ref().1.alpn_protocol() == Some(b"h2") => {
                http_2(server, stream, peer, connection).await
            }
            Ok(Ok(stream)) => http_1(server, stream, peer, connection).await,
            _ => return tracing::debug!(peer = %address, "a TLS handshake failed"),
        },
    };
    if let Err(error) = ended {
        tracing::debug!(peer = %address, %error, "a connection ended early");
    }
}

/// Handles a request; the response is compressed for clients that accept it.
async fn answer(
    server: Server,
    listener: ListenerKind,
    peer: Arc<Peer>,
    connection: Arc<Connection>,
    (request, begun): (Request<Incoming>, PendingRequest),
    is_multiplexed: bool,
) -> Result<Response<Outgoing>, Infallible> {
    let accepted = Accepted::of(request.headers());
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    let response = server.answer(listener, request, peer).await;
    let response = server.finish(response, accepted).await;
    Ok(send(&connection, begun, response, RequestInfo { is_read, is_multiplexed }))
}

macro_rules! service {
    ($server:expr, $peer:expr, $connection:expr, $is_multiplexed:expr) => {{
        let ((server, listener), peer, connection) = ($server, $peer, Arc::clone($connection));
        let server = server.clone();
        service_fn(move |request: Request<Incoming>| {
            // Immediately: this connection must not count as idle before the response is sent.
            let begun = PendingRequest::new(connection.begin());
            answer(
                server.clone(),
                listener,
                Arc::clone(&peer),
                Arc::clone(&connection),
                (request, begun),
                $is_multiplexed,
            )
        })
    }};
}

async fn http_1<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    server: (&Server, ListenerKind),
    stream: S,
    peer: Arc<Peer>,
    connection: &Arc<Connection>,
) -> hyper::Result<()> {
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(server.0.settings().header_timeout)
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service!(server, peer, connection, false));
    drive(served, server.0, std::future::pending()).await
}

async fn http_2<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    server: (&Server, ListenerKind),
    stream: S,
    peer: Arc<Peer>,
    connection: &Arc<Connection>,
) -> hyper::Result<()> {
    let settings = server.0.settings();
    let served = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(Duration::from_secs(30))
        // A ping waits behind pending writes, and a slow reader gets the usual time for those.
        .keep_alive_timeout(settings.write_timeout.max(Duration::from_secs(60)))
        .max_concurrent_streams(STREAMS)
        .max_header_list_size(u32::try_from(MAX_HEAD).unwrap_or(u32::MAX))
        .max_send_buf_size(SEND_BUFFER_OF_STREAM)
        .initial_stream_window_size(WINDOW_OF_STREAM)
        .initial_connection_window_size(WINDOW_OF_CONNECTION)
        .max_pending_accept_reset_streams(RESETS_UNSEEN)
        .max_local_error_reset_streams(RESETS_BY_ERRORS)
        .serve_connection(TokioIo::new(stream), service!(server, peer, connection, true));
    drive(served, server.0, connection.close_reason(settings.write_timeout, settings.header_timeout)).await
}

/// Serves a connection until it ends, the server stops or it has overstayed; then requests that run may finish, except
/// whose responses are not read.
pub(crate) async fn drive<C: GracefulConnection<Error = hyper::Error>>(
    served: C,
    server: &Server,
    close_reason: impl Future<Output = CloseReason>,
) -> hyper::Result<()> {
    let (mut served, mut stopping) = (std::pin::pin!(served), server.stopping());
    let patience = tokio::select! {
        ended = &mut served => return ended,
        _ = stopping.wait_for(|stops| *stops) => Duration::MAX,
        why = close_reason => match why {
            CloseReason::RequestBody | CloseReason::Abandoned => return Ok(()),
            CloseReason::Idle => FAREWELL,
        },
    };
    served.as_mut().graceful_shutdown();
    tokio::time::timeout(patience, served).await.unwrap_or(Ok(()))
}
