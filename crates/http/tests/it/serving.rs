//! Connections: slow ones are cut off, too many wait, and a stop does not wait forever.

mod limits;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use podium_http::{Serving, Settings};
use podium_testkit::{Engine, TestApp, block_on};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// So long that only a hang reaches it.
const LONG: Duration = Duration::from_secs(60);

/// A server on a real socket, with the ways to stop it.
pub(crate) struct Served {
    pub(crate) app: TestApp,
    pub(crate) address: SocketAddr,
    stop: oneshot::Sender<()>,
    ended: JoinHandle<Result<Serving, podium_http::ServeError>>,
}

pub(crate) async fn serve(change: impl FnOnce(&mut Settings)) -> Served {
    let app = TestApp::start_with(Engine::Sqlite, |_, settings| change(settings)).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let ended = tokio::spawn(podium_http::serve(app.server.clone(), listener, async {
        let _ = stopped.await;
    }));
    Served { app, address, stop, ended }
}

/// Sends some bytes, and reads until the server closes or has said enough.
pub(crate) async fn say(mut stream: TcpStream, bytes: Vec<u8>, enough: &'static str) -> (TcpStream, String) {
    let talk = move || {
        stream.set_read_timeout(Some(LONG)).unwrap();
        stream.write_all(&bytes).unwrap();
        let (mut said, mut byte) = (Vec::new(), [0]);
        while (enough.is_empty() || !said.ends_with(enough.as_bytes()))
            && stream.read(&mut byte).unwrap_or(0) > 0
        {
            said.push(byte[0]);
        }
        (stream, String::from_utf8(said).unwrap())
    };
    tokio::task::spawn_blocking(talk).await.unwrap()
}

pub(crate) fn connect(served: &Served) -> TcpStream {
    TcpStream::connect(served.address).unwrap()
}

/// A request that runs once it is told to go on, and ends with `{"name":"Data"}`.
pub(crate) fn half_a_request(served: &Served) -> Vec<u8> {
    let (path, token) = (served.app.path("/workspaces"), &served.app.owner.token);
    format!(
        "POST {path} HTTP/1.1\r\nHost: podium\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
         Content-Length: 15\r\nExpect: 100-continue\r\n\r\n"
    )
    .into_bytes()
}

#[test]
fn one_who_is_slow_to_ask_is_cut_off() {
    block_on(async {
        let served = serve(|settings| settings.header_timeout = Duration::from_millis(50)).await;
        let (_, said) = say(connect(&served), b"GET /healthz HTTP/1.1\r\nHost: po".to_vec(), "").await;
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 408"), "{said}");
        let whole = b"GET /healthz HTTP/1.1\r\nHost: podium\r\nConnection: close\r\n\r\n".to_vec();
        assert!(say(connect(&served), whole, "").await.1.starts_with("HTTP/1.1 200"));
    });
}

#[test]
fn a_body_that_does_not_come_is_not_waited_for() {
    block_on(async {
        let served = serve(|settings| settings.body_timeout = Duration::from_millis(50)).await;
        let (app, token) = (&served.app, &served.app.owner.token);
        let head = format!(
            "POST {} HTTP/1.1\r\nHost: podium\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Content-Length: 100\r\nConnection: close\r\n\r\n{{",
            app.path("/workspaces")
        );
        let (_, said) = say(connect(&served), head.into_bytes(), "").await;
        assert!(said.starts_with("HTTP/1.1 408"), "{said}");
        assert!(said.contains("application/json") && said.contains("did not arrive"), "{said}");
    });
}

#[test]
fn more_connections_than_allowed_wait_while_none_is_idle() {
    block_on(async {
        let served = serve(|settings| settings.connections = 1).await;
        let (running, said) = say(connect(&served), half_a_request(&served), "\r\n\r\n").await;
        assert!(said.starts_with("HTTP/1.1 100"), "{said}");
        let ask = b"GET /healthz HTTP/1.1\r\nHost: podium\r\n\r\n".to_vec();
        let second = tokio::spawn(say(connect(&served), ask, "\"ok\"}"));
        // A request runs on the first one, so the second has no answer until that has ended.
        assert!(!second.is_finished());
        let (_first, said) = say(running, b"{\"name\":\"Data\"}".to_vec(), "}").await;
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        assert!(second.await.unwrap().1.starts_with("HTTP/1.1 200"));
    });
}

#[test]
fn a_stop_waits_for_running_requests_and_not_for_ever() {
    block_on(async {
        for (drain, expected) in [(LONG, Serving::Drained), (Duration::from_millis(50), Serving::CutOff)] {
            let served = serve(|settings| settings.drain = drain).await;
            let (running, said) = say(connect(&served), half_a_request(&served), "\r\n\r\n").await;
            assert!(said.starts_with("HTTP/1.1 100"), "{said}");
            served.stop.send(()).unwrap();
            if expected == Serving::Drained {
                let (_, said) = say(running, b"{\"name\":\"Data\"}".to_vec(), "").await;
                assert!(said.starts_with("HTTP/1.1 200"), "{said}");
            }
            assert_eq!(served.ended.await.unwrap().unwrap(), expected);
        }
    });
}

#[test]
fn a_stream_of_logs_ends_with_the_server() {
    block_on(async {
        let served = serve(|settings| settings.drain = LONG).await;
        let app = &served.app;
        let id = app.deployment(app.workspace("Data").await).await;
        let head = format!(
            "GET {} HTTP/1.1\r\nHost: podium\r\nAuthorization: Bearer {}\r\n\r\n",
            app.path(&format!("/deployments/{id}/logs/follow?sources=worker")),
            app.owner.token
        );
        let (stream, said) = say(connect(&served), head.into_bytes(), "\r\n\r\n").await;
        assert!(said.starts_with("HTTP/1.1 200") && said.contains("text/event-stream"), "{said}");
        served.stop.send(()).unwrap();
        let (_, rest) = say(stream, Vec::new(), "").await;
        assert!(rest.ends_with("0\r\n\r\n"), "it ends as a whole: {rest}");
        assert_eq!(served.ended.await.unwrap().unwrap(), Serving::Drained);
    });
}
