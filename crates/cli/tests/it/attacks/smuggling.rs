//! Requests whose length two parsers could interpret differently: a client behind a proxy must not be able to smuggle a
//! second request into another client's connection. Each is refused or parsed in one way only, and then the connection
//! is closed or continues with the next request.

use std::io::{Read as _, Write as _};

use super::strength;
use crate::program::{Installation, Program};

/// What stands where a second request would be read. Nothing may ever answer it.
const HIDDEN: &str = "GET /healthz?hidden HTTP/1.1\r\nHost: podium\r\nConnection: close\r\n\r\n";

/// Heads of a POST whose body is `0\r\n\r\n` and the hidden request.
const AMBIGUOUS: [&str; 18] = [
    "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
    "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
    "Content-Length: 5\r\nContent-Length: 53\r\n",
    "Content-Length: 5, 53\r\n",
    "Content-Length: +5\r\n",
    "Content-Length: 0x5\r\n",
    "Content-Length: 5 5\r\n",
    "Content-Length: -1\r\n",
    "Content-Length: 99999999999999999999999\r\n",
    "Content-Length : 5\r\n",
    "Transfer-Encoding: xchunked\r\n",
    "Transfer-Encoding: chunked, identity\r\n",
    "Transfer-Encoding: identity, chunked\r\nContent-Length: 5\r\n",
    "Transfer-Encoding : chunked\r\n",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
    "Transfer-Encoding: \x0bchunked\r\n",
    " Transfer-Encoding: chunked\r\n",
    "X: a\rTransfer-Encoding: chunked\r\n",
];

/// Chunked bodies that are not well-formed.
const CHUNKS: [&str; 7] = [
    "5;\nxxxx\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "+5\r\nhello\r\n0\r\n\r\n",
    "5\nhello\n0\n\n",
    "ffffffffffffffffff\r\nhello\r\n",
    "5\r\nhello!\r\n0\r\n\r\n",
    "-1\r\nhello\r\n0\r\n\r\n",
];

/// Everything that one connection answered to these bytes, sent in so many pieces.
fn answers(program: &Program, bytes: &str, pieces: usize) -> String {
    let mut stream = program.connect();
    stream.set_nodelay(true).expect("a socket can be told");
    for piece in bytes.as_bytes().chunks(bytes.len().div_ceil(pieces)) {
        // What it refused it may have closed already.
        if stream.write_all(piece).is_err() {
            break;
        }
    }
    let mut all = Vec::new();
    let _ = stream.read_to_end(&mut all);
    String::from_utf8_lossy(&all).into_owned()
}

fn statuses(answers: &str) -> Vec<&str> {
    answers.split("HTTP/1.1 ").skip(1).map(|answer| &answer[..3]).collect()
}

#[test]
fn no_request_hides_in_the_body_of_another() {
    let installation = Installation::new();
    let program = installation.serve(&["--log", "error"]);
    let post = |target: &str, head: &str, body: &str, pieces: usize| {
        let request = format!("POST {target} HTTP/1.1\r\nHost: podium\r\n{head}\r\n{body}{HIDDEN}");
        answers(&program, &request, pieces)
    };
    for pieces in 1..=strength(1, 40) {
        for target in ["/v1/organizations", "/sign-in", "/docs"] {
            for head in AMBIGUOUS {
                let all = post(target, head, "0\r\n\r\n", pieces);
                assert!(statuses(&all).len() <= 1, "{target}, {head:?}, {pieces}: {all}");
                assert!(!statuses(&all).contains(&"200"), "{target}, {head:?}, {pieces}: {all}");
            }
            for chunks in CHUNKS {
                let all = post(target, "Transfer-Encoding: chunked\r\n", chunks, pieces);
                assert!(statuses(&all).len() <= 1, "{target}, {chunks:?}, {pieces}: {all}");
            }
        }
    }
    // In one piece, so that the body is there when the first request is refused.
    let both = post("/v1/organizations", "Content-Length: 5\r\n", "0\r\n\r\n", 1);
    assert_eq!(statuses(&both), ["405", "200"], "a request with one length hides nothing: {both}");
    program.stop();
}
