//! Panics over real connections. No endpoint of a real server can be made to panic.

#[path = "../../tests/it/captured_log.rs"]
mod captured_log;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn;
use podium_db::Tx;
use podium_store::System;
use podium_testkit::{Engine, TestApp, block_on};
use serde_json::Value;
use tokio::sync::{Mutex, Notify, oneshot};
use tokio::task::JoinHandle;

use super::*;
use crate::bind::Handler;
use crate::body;

/// Panics are counted per process, so one test runs at a time.
static COUNTING: Mutex<()> = Mutex::const_new(());
const INSIDE: &str = "the inside of this server";

fn panics_at_once(_: System) -> Handler {
    Handler::Fake(Box::new(|_| Box::pin(async { panic!("{INSIDE}") })))
}

fn panics_in_a_unit(system: System) -> Handler {
    Handler::Fake(Box::new(move |incoming| {
        Box::pin(async move {
            let unit = |_: &Tx| -> podium_app::Result<()> { panic!("{INSIDE}") };
            incoming.app.db(&system).write(None, unit).await?;
            Ok(Response::new(body::whole("it did not panic")))
        })
    }))
}

/// Sends a line, and panics once the client has received it.
fn panics_while_streaming(received: &Arc<Notify>) -> Handler {
    let received = Arc::clone(received);
    Handler::Fake(Box::new(move |_| {
        let received = Arc::clone(&received);
        let line = stream::iter([Ok(Bytes::from_static(b"line\n"))]);
        let chunks = line.chain(stream::once(async move {
            received.notified().await;
            panic!("{INSIDE}")
        }));
        Box::pin(async { Ok(Response::new(body::stream(chunks))) })
    }))
}

/// A connection to a server, and both of its ends.
struct Talk {
    sender: Sender,
    client: JoinHandle<hyper::Result<()>>,
    served: JoinHandle<()>,
    stop: oneshot::Sender<()>,
}

enum Sender {
    One(conn::http1::SendRequest<Empty<Bytes>>),
    Two(conn::http2::SendRequest<Empty<Bytes>>),
}

impl Talk {
    async fn over_http_1(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let serving = serve(server.clone(), listener, async {
            let _ = stopped.await;
        });
        let served = tokio::spawn(async { assert_eq!(serving.await.unwrap(), Serving::Drained) });
        let (sender, client) = conn::http1::handshake(TokioIo::new(stream.await.unwrap())).await.unwrap();
        Self { sender: Sender::One(sender), client: tokio::spawn(client), served, stop }
    }

    /// Without TLS, which HTTP/2 requires outside tests.
    async fn over_http_2(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, peer) = listener.accept().await.unwrap();
        let admitted = server.connections().admit(peer.ip()).unwrap();
        admitted.open();
        let (stop, _) = oneshot::channel();
        let server = server.clone();
        let served = tokio::spawn(async move {
            let connection = Arc::clone(admitted.connection());
            let peer = Arc::new(Peer::new(peer, None, Some(Arc::clone(&connection))));
            http_2((&server, ListenerKind::Main), accepted, peer, &connection).await.unwrap();
        });
        let handshake = conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (sender, client) = handshake.await.unwrap();
        Self { sender: Sender::Two(sender), client: tokio::spawn(client), served, stop }
    }

    async fn ask(&mut self, path: &str, request_id: &str) -> Response<Incoming> {
        let request = |uri: String| Request::get(uri).header("x-request-id", request_id);
        match &mut self.sender {
            Sender::One(sender) => {
                sender.ready().await.unwrap();
                let request = request(path.to_owned()).header("host", "podium");
                sender.send_request(request.body(Empty::new()).unwrap()).await.unwrap()
            }
            Sender::Two(sender) => {
                sender.ready().await.unwrap();
                let request = request(format!("http://podium{path}"));
                sender.send_request(request.body(Empty::new()).unwrap()).await.unwrap()
            }
        }
    }

    /// Ends both sides: every connection has to be released.
    async fn end(self, server: &Server) {
        drop(self.sender);
        let _ = self.client.await.unwrap();
        let _ = self.stop.send(());
        self.served.await.unwrap();
        assert_eq!(server.connections().count(), 0);
    }
}

async fn server(handler: impl FnOnce(System) -> Handler) -> Server {
    captured_log::capture_log();
    let app = TestApp::start(Engine::Sqlite).await;
    let server = Server::new(app.app.clone(), app.planes(), Settings::default());
    server.with_handler("GetSelfUser", handler(app.system))
}

/// The number of panics in the metrics.
fn panics_in(numbers: &[u8]) -> u64 {
    let numbers = String::from_utf8_lossy(numbers);
    let count = numbers.lines().find_map(|line| line.strip_prefix("podium_panics_total "));
    count.unwrap_or_else(|| panic!("no count of panics in\n{numbers}")).parse().unwrap()
}

async fn panics_of(server: &Server) -> u64 {
    let request = Request::get("/metrics").body(Empty::<Bytes>::new()).unwrap();
    let numbers = server.call(request, ([127, 0, 0, 1], 1).into()).await;
    panics_in(&numbers.into_body().collect().await.unwrap().to_bytes())
}

/// Whether a line of the log contains all of these.
fn is_logged(parts: &[&str]) -> bool {
    let log = String::from_utf8_lossy(&captured_log::logged()).into_owned();
    log.lines().any(|line| parts.iter().all(|part| line.contains(part)))
}

/// Requests an endpoint that panics, then others on the same connection.
async fn panics_and_goes_on(server: &Server, mut talk: Talk, request_id: &str) {
    let before = panics_of(server).await;
    let panicked = talk.ask("/v1/users/self", request_id).await;
    assert_eq!(panicked.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(panicked.headers()["x-request-id"], request_id);
    let body = panicked.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["requestId"], &body["statusCode"]), (&request_id.into(), &500.into()));
    assert!(!body.to_string().contains("inside"), "{body}");
    assert!(is_logged(&["ERROR", request_id, INSIDE]), "{request_id} is not logged");
    assert_eq!(server.connections().count(), 1);
    let numbers = talk.ask("/metrics", request_id).await;
    assert_eq!(numbers.status(), StatusCode::OK);
    let numbers = numbers.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(panics_in(&numbers), before + 1, "of {request_id}");
    let numbers = String::from_utf8_lossy(&numbers);
    for line in
        ["podium_open_connections 1", "podium_requests_total{operation=\"GetSelfUser\",status=\"5xx\"} 1"]
    {
        assert!(numbers.lines().any(|shown| shown == line), "{line} is missing in\n{numbers}");
    }
    talk.end(server).await;
}

/// Requests a response that panics after its first lines.
async fn panics_and_aborts(server: &Server, talk: &mut Talk, received: &Notify, request_id: &str) {
    let before = panics_of(server).await;
    let broken = talk.ask("/v1/users/self", request_id).await;
    assert_eq!(broken.status(), StatusCode::OK, "the status was sent before the panic");
    received.notify_one();
    assert!(broken.into_body().collect().await.is_err(), "the client can tell that it is incomplete");
    assert_eq!(panics_of(server).await, before + 1);
    assert!(is_logged(&["ERROR", request_id, INSIDE]), "{request_id} is not logged");
}

#[test]
fn a_panic_is_a_500_and_the_connection_goes_on_http_1() {
    block_on(async {
        let _counting = COUNTING.lock().await;
        for (handler, id) in
            [(panics_at_once as fn(System) -> Handler, "at-once-1"), (panics_in_a_unit, "in-a-unit-1")]
        {
            let server = server(handler).await;
            panics_and_goes_on(&server, Talk::over_http_1(&server).await, id).await;
        }
    });
}

#[test]
fn a_panic_is_a_500_and_the_connection_goes_on_http_2() {
    block_on(async {
        let _counting = COUNTING.lock().await;
        for (handler, id) in
            [(panics_at_once as fn(System) -> Handler, "at-once-2"), (panics_in_a_unit, "in-a-unit-2")]
        {
            let server = server(handler).await;
            panics_and_goes_on(&server, Talk::over_http_2(&server).await, id).await;
        }
    });
}

#[test]
fn a_panic_in_a_streamed_response_aborts_it_and_is_counted_http_1() {
    block_on(async {
        let _counting = COUNTING.lock().await;
        let received = Arc::default();
        let server = server(|_| panics_while_streaming(&received)).await;
        let mut talk = Talk::over_http_1(&server).await;
        panics_and_aborts(&server, &mut talk, &received, "while-sent-1").await;
        talk.end(&server).await;
    });
}

#[test]
fn a_panic_in_a_streamed_response_aborts_it_and_is_counted_http_2() {
    block_on(async {
        let _counting = COUNTING.lock().await;
        let received = Arc::default();
        let server = server(|_| panics_while_streaming(&received)).await;
        let mut talk = Talk::over_http_2(&server).await;
        panics_and_aborts(&server, &mut talk, &received, "while-sent-2").await;
        // Other streams of the connection are not affected.
        assert_eq!(talk.ask("/healthz", "others").await.status(), StatusCode::OK);
        talk.end(&server).await;
    });
}
