//! A receiver of webhooks on this machine: answers as a test says, and remembers what it got.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

const DEFAULT_ANSWER: &str = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";

/// A receiver; it listens until it is dropped.
pub struct Receiver {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

struct Shared {
    received: watch::Sender<Vec<Received>>,
    answers: Mutex<VecDeque<Option<String>>>,
}

#[derive(Clone, Debug)]
pub struct Received {
    head: String,
    pub body: String,
}

impl Receiver {
    /// Listens on a free port of this machine.
    pub async fn start() -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into()).await
    }

    pub async fn start_at(address: SocketAddr) -> Self {
        let listener = TcpListener::bind(address).await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let shared = Arc::new(Shared { received: watch::Sender::default(), answers: Mutex::default() });
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Self { address, shared, listening }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook", self.address)
    }

    /// Answers the next request that has no answer yet with a status, headers and a body; others with 204.
    pub fn answer(&self, status: u16, headers: &str, body: &str) {
        let length = body.len();
        let head = format!("HTTP/1.1 {status} Told\r\nconnection: close\r\ncontent-length: {length}\r\n");
        self.answers().push_back(Some(format!("{head}{headers}\r\n{body}")));
    }

    /// Never answers the next request that has no answer yet.
    pub fn hang(&self) {
        self.answers().push_back(None);
    }

    /// What it has received so far.
    pub fn received(&self) -> Vec<Received> {
        self.shared.received.borrow().clone()
    }

    /// Waits until it has received so many requests.
    pub async fn wait_for(&self, count: usize) -> Vec<Received> {
        let mut received = self.shared.received.subscribe();
        received.wait_for(|all| all.len() >= count).await.expect("it listens").clone()
    }

    fn answers(&self) -> MutexGuard<'_, VecDeque<Option<String>>> {
        self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        let lines = self.head.lines().filter_map(|line| line.split_once(':'));
        let mut found = lines.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map_or("", |(_, value)| value.trim())
    }

    pub fn first_line(&self) -> &str {
        self.head.lines().next().unwrap_or_default()
    }

    pub fn event(&self) -> Value {
        serde_json::from_str(&self.body).expect("an event is JSON")
    }

    /// Whether it is signed with a secret, as the Standard Webhooks specification says.
    pub fn is_signed_with(&self, secret: &str) -> bool {
        let key =
            secret.strip_prefix("whsec_").and_then(|text| STANDARD.decode(text).ok()).expect("a secret");
        let signed =
            format!("{}.{}.{}", self.header("webhook-id"), self.header("webhook-timestamp"), self.body);
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
        let signatures = self.header("webhook-signature").split(' ');
        let mut decoded = signatures.filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
        decoded.any(|signature| hmac::verify(&key, signed.as_bytes(), &signature).is_ok())
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, Arc::clone(&shared)));
    }
}

async fn serve(mut stream: TcpStream, shared: Arc<Shared>) {
    let Some(received) = read(&mut stream).await else { return };
    let answer = shared.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    shared.received.send_modify(|all| all.push(received));
    match answer {
        Some(None) => std::future::pending().await,
        Some(Some(answer)) => drop(stream.write_all(answer.as_bytes()).await),
        None => drop(stream.write_all(DEFAULT_ANSWER.as_bytes()).await),
    }
}

async fn read(stream: &mut TcpStream) -> Option<Received> {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let received = Received { head: head.to_owned(), body: body.to_owned() };
            if body.len() >= received.header("content-length").parse().unwrap_or(0) {
                return Some(received);
            }
        }
        match stream.read(&mut chunk).await {
            Ok(0) | Err(_) => return None,
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
        }
    }
}
