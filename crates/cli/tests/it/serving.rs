//! Serving: graceful shutdown, and behaviour that is only visible on a socket.

use std::io::{Read, Write};
use std::net::TcpStream;

use podium_testkit::Engine;
use serde_json::{Value, json};

use crate::program::{Caller, Installation, exchange, read_reply, request};

#[test]
fn a_running_request_is_finished_before_shutdown() {
    for signal in ["TERM", "INT"] {
        let installation = Installation::new();
        let mut program = installation.serve(&[]);
        let token = installation.read("owner-token");
        let organization = program.organization(&token);
        let head = format!("Authorization: Bearer {token}\r\nExpect: 100-continue\r\n");
        let body = json!({ "name": "Made at the last moment" });
        let whole = request("POST", &format!("{organization}/workspaces"), &head, Some(&body));
        let split = whole.len() - body.to_string().len();
        let mut running = program.connect();
        running.write_all(&whole[..split]).unwrap();
        // The server asks for the body: the request is running.
        let mut expected = [0; "HTTP/1.1 100 Continue\r\n\r\n".len()];
        running.read_exact(&mut expected).unwrap();
        assert_eq!(&expected, b"HTTP/1.1 100 Continue\r\n\r\n");
        let idle = program.connect();

        program.tell_to_stop(signal);
        while TcpStream::connect(program.address).is_ok() {
            std::thread::yield_now();
        }
        running.write_all(&whole[split..]).unwrap();
        let answer = read_reply(running);
        assert_eq!(answer.status, 200);
        drop(idle);
        assert_eq!(program.end().code(), Some(0), "{}", program.said());
        assert!(program.said().contains("Drained"), "{}", program.said());

        let again = installation.serve(&[]);
        let id = answer.json()["id"].as_str().unwrap().to_owned();
        let shown = again.get(&format!("{organization}/workspaces/{id}"), &token).json().to_string();
        // Pictures of people are at the port that the server has.
        let shown = shown.replace(&again.address.to_string(), &program.address.to_string());
        assert_eq!(shown, answer.json().to_string());
    }
}

#[test]
fn callers_are_rate_limited_by_default_on_postgres() {
    // Five deletes a second, and fifty at once; however slow this machine is, it makes more.
    let mut refused = [Engine::Sqlite, Engine::Postgres].map(|engine| {
        let mut installation = Installation::on(engine);
        installation.unset("PODIUM_RATE_LIMITS");
        let program = installation.serve(&[]);
        let token = installation.read("owner-token");
        let nothing = format!("{}/workspaces/nothing", program.organization(&token));
        let mut caller = Caller::new(&program, &token);
        let most = if engine == Engine::Sqlite { 300 } else { 5_000 };
        (0..most).find(|_| caller.call("DELETE", &nothing, None).expect("an answer").0 == 429)
    });
    assert_eq!(refused[0].take(), None, "embedded");
    assert!(refused[1].is_some_and(|calls| calls >= 50), "{refused:?}");
}

#[test]
fn the_last_use_of_a_token_is_saved_at_shutdown() {
    let installation = Installation::new();
    let program = installation.serve(&[]);
    let owner = installation.read("owner-token");
    let organization = program.organization(&owner);
    let body = json!({ "name": "ci", "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER" });
    let made = program.call("POST", &format!("{organization}/tokens"), &owner, Some(&body)).json();
    assert_eq!(program.get(&organization, made["token"].as_str().unwrap()).status, 200);
    program.stop();
    let program = installation.serve(&[]);
    let read = program.get(&format!("{organization}/tokens/{}", made["id"].as_str().unwrap()), &owner).json();
    assert!(read["lastUsedAt"].as_str().is_some_and(|at| at.ends_with(":00.000Z")), "{read}");
}

#[test]
fn large_responses_are_compressed_if_the_client_accepts_it() {
    let installation = Installation::new();
    let program = installation.serve(&[]);
    let ask = |head: &str| {
        let head = format!("{head}Connection: close\r\n");
        exchange(program.connect(), &request("GET", "/openapi.json", &head, None))
    };
    let plain = ask("");
    assert_eq!(plain.header("content-encoding"), None);
    let document = plain.json();
    let gzip = ask("Accept-Encoding: gzip\r\n");
    assert_eq!((gzip.status, gzip.header("content-encoding")), (200, Some("gzip")));
    assert_eq!(gzip.header("vary"), Some("accept-encoding"));
    assert!(gzip.body.starts_with(&[0x1f, 0x8b]) && gzip.body.len() < plain.body.len() / 2);
    let zstd = ask("Accept-Encoding: zstd, gzip;q=0.5\r\n");
    assert_eq!(zstd.header("content-encoding"), Some("zstd"));
    assert!(zstd.body.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]));
    let url = format!("http://{}/v1", program.address);
    assert_eq!(document["servers"][0]["url"], url.as_str());
}

#[test]
fn tags_are_those_of_the_uncompressed_body_and_exports_are_compressed_too() {
    let installation = Installation::new();
    let program = installation.serve(&[]);
    let token = installation.read("owner-token");
    let organization = program.organization(&token);
    let ask = |path: &str, head: &str| {
        let head = format!("Authorization: Bearer {token}\r\n{head}Connection: close\r\n");
        exchange(program.connect(), &request("GET", path, &head, None))
    };
    let gzip = "Accept-Encoding: gzip\r\n";
    let (plain, compressed) = (ask(&organization, ""), ask(&organization, gzip));
    assert_eq!(compressed.header("content-encoding"), Some("gzip"));
    assert!(plain.header("etag").is_some());
    assert_eq!(compressed.header("etag"), plain.header("etag"));

    let workspace = json!({ "name": "Data" });
    program.call("POST", &format!("{organization}/workspaces"), &token, Some(&workspace)).json();
    let log = format!("{organization}/audit-logs");
    let (plain, compressed) = (ask(&log, ""), ask(&log, gzip));
    assert_eq!((plain.status, plain.header("content-encoding")), (200, None));
    assert!(plain.body.starts_with(b"{"));
    assert_eq!((compressed.status, compressed.header("content-encoding")), (200, Some("gzip")));
    assert!(compressed.body.starts_with(&[0x1f, 0x8b]));
}

#[test]
fn request_heads_have_a_size_limit() {
    let installation = Installation::new();
    let program = installation.serve(&[]);
    let ask = |length: usize| {
        let head = format!("X-Padding: {}\r\nConnection: close\r\n", "x".repeat(length));
        let mut stream = program.connect();
        // The server may answer and close before it has read everything.
        let _ = stream.write_all(&request("GET", "/healthz", &head, None));
        read_reply(stream)
    };
    assert_eq!(ask(30_000).status, 200);
    let refused = ask(40_000);
    assert_eq!((refused.status, refused.header("content-type")), (431, Some("application/json")));
    let body: Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!(body["message"], "The headers are too large: at most 32768 bytes are read.");
    assert_eq!(
        (&body["statusCode"], body["requestId"].as_str()),
        (&json!(431), refused.header("x-request-id"))
    );
    // What does not even fit into memory is refused without a word.
    assert_eq!(ask(500_000).status, 431);
    assert_eq!(program.get("/healthz", "").status, 200);
}

#[test]
fn nonsense_on_the_socket_harms_nobody() {
    let installation = Installation::new();
    let program = installation.serve(&[]);
    for nonsense in
        [&b"\x16\x03\x01\x02\x00"[..], b"HELLO\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\0\0\0\0\r\n\r\n"]
    {
        let mut stream = program.connect();
        stream.write_all(nonsense).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 4"), "{answer:?}");
    }
    assert_eq!(program.get("/healthz", "").json(), json!({ "status": "ok" }));
}

#[test]
fn a_request_leaves_one_line_in_the_log_and_no_token() {
    let installation = Installation::new();
    let program = installation.serve(&["--log-format", "json"]);
    let token = installation.read("owner-token");
    let head = format!("Authorization: Bearer {token}\r\nX-Request-Id: one-of-mine\r\nConnection: close\r\n");
    let asked = request("GET", "/v1/users/self?createIfNotExist=false", &head, None);
    assert_eq!(exchange(program.connect(), &asked).status, 200);
    let said = program.stop();
    let lines: Vec<Value> = said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let of_request: Vec<&Value> = lines.iter().filter(|line| line["request_id"] == "one-of-mine").collect();
    assert_eq!(of_request.len(), 1, "{said}");
    let line = of_request[0];
    assert_eq!(
        (&line["method"], &line["path"], &line["operation"], &line["status"], &line["address"]),
        (&json!("GET"), &json!("/v1/users/self"), &json!("GetSelfUser"), &json!(200), &json!("127.0.0.1"))
    );
    let after_start = said.split_once("Podium is ready").unwrap().1;
    assert!(!after_start.contains(&token));
}
