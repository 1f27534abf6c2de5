//! A panic of a handler, over real connections. No endpoint of a real server can be made to panic.

use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn;
use podium_testkit::{Engine, TestApp, block_on};
use serde_json::Value;
use tokio::sync::oneshot;

use super::*;

async fn server() -> Server {
    let app = TestApp::start(Engine::Sqlite).await;
    Server::new(app.app.clone(), app.plane.clone(), Settings::default()).panicking("GetSelfUser")
}

fn get(path: &str) -> Request<Empty<Bytes>> {
    Request::get(path).header("host", "podium").header("x-request-id", "mine").body(Empty::new()).unwrap()
}

/// Requests an endpoint that panics, then others on the same connection.
async fn panics_and_goes_on(
    server: &Server,
    mut ask: impl AsyncFnMut(Request<Empty<Bytes>>) -> Response<Incoming>,
) {
    let panicked = ask(get("/v1/users/self")).await;
    assert_eq!(panicked.status(), StatusCode::INTERNAL_SERVER_ERROR);
    assert_eq!(panicked.headers()["x-request-id"], "mine");
    let body = panicked.into_body().collect().await.unwrap().to_bytes();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!((&body["requestId"], &body["statusCode"]), (&"mine".into(), &500.into()));
    assert!(!body.to_string().contains("inside"), "{body}");
    assert_eq!(server.connections().count(), 1);
    let numbers = ask(get("/metrics")).await;
    assert_eq!(numbers.status(), StatusCode::OK);
    let numbers = numbers.into_body().collect().await.unwrap().to_bytes();
    let numbers = String::from_utf8_lossy(&numbers);
    for line in [
        "podium_panics_total 1",
        "podium_open_connections 1",
        "podium_requests_total{operation=\"GetSelfUser\",status=\"5xx\"} 1",
    ] {
        assert!(numbers.lines().any(|shown| shown == line), "{line} is missing in\n{numbers}");
    }
}

#[test]
fn a_panic_is_a_500_and_the_connection_goes_on_http_1() {
    block_on(async {
        let server = server().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap());
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(serve(server.clone(), listener, async {
            let _ = stopped.await;
        }));
        let (mut sender, client) = conn::http1::handshake(TokioIo::new(stream.await.unwrap())).await.unwrap();
        let client = tokio::spawn(client);
        panics_and_goes_on(&server, async |request| {
            sender.ready().await.unwrap();
            sender.send_request(request).await.unwrap()
        })
        .await;
        drop(sender);
        client.await.unwrap().unwrap();
        // Every connection has to give back its room first.
        stop.send(()).unwrap();
        assert_eq!(ended.await.unwrap().unwrap(), Serving::Drained);
        assert_eq!(server.connections().count(), 0);
    });
}

#[test]
fn a_panic_is_a_500_and_the_connection_goes_on_http_2() {
    block_on(async {
        let server = server().await;
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (accepted, peer) = listener.accept().await.unwrap();
        let admitted = server.connections().admit(peer.ip()).unwrap();
        admitted.open();
        let serving = {
            let server = server.clone();
            tokio::spawn(async move {
                let connection = Arc::clone(admitted.connection());
                let peer = Arc::new(Peer::new(peer, None, Some(Arc::clone(&connection))));
                http_2((&server, ListenerKind::Main), accepted, peer, &connection).await
            })
        };
        let handshake = conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
        let (mut sender, client) = handshake.await.unwrap();
        let client = tokio::spawn(client);
        panics_and_goes_on(&server, async |request| {
            let (mut parts, body) = request.into_parts();
            parts.uri = format!("http://podium{}", parts.uri).parse().unwrap();
            parts.headers.remove("host");
            sender.ready().await.unwrap();
            sender.send_request(Request::from_parts(parts, body)).await.unwrap()
        })
        .await;
        drop(sender);
        client.await.unwrap().unwrap();
        serving.await.unwrap().unwrap();
        assert_eq!(server.connections().count(), 0);
    });
}
