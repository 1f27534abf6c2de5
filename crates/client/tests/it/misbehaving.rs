//! Servers that fail, redirect, break off and say too much.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use podium_client::{Call, Client, Error, Retry, Settings};
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A server that answers one request after the other with these, and remembers them.
async fn server(answers: Vec<&'static str>) -> (Client, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let keep = Arc::clone(&seen);
    tokio::spawn(async move {
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            while !request.windows(4).any(|end| end == b"\r\n\r\n") {
                let mut part = [0; 4096];
                let length = stream.read(&mut part).await.unwrap();
                request.extend_from_slice(&part[..length]);
            }
            keep.lock().unwrap().push(String::from_utf8(request).unwrap());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    let retry = Retry { first_delay: Duration::from_millis(1), ..Retry::default() };
    let settings = Settings { token: Some("secret".into()), retry, ..Settings::default() };
    (Client::with(&url, settings).unwrap(), seen)
}

fn run(work: impl Future<Output = ()>) {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work);
}

const FINE: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
const AWAY: &str =
    "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
const BROKEN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nConnection: close\r\n\r\n{";

fn key(request: &str) -> Option<&str> {
    request.lines().find_map(|line| line.strip_prefix("idempotency-key: "))
}

#[test]
fn a_write_is_sent_again_under_the_same_key() {
    run(async {
        let (client, seen) = server(vec![AWAY, BROKEN, "", FINE]).await;
        client.send::<Value>(Call::raw("POST", "/x").unwrap()).await.unwrap();
        let seen = seen.lock().unwrap();
        assert_eq!(seen.len(), 4);
        assert!(
            key(&seen[0]).is_some() && seen.iter().all(|request| key(request) == key(&seen[0])),
            "{seen:?}"
        );
    });
}

#[test]
fn a_removal_is_sent_once() {
    run(async {
        let (client, seen) = server(vec![AWAY, FINE]).await;
        let refused =
            client.send::<podium_api::Nothing>(Call::raw("DELETE", "/x").unwrap()).await.unwrap_err();
        assert_eq!((refused.status(), seen.lock().unwrap().len()), (Some(503), 1));
        assert!(refused.to_string().contains("did not say why: it may not be a Podium server"), "{refused}");
    });
}

#[test]
fn a_server_that_stays_away_is_given_up() {
    run(async {
        let (client, seen) = server(vec![AWAY; 9]).await;
        let refused = client.send::<Value>(Call::raw("GET", "/x").unwrap()).await.unwrap_err();
        assert_eq!((refused.status(), seen.lock().unwrap().len()), (Some(503), 4));
    });
}

#[test]
fn a_token_does_not_follow_a_redirect() {
    run(async {
        let answer = "HTTP/1.1 302 Found\r\nLocation: http://elsewhere.test/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let (client, _) = server(vec![answer]).await;
        let error = client.send::<Value>(Call::raw("GET", "/x").unwrap()).await.unwrap_err();
        assert!(
            matches!(&error, Error::Redirected { location } if location == "http://elsewhere.test/"),
            "{error}"
        );
    });
}

#[test]
fn nobody_listens() {
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        drop(listener);
        let retry = Retry { first_delay: Duration::from_millis(1), ..Retry::default() };
        let client = Client::with(&url, Settings { retry, ..Settings::default() }).unwrap();
        let error = client.send::<Value>(Call::raw("GET", "/x").unwrap()).await.unwrap_err();
        assert!(matches!(error, Error::Unreachable { .. }), "{error}");
    });
}

#[test]
fn bad_urls_and_tokens_are_refused_before_anything_is_sent() {
    for url in ["", "example.com", "ftp://example.com", "http://a@example.com", "http://example.com/?x=1"] {
        assert!(matches!(Client::new(url, None), Err(Error::Invalid(_))), "{url}");
    }
    assert!(matches!(Client::new("http://example.com", Some("a\nb".into())), Err(Error::Invalid(_))));
    let settings = Settings { certificates: Some(b"nonsense".to_vec()), ..Settings::default() };
    assert!(matches!(Client::with("https://example.com", settings), Err(Error::Invalid(_))));
}
