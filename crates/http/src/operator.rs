//! The server's own socket on its machine. A request over it counts as the operator's if it carries the key that the
//! server keeps next to the socket, in a file of the same owner; all others are refused.
//!
//! That the socket can be opened proves that the kernel lets the process, by its user. That the key can be read proves that
//! nothing else forbids it to read the data directory: a confined process of an environment may have the server's user.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, CONNECTION, COOKIE};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use podium_app::Error;
use podium_app::operator::Operator;
use podium_app::secrets::sha256;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use crate::compress::Accepted;
use crate::connections::{Connection, PendingRequest};
use crate::errors::Failure;
use crate::front_door::ListenerKind;
use crate::outgoing::{Outgoing, RequestInfo, send};
use crate::peer::Peer;
use crate::serve::{MAX_HEAD, PAUSE, drive};
use crate::server::Server;

/// How many connections are open at once; others wait.
const MOST_CONNECTIONS: u32 = 64;
/// How long the headers of a request may take: callers are on this machine.
const HEADERS: Duration = Duration::from_secs(5);
/// What no caller says about itself here.
const LEFT_OUT: [&str; 3] = ["x-forwarded-for", "x-forwarded-proto", "forwarded"];
/// The address in logs and audit records.
const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Who may use the socket.
#[derive(Clone)]
pub struct OperatorGate {
    operator: Operator,
    key: Arc<[u8; 32]>,
    /// The user of the server; root may as well.
    user: u32,
}

impl OperatorGate {
    /// A gate for those who know a key, and are the given user or root.
    pub fn new(operator: Operator, key: &str, user: u32) -> Self {
        Self { operator, key: Arc::new(sha256(key.as_bytes())), user }
    }

    fn admits(&self, stream: &UnixStream) -> bool {
        stream.peer_cred().is_ok_and(|peer| peer.uid() == self.user || peer.uid() == 0)
    }

    /// Puts the operator's token in the place of the key.
    async fn enter(&self, headers: &mut HeaderMap) -> Result<(), Failure> {
        let sent = headers.remove(AUTHORIZATION);
        let sent = sent
            .as_ref()
            .and_then(|value| value.to_str().ok())
            .and_then(|text| text.strip_prefix("Operator "));
        // Hashes are compared, so that the time this takes says nothing about the key.
        if sent.is_none_or(|key| sha256(key.as_bytes()) != *self.key) {
            let message = "This socket takes requests of the server's operator only: send the key next to it as `Authorization: Operator <key>`.";
            return Err(Failure::new(StatusCode::UNAUTHORIZED, message));
        }
        headers.remove(COOKIE);
        for name in LEFT_OUT {
            headers.remove(name);
        }
        let Some(token) = self.operator.token().await? else {
            let message =
                "There is no active owner who holds the role directly, for whom the operator could act.";
            return Err(Failure::new(StatusCode::FORBIDDEN, message));
        };
        let mut value = HeaderValue::from_str(&format!("Bearer {token}"))
            .map_err(|_| Error::Internal("a token is not a header".into()))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
        Ok(())
    }
}

/// Serves the operator until the server stops.
pub async fn serve_operator(server: Server, listener: UnixListener, gate: OperatorGate) {
    let permits = Arc::new(Semaphore::new(MOST_CONNECTIONS as usize));
    let mut stopping = server.stopping();
    loop {
        let accepted = tokio::select! {
            _ = stopping.wait_for(|stops| *stops) => break,
            accepted = listener.accept() => accepted,
        };
        let stream = match accepted {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "could not accept a connection of the operator");
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        if !gate.admits(&stream) {
            tracing::warn!("closed a connection to the operator's socket: it is another user's");
            continue;
        }
        let permit = tokio::select! {
            _ = stopping.wait_for(|stops| *stops) => break,
            permit = Arc::clone(&permits).acquire_owned() => permit,
        };
        let Ok(permit) = permit else { return };
        let Some(admitted) = server.connections().admit(ADDRESS.ip()) else { continue };
        admitted.open();
        let (server, gate) = (server.clone(), gate.clone());
        tokio::spawn(async move {
            let connection = Arc::clone(admitted.connection());
            tokio::select! {
                () = talk(&server, gate, stream, &connection) => {}
                () = connection.close_requested() => {}
            }
            drop((admitted, permit));
        });
    }
    // Requests under way are finished.
    tokio::select! {
        _ = permits.acquire_many(MOST_CONNECTIONS) => {}
        () = tokio::time::sleep(server.settings().drain) => {}
    }
}

async fn talk(server: &Server, gate: OperatorGate, stream: UnixStream, connection: &Arc<Connection>) {
    let peer = Arc::new(Peer::new(ADDRESS, None, Some(Arc::clone(connection))));
    let (answering, watched) = (server.clone(), Arc::clone(connection));
    let service = service_fn(move |request: Request<Incoming>| {
        let begun = PendingRequest::new(watched.begin());
        let (server, gate) = (answering.clone(), gate.clone());
        answer(server, gate, Arc::clone(&peer), Arc::clone(&watched), (request, begun))
    });
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(server.settings().header_timeout.min(HEADERS))
        .max_buf_size(MAX_HEAD)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = drive(served, server, std::future::pending()).await {
        tracing::debug!(%error, "a connection of the operator ended early");
    }
}

async fn answer(
    server: Server,
    gate: OperatorGate,
    peer: Arc<Peer>,
    connection: Arc<Connection>,
    (mut request, begun): (Request<Incoming>, PendingRequest),
) -> Result<Response<Outgoing>, Infallible> {
    let accepted = Accepted::of(request.headers());
    let is_read = request.method() == Method::GET || request.method() == Method::HEAD;
    let response = match gate.enter(request.headers_mut()).await {
        Ok(()) => server.answer(ListenerKind::Main, request, peer).await,
        Err(failure) => {
            // Whoever does not know the key must not keep a place.
            let mut refusal = failure.into_response("");
            refusal.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            refusal
        }
    };
    let response = server.finish(response, accepted).await;
    Ok(send(&connection, begun, response, RequestInfo { is_read, is_multiplexed: false }))
}
