//! Clients that exhaust resources: they hold connections, heads, bodies and responses. Time is not measured: an honest
//! client is served while all of them still hold on.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;

use podium_testkit::block_on;
use rustls::pki_types::ServerName;
use rustls::{ClientConnection, StreamOwned};
use serde_json::json;

use super::strength;
use crate::loops::wait_until;
use crate::program::{Caller, Installation, Program, read_reply};
use crate::tls::{client_config, file};

/// How often an honest client asks.
const READS: usize = 50;
const HEALTH: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: podium\r\n\r\n";
const KIBIBYTES: usize = 1024;

/// A program that says little, its token and the path of its organization.
fn target(arguments: &[&str]) -> (Installation, Program, String) {
    let installation = Installation::new();
    let program = installation.serve(&[&["--log", "error"], arguments].concat());
    let token = installation.read("owner-token");
    (installation, program, token)
}

/// An honest client, which opens a connection of its own and asks again and again.
fn is_served(program: &Program, token: &str) {
    let mut caller = Caller::new(program, token);
    for _ in 0..READS {
        assert_eq!(caller.call("GET", "/v1/users/self", None).expect("an answer").0, 200);
    }
}

/// Whether the server still holds on to a connection: nothing was said on it, and it is not closed.
fn is_held(stream: &TcpStream) -> bool {
    stream.set_nonblocking(true).unwrap();
    let peeked = stream.peek(&mut [0]);
    stream.set_nonblocking(false).unwrap();
    peeked.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
}

/// What a process has in memory.
fn memory(program: &Program) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid())).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it is measured");
    line.trim().trim_end_matches(" kB").parse::<usize>().expect("a number") * KIBIBYTES
}

/// A connection from another loopback address than that of everybody else.
fn from_elsewhere(program: &Program) -> TcpStream {
    let connect = async {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 9], 0)))?;
        socket.connect(program.address).await?.into_std()
    };
    let stream = block_on(connect).expect("it listens");
    stream.set_nonblocking(false).unwrap();
    stream
}

fn send(program: &Program, bytes: &[u8]) -> TcpStream {
    let mut stream = program.connect();
    stream.write_all(bytes).expect("it reads");
    stream
}

#[test]
fn idle_connections_give_way() {
    let most = strength(64, 8000);
    let (_installation, program, token) = target(&["--max-connections", &most.to_string()]);
    let idle: Vec<_> = (0..strength(200, 10_000)).map(|_| program.connect()).collect();
    is_served(&program, &token);
    let held = idle.iter().filter(|stream| is_held(stream)).count();
    assert!((1..=most).contains(&held), "{held} of {} are left, no more and no fewer than fit", idle.len());
    // Those that are asked something meanwhile are never closed for others.
    let mut busy = Caller::new(&program, &token);
    for _ in 0..strength(100, 1000) {
        let _idle = program.connect();
        assert_eq!(busy.call("GET", "/v1/users/self", None).expect("it is kept").0, 200);
    }
}

#[test]
fn incomplete_requests_block_nobody() {
    let (_installation, program, token) = target(&[]);
    let post = |path: &str, more: &str| {
        format!("POST {path} HTTP/1.1\r\nHost: podium\r\n{more}Content-Length: 1000\r\n\r\nhalf").into_bytes()
    };
    let bearer = format!("Authorization: Bearer {token}\r\nContent-Type: application/json\r\n");
    let origin = format!("Origin: http://{}\r\n", program.address);
    let organization = program.organization(&token);
    let public = [post("/sign-in", &origin), post("/v1/auth/sign-in", "Content-Type: application/json\r\n")];
    let others = [
        b"GET /healthz HTTP/1.1\r\nHost: pod".to_vec(),
        post(&format!("{organization}/workspaces"), &bearer),
    ];
    let send_all = |halves: &[Vec<u8>; 2]| -> Vec<_> {
        (0..strength(50, 500)).flat_map(|_| halves.iter().map(|half| send(&program, half))).collect()
    };
    let (_public, held) = (send_all(&public), send_all(&others));
    is_served(&program, &token);
    assert!(held.iter().all(is_held), "they have some time left");
}

#[test]
fn half_sent_public_bodies_make_room() {
    let most = strength(50, 1000);
    let (_installation, program, token) = target(&["--max-connections", &most.to_string()]);
    let half = b"POST /v1/auth/sign-in HTTP/1.1\r\nHost: podium\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\
                 \r\nhalf";
    // None of these clients hangs up.
    let mut held: Vec<_> = (0..2 * most).map(|_| send(&program, half)).collect();
    for _ in 0..READS {
        let mut honest = send(&program, HEALTH);
        let mut answer = [0; 12];
        honest.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200");
        held.extend([send(&program, half), send(&program, half)]);
    }
    is_served(&program, &token);
    let mut numbers = String::new();
    let ask = b"GET /metrics HTTP/1.1\r\nHost: podium\r\nConnection: close\r\n\r\n";
    send(&program, ask).read_to_string(&mut numbers).expect("numbers");
    let shed = numbers
        .lines()
        .find_map(|line| line.strip_prefix("podium_connections_closed_total{reason=\"shed\"} "));
    let shed: usize = shed.expect("a count").trim().parse().expect("a number");
    assert!(shed >= READS, "they were closed to make room, not by their deadline: {shed}");
}

/// What was found: two thousand streams of one member, all of them read, and the server refused everybody's changes and
/// sign-ins.
#[test]
fn streams_of_events_cost_others_nothing() {
    const MOST_OF_ONE_TOKEN: usize = 100;
    let (_installation, program, token) = target(&[]);
    let organization = program.organization(&token);
    let follow = |token: &str| {
        let ask = format!(
            "GET {organization}/events/follow HTTP/1.1\r\nHost: podium\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        let mut stream = send(&program, ask.as_bytes());
        let mut head = [0; 12];
        stream.read_exact(&mut head).expect("an answer");
        (stream, head)
    };
    let mut held = Vec::new();
    let readers = strength(1, 10);
    for number in 0..readers {
        let body = json!({ "name": format!("reader {number}"), "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER" });
        let made = program.call("POST", &format!("{organization}/tokens"), &token, Some(&body)).json();
        let reader = made["token"].as_str().expect("a token").to_owned();
        for _ in 0..MOST_OF_ONE_TOKEN {
            let (stream, head) = follow(&reader);
            assert_eq!(&head, b"HTTP/1.1 200");
            held.push(stream);
        }
        for _ in 0..strength(5, 200) {
            assert_eq!(&follow(&reader).1, b"HTTP/1.1 429", "one caller has so many");
        }
    }
    is_served(&program, &token);
    for number in 0..READS {
        let body = json!({ "name": format!("workspace {number}") });
        let made = program.call("POST", &format!("{organization}/workspaces"), &token, Some(&body));
        assert_eq!(made.status, 200, "{}", String::from_utf8_lossy(&made.body));
        let body = json!({ "email": "nobody@example.com", "password": "wrong wrong wrong" });
        let refused = program.call("POST", "/v1/auth/sign-in", "", Some(&body)).status;
        assert_ne!(refused, 503, "the server has room for it");
    }
    assert_eq!(held.len(), readers * MOST_OF_ONE_TOKEN);
}

#[test]
fn readers_who_do_not_read_take_no_memory() {
    let (_installation, program, token) = target(&[]);
    let ask = |coding: &str| {
        let request =
            format!("GET /docs/reference.js HTTP/1.1\r\nHost: podium\r\nAccept-Encoding: {coding}\r\n\r\n");
        send(&program, request.as_bytes())
    };
    // Once for each form: it is made when somebody first asks for it.
    for coding in ["gzip", "zstd", "identity"] {
        let mut first = [0; 12];
        ask(coding).read_exact(&mut first).expect("an answer");
        assert_eq!(&first, b"HTTP/1.1 200");
    }
    let before = memory(&program);
    let readers = strength(110, 1100);
    let mut held = Vec::new();
    for number in 0..readers {
        let stream = ask(["gzip", "zstd", "identity"][number % 3]);
        // The answer has begun.
        while !stream.peek(&mut [0]).is_ok_and(|length| length > 0) {}
        held.push(stream);
    }
    is_served(&program, &token);
    let taken = memory(&program).saturating_sub(before);
    assert!(taken < 16 * 1024 * KIBIBYTES + readers * 256 * KIBIBYTES, "{taken} bytes for {readers} readers");
    assert_eq!(held.len(), readers);
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A text in a head, as it is.
fn text(text: &str) -> Vec<u8> {
    [&[u8::try_from(text.len()).unwrap()], text.as_bytes()].concat()
}

/// A connection of HTTP/2, spoken by hand.
struct Frames(StreamOwned<ClientConnection, TcpStream>);

impl Frames {
    /// Opens one whose streams have no window: nothing but heads can be sent on them.
    fn without_window(program: &Program) -> Self {
        let mut config = client_config(&file("certificate.pem"));
        config.alpn_protocols = vec![b"h2".to_vec()];
        let name = ServerName::from(IpAddr::from(Ipv4Addr::LOCALHOST));
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        let stream = program.connect();
        stream.set_nodelay(true).unwrap();
        let mut frames = Self(StreamOwned::new(connection, stream));
        frames.0.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").unwrap();
        // SETTINGS_INITIAL_WINDOW_SIZE is 0.
        frames.send(4, 0, 0, &[0, 4, 0, 0, 0, 0]);
        frames
    }

    fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.0.write_all(&frame(kind, flags, stream, payload)).unwrap();
    }

    /// Begins a request with a body, and takes it back once the server has seen it; whether the connection is still open.
    fn take_back(&mut self, stream: u32, path: &str) -> bool {
        // Numbers of the static table: POST, https, the path, the authority, and a content type that follows.
        let block = [
            &[0x83, 0x87, 0x04][..],
            &text(path),
            &[0x01],
            &text("podium"),
            &[0x0f, 0x10],
            &text("application/json"),
        ];
        let ping = [0, 0, 8, 6, 0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8];
        let begun = [&frame(1, 4, stream, &block.concat()), &ping[..]].concat();
        if self.0.write_all(&begun).is_err() {
            return false;
        }
        // The answer to the ping.
        loop {
            match self.next() {
                Some((6, _)) => break,
                Some(_) => {}
                None => return false,
            }
        }
        self.0.write_all(&frame(3, 0, stream, &[0, 0, 0, 8])).is_ok()
    }

    /// The kind and the payload of the next frame; nothing at the end.
    fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 9];
        self.0.read_exact(&mut head).ok()?;
        let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
        self.0.read_exact(&mut payload).ok()?;
        Some((head[3], payload))
    }

    /// Asks for a path, compressed where that is possible.
    fn get(&mut self, stream: u32, path: &str) {
        // Numbers of the static table: GET, https, the path, the authority, and gzip or deflate.
        let block = [&[0x82, 0x87, 0x04][..], &text(path), &[0x01], &text("podium"), &[0x90]].concat();
        // END_STREAM and END_HEADERS.
        self.send(1, 5, stream, &block);
    }

    /// Reads until so many heads of answers have come.
    fn heads(&mut self, many: usize) {
        let mut seen = 0;
        while seen < many {
            let (kind, _) = self.next().expect("it is not closed");
            seen += usize::from(kind == 1);
        }
    }
}

#[test]
fn a_connection_without_a_window_takes_no_memory() {
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let (_installation, program, _) = target(&["--tls-cert", &certificate, "--tls-key", &key]);
    let ask = |streams: u32| {
        let mut frames = Frames::without_window(&program);
        (0..streams).for_each(|number| frames.get(number * 2 + 1, "/docs/reference.js"));
        frames.heads(streams as usize);
        frames
    };
    let first = ask(1);
    let before = memory(&program);
    let held: Vec<_> = (0..strength(4, 40)).map(|_| ask(100)).collect();
    let taken = memory(&program).saturating_sub(before);
    assert!(taken < (16 + 4 * held.len()) * 1024 * KIBIBYTES, "{taken} bytes for {} connections", held.len());
    let another = ask(1);
    drop((first, another));
}

#[test]
fn a_client_that_keeps_resetting_requests_is_disconnected() {
    let (certificate, key) = (file("certificate.pem"), file("key.pem"));
    let (_installation, program, _) = target(&["--tls-cert", &certificate, "--tls-key", &key]);
    let mut frames = Frames::without_window(&program);
    let mut streams = (0..10_000).map(|number| number * 2 + 1);
    assert!(streams.any(|stream| !frames.take_back(stream, "/v1/auth/sign-in")), "it may go on for ever");
    let mut others = Frames::without_window(&program);
    others.get(1, "/healthz");
    others.heads(1);
}

#[test]
fn sign_ins_of_one_address_do_not_delay_another() {
    let (installation, program, token) = target(&[]);
    let password = "correct horse battery staple";
    let change = json!({ "currentPassword": "", "newPassword": password });
    assert_eq!(program.call("POST", "/v1/auth/change-password", &token, Some(&change)).status, 204);
    let request = |username: &str, password: &str| {
        let body = json!({ "username": username, "password": password }).to_string();
        let length = body.len();
        format!(
            "POST /v1/auth/sign-in HTTP/1.1\r\nHost: podium\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .into_bytes()
    };
    let attackers = strength(60, 300);
    let held: Vec<_> = (0..attackers)
        .map(|number| send(&program, &request(&format!("nobody-{number}@example.com"), "wrong wrong wrong")))
        .collect();
    let waiting = || {
        let page = String::from_utf8(program.get("/metrics", "").body).expect("text");
        let line = page.lines().find_map(|line| line.strip_prefix("podium_passwords_waiting "));
        line.expect("it is counted").parse::<usize>().expect("a number")
    };
    wait_until("they wait for each other", waiting, |waiting| *waiting >= 40);
    let mut honest = from_elsewhere(&program);
    honest.write_all(&request("owner@localhost", password)).unwrap();
    let reply = read_reply(honest);
    let left = held.iter().filter(|stream| is_held(stream)).count();
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(left >= 5, "one who came after all of them was not the last: {left} were still waiting");
    drop(installation);
}

#[test]
fn a_connection_that_asks_for_more_than_it_reads_is_still_one_connection() {
    let (_installation, program, token) = target(&[]);
    // Requests that follow each other without anybody reading the answers.
    let many = HEALTH.repeat(strength(2_000, 20_000));
    let mut stream = program.connect();
    stream.set_nonblocking(true).unwrap();
    let written = stream.write(&many).expect("some of it is taken");
    assert!(written > 0);
    is_served(&program, &token);
}
