//! Clients that take and do not give back: each gets so much, and others are served.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use podium_http::{Tls, Waiting};
use podium_testkit::block_on;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::task::JoinHandle;

use super::{LONG, Served, connect, half_a_request, say, serve};

const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: podium\r\n\r\n";
const SHORT: Duration = Duration::from_millis(100);

async fn is_well(served: &Served) -> TcpStream {
    let (stream, said) = say(connect(served), HEALTH.to_vec(), "\"ok\"}").await;
    assert!(said.starts_with("HTTP/1.1 200"), "{said}");
    stream
}

/// A connection from another address of this machine.
async fn from(address: &str, served: &Served) -> TcpStream {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind(format!("{address}:0").parse().unwrap()).unwrap();
    let stream = socket.connect(served.address).await.unwrap().into_std().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream
}

/// Waits until a number of the server's own is at least so much.
async fn counted(served: &Served, name: &str, least: usize) {
    let ask = || async {
        let page = served.app.call("GET", "/metrics").send().await.text();
        let line =
            page.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_else(|| panic!("{name}: {page}"));
        line.trim().parse::<usize>().unwrap()
    };
    while ask().await < least {
        tokio::task::yield_now().await;
    }
}

#[test]
fn idle_connections_are_closed_for_new_ones_the_oldest_first() {
    block_on(async {
        let served = serve(|settings| settings.connections = 4).await;
        let mut idle = Vec::new();
        for _ in 0..4 {
            idle.push(say(connect(&served), HEALTH.to_vec(), "\"ok\"}").await.0);
        }
        // The third is asked something again, so the fourth has been idle for longer.
        let third = idle.remove(2);
        idle.push(say(third, HEALTH.to_vec(), "\"ok\"}").await.0);
        let mut newer = Vec::new();
        for gone in 1..=3 {
            newer.push(is_well(&served).await);
            counted(&served, "podium_connections_closed_total{reason=\"shed\"}", gone).await;
            let (_, rest) = say(idle.remove(0), Vec::new(), "").await;
            assert_eq!(rest, "", "it was closed");
        }
        let (_, said) = say(idle.remove(0), HEALTH.to_vec(), "\"ok\"}").await;
        assert!(said.starts_with("HTTP/1.1 200"), "the one that was used last is still there: {said}");
    });
}

#[test]
fn one_address_cannot_have_all_connections() {
    block_on(async {
        let served =
            serve(|settings| (settings.connections, settings.connections_per_address) = (8, 1)).await;
        let mut running = Vec::new();
        for _ in 0..7 {
            let (stream, said) = say(connect(&served), half_a_request(&served), "\r\n\r\n").await;
            assert!(said.starts_with("HTTP/1.1 100"), "{said}");
            running.push(stream);
        }
        let mut refused = connect(&served);
        refused.set_read_timeout(Some(LONG)).unwrap();
        let _ = refused.write_all(HEALTH);
        assert_eq!(refused.read(&mut [0; 16]).unwrap_or(0), 0, "most is for loopback, and some for others");
        let other = from("127.0.0.2", &served).await;
        let (_, said) = say(other, HEALTH.to_vec(), "\"ok\"}").await;
        assert!(said.starts_with("HTTP/1.1 200"), "{said}");
        counted(&served, "podium_connections_closed_total{reason=\"address\"}", 1).await;
    });
}

#[test]
fn a_form_that_does_not_come_is_not_waited_for() {
    block_on(async {
        let served = serve(|settings| settings.public_body_timeout = SHORT).await;
        let half = b"POST /sign-in HTTP/1.1\r\nHost: podium\r\nOrigin: https://podium.test\r\nContent-Length: 100\r\n\
                     Connection: close\r\n\r\nuser";
        let (_, said) = say(connect(&served), half.to_vec(), "").await;
        assert!(said.starts_with("HTTP/1.1 408"), "{said}");
    });
}

/// The head of a request to a public endpoint; the response to it says that the server awaits the body.
fn half_a_public_request(path: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nHost: podium\r\nOrigin: https://podium.test\r\nContent-Type: application/json\r\n\
         Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"
    )
    .into_bytes()
}

const PUBLIC: [&str; 3] = ["/v1/auth/sign-in", "/v1/auth/accept-invite", "/sign-in"];

#[test]
fn half_sent_public_bodies_do_not_block_new_connections() {
    block_on(async {
        for path in PUBLIC {
            let served = serve(|settings| {
                (settings.connections, settings.public_body_timeout) = (4, LONG);
            })
            .await;
            let mut held = Vec::new();
            for _ in 0..3 {
                let (stream, said) = say(connect(&served), half_a_public_request(path), "\r\n\r\n").await;
                assert!(said.starts_with("HTTP/1.1 100"), "{said}");
                held.push(stream);
            }
            let (known, said) = say(connect(&served), half_a_request(&served), "\r\n\r\n").await;
            assert!(said.starts_with("HTTP/1.1 100"), "{said}");
            let mut newer = Vec::new();
            for _ in 0..6 {
                newer.push(is_well(&served).await);
            }
            for stream in held {
                assert_eq!(say(stream, Vec::new(), "").await.1, "", "it was closed to make room");
            }
            let (_, said) = say(known, b"{\"name\":\"Data\"}".to_vec(), "}").await;
            assert!(said.starts_with("HTTP/1.1 200"), "an authenticated request is not closed: {said}");
        }
    });
}

#[test]
fn public_bodies_have_a_shorter_deadline_and_a_smaller_limit() {
    block_on(async {
        let served = serve(|settings| settings.public_body_timeout = SHORT).await;
        for path in PUBLIC {
            let (stream, said) = say(connect(&served), half_a_public_request(path), "\r\n\r\n").await;
            assert!(said.starts_with("HTTP/1.1 100"), "{said}");
            assert!(say(stream, b"half".to_vec(), "").await.1.starts_with("HTTP/1.1 408"), "{path}");
        }
        let sign_in = |username: &str, password: &str| {
            let body = format!("{{\"username\":\"{username}\",\"password\":\"{password}\"}}");
            served.app.call("POST", "/v1/auth/sign-in").header("content-type", "application/json").body(body)
        };
        // The longest valid name and password, in their longest JSON encoding.
        let longest = |count| r"\ud83d\ude00".repeat(count);
        sign_in(&longest(254), &longest(1024)).send().await.refused(401);
        let message = sign_in("nobody", &"x".repeat(16 * 1024)).send().await.refused(413);
        assert!(message.contains("at most 16384 bytes"), "{message}");
    });
}

#[test]
fn one_who_does_not_read_is_cut_off() {
    block_on(async {
        let served = serve(|settings| settings.write_timeout = SHORT).await;
        let mut unread = Vec::new();
        for _ in 0..8 {
            let mut stream = connect(&served);
            stream.write_all(b"GET /docs/reference.js HTTP/1.1\r\nHost: podium\r\n\r\n").unwrap();
            unread.push(stream);
        }
        counted(&served, "podium_connections_closed_total{reason=\"unread\"}", 8).await;
        is_well(&served).await;
        let whole = served.app.call("GET", "/docs/reference.js").send().await.bytes.len();
        assert!(unread.into_iter().all(|stream| received(stream) < whole));
    });
}

/// How much comes before a connection ends.
fn received(mut stream: TcpStream) -> usize {
    stream.set_read_timeout(Some(LONG)).unwrap();
    let mut read = Vec::new();
    let _ = stream.read_to_end(&mut read);
    read.len()
}

/// A connection of HTTP/2 on which nothing may be sent but heads.
async fn without_window(
    served: &Served,
) -> (http2::SendRequest<Empty<Bytes>>, JoinHandle<hyper::Result<()>>) {
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(file("certificate.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let stream = tokio::net::TcpStream::connect(served.address).await.unwrap();
    let name = ServerName::from(served.address.ip());
    let stream = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap();
    let mut builder = http2::Builder::new(TokioExecutor::new());
    let (sender, connection) =
        builder.initial_stream_window_size(0).handshake(TokioIo::new(stream)).await.unwrap();
    (sender, tokio::spawn(connection))
}

fn file(name: &str) -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/it/tls").join(name)
}

fn tls() -> Option<Tls> {
    Some(Tls { certificate: file("certificate.pem"), key: file("key.pem") })
}

async fn get(
    sender: &mut http2::SendRequest<Empty<Bytes>>,
    path: &str,
    token: &str,
) -> hyper::Result<Response<Incoming>> {
    let request = Request::get(format!("https://podium{path}"))
        .header("authorization", format!("Bearer {token}"))
        .header("accept-encoding", "zstd, gzip");
    sender.ready().await?;
    sender.send_request(request.body(Empty::new()).unwrap()).await
}

#[test]
fn a_response_without_a_window_closes_its_connection() {
    block_on(async {
        let served = serve(|settings| (settings.tls, settings.write_timeout) = (tls(), SHORT)).await;
        for path in ["/docs/reference.js", "/healthz"] {
            let (mut sender, connection) = without_window(&served).await;
            let answer = get(&mut sender, path, "").await.unwrap();
            assert_eq!(answer.status(), 200);
            assert!(answer.into_body().collect().await.is_err(), "nothing of it can be sent");
            let _ = connection.await.unwrap();
        }
        counted(&served, "podium_connections_closed_total{reason=\"unread\"}", 2).await;
    });
}

#[test]
fn unread_responses_on_one_connection_share_a_limit() {
    block_on(async {
        let few = Waiting { connection: 4096, address: 4096, all: 4096 };
        let served = serve(|settings| (settings.tls, settings.waiting) = (tls(), few)).await;
        let app = &served.app;
        app.workspace("Data").await;
        let (mut sender, _connection) = without_window(&served).await;
        let (mut unread, mut refused) = (Vec::new(), 0);
        while refused == 0 {
            let answer = get(&mut sender, &app.path("/workspaces"), &app.owner.token).await.unwrap();
            refused += usize::from(answer.status() == 503);
            unread.push(answer);
            assert!(unread.len() < 100, "each of them waits");
        }
        assert_eq!(unread.pop().unwrap().headers()["retry-after"], "1");
        counted(&served, "podium_answers_refused_total", 1).await;
        // The script of the reference is the same memory for everybody, and waits at no cost.
        assert_eq!(get(&mut sender, "/docs/reference.js", "").await.unwrap().status(), 200);
        let made = serde_json::json!({ "name": "More" });
        assert_eq!(app.post(&app.owner, &app.path("/workspaces"), made).await.code(), 200);
        drop(unread);
        // What is given up does not wait any more.
        while get(&mut sender, &app.path("/workspaces"), &app.owner.token).await.unwrap().status() == 503 {}
    });
}

#[test]
fn half_sent_bodies_of_one_address_are_bounded_together() {
    block_on(async {
        let few = Waiting { connection: 100_000, address: 100_000, all: 400_000 };
        let served = serve(|settings| {
            (settings.waiting, settings.public_body_timeout) = (few, LONG);
            settings.public_body_limit = settings.body_limit;
        })
        .await;
        let half = |length: usize| {
            let body = "x".repeat(length);
            let head = "POST /v1/auth/sign-in HTTP/1.1\r\nHost: podium\r\nConnection: close\r\nContent-Type: \
                        application/json\r\nContent-Length: 200000\r\n\r\n";
            [head, &body].concat().into_bytes()
        };
        let mut held = Vec::new();
        for _ in 0..4 {
            let mut stream = connect(&served);
            stream.write_all(&half(90_000)).unwrap();
            held.push(stream);
        }
        counted(&served, "podium_answers_refused_total", 1).await;
        // What is left of the room is for others, and an ordinary body needs little of it.
        let other = from("127.0.0.2", &served).await;
        let whole = b"POST /v1/auth/sign-in HTTP/1.1\r\nHost: podium\r\nConnection: close\r\nContent-Type: \
                      application/json\r\nContent-Length: 2\r\n\r\n{}";
        let (_, said) = say(other, whole.to_vec(), "").await;
        assert!(said.starts_with("HTTP/1.1 400"), "{said}");
    });
}

/// What was found: every stream counted as 64 KiB of responses that wait, also one with nothing to say, until nothing else
/// was admitted.
#[test]
fn streams_of_events_take_no_room_of_changes_and_sign_ins() {
    block_on(async {
        let few = Waiting { connection: 100_000, address: 100_000, all: 100_000 };
        let served = serve(|settings| settings.waiting = few).await;
        let app = &served.app;
        let ask = |path: String| {
            let token = &app.owner.token;
            format!("GET {path} HTTP/1.1\r\nHost: podium\r\nAuthorization: Bearer {token}\r\n\r\n")
                .into_bytes()
        };
        let mut open = Vec::new();
        for _ in 0..20 {
            let (stream, said) = say(connect(&served), ask(app.path("/events/follow")), "\r\n\r\n").await;
            assert!(said.starts_with("HTTP/1.1 200"), "{said}");
            open.push(stream);
        }
        let waiting = app.call("GET", "/metrics").send().await.text();
        assert!(waiting.contains("\npodium_answers_waiting_bytes 0\n"), "{waiting}");
        let post = |path: &str, more: &str, body: &str| {
            let length = body.len();
            let head = format!("POST {path} HTTP/1.1\r\nHost: podium\r\nConnection: close\r\n{more}");
            format!("{head}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
                .into_bytes()
        };
        let bearer = format!("Authorization: Bearer {}\r\n", app.owner.token);
        let (_, made) =
            say(connect(&served), post(&app.path("/workspaces"), &bearer, r#"{"name":"Data"}"#), "").await;
        assert!(made.starts_with("HTTP/1.1 200"), "{made}");
        let (_, sign_in) = say(connect(&served), post("/v1/auth/sign-in", "", "{}"), "").await;
        assert!(sign_in.starts_with("HTTP/1.1 400"), "{sign_in}");
        // The event of the change reaches all of them.
        for stream in open {
            let (_, event) = say(stream, Vec::new(), "workspace.created").await;
            assert!(event.contains("workspace.created"), "{event}");
        }
    });
}

#[test]
fn a_connection_without_a_request_ends_on_http_2_too() {
    block_on(async {
        let served = serve(|settings| (settings.tls, settings.header_timeout) = (tls(), SHORT)).await;
        let (_sender, connection) = without_window(&served).await;
        let _ = connection.await.unwrap();
        counted(&served, "podium_connections_closed_total{reason=\"idle\"}", 1).await;
    });
}
