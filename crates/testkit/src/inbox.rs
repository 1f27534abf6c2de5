//! A mail server on this machine: takes or refuses mails as a test says, and keeps what it gets.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A mail server; it listens until it is dropped.
pub struct Inbox {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: JoinHandle<()>,
}

#[derive(Default)]
struct Shared {
    mails: watch::Sender<Vec<String>>,
    /// What the next mails are answered with; those without an answer never end.
    answers: Mutex<VecDeque<Option<&'static str>>>,
    attempts: watch::Sender<usize>,
}

impl Inbox {
    /// Listens on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let shared = Arc::<Shared>::default();
        let listening = tokio::spawn(listen(listener, Arc::clone(&shared)));
        Self { address, shared, listening }
    }

    pub fn url(&self) -> String {
        format!("smtp://{}", self.address)
    }

    /// Refuses the next mail that has no answer yet, for now.
    pub fn refuse(&self) {
        self.answer(Some("451 later"));
    }

    /// Refuses the next mail that has no answer yet, for good.
    pub fn reject(&self) {
        self.answer(Some("550 there is no such mailbox"));
    }

    /// Never answers the next mail that has no answer yet.
    pub fn hang(&self) {
        self.answer(None);
    }

    /// What it got so far: headers and texts.
    pub fn mails(&self) -> Vec<String> {
        self.shared.mails.borrow().clone()
    }

    /// Waits until it got so many mails.
    pub async fn wait_for(&self, count: usize) -> Vec<String> {
        let mut mails = self.shared.mails.subscribe();
        mails.wait_for(|all| all.len() >= count).await.expect("it listens").clone()
    }

    /// Waits until so many mails were begun.
    pub async fn wait_for_attempts(&self, count: usize) {
        let mut attempts = self.shared.attempts.subscribe();
        attempts.wait_for(|all| *all >= count).await.expect("it listens");
    }

    fn answer(&self, answer: Option<&'static str>) {
        self.shared.answers.lock().unwrap_or_else(PoisonError::into_inner).push_back(answer);
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.listening.abort();
    }
}

async fn listen(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        let shared = Arc::clone(&shared);
        tokio::spawn(async move { drop(serve(stream, &shared).await) });
    }
}

async fn serve(mut stream: TcpStream, shared: &Shared) -> std::io::Result<()> {
    let (reading, mut writing) = stream.split();
    let mut lines = BufReader::new(reading).lines();
    writing.write_all(b"220 inbox\r\n").await?;
    while let Some(line) = lines.next_line().await? {
        let command = line.to_ascii_uppercase();
        let answer = match command.get(..4) {
            Some("MAIL") => {
                shared.attempts.send_modify(|attempts| *attempts += 1);
                let next = shared.answers.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
                match next.unwrap_or(Some("250 ok")) {
                    Some(answer) => answer,
                    None => std::future::pending().await,
                }
            }
            Some("DATA") => {
                writing.write_all(b"354 go on\r\n").await?;
                let mut mail = String::new();
                while let Some(line) = lines.next_line().await?.filter(|line| line != ".") {
                    mail.push_str(&line);
                    mail.push('\n');
                }
                shared.mails.send_modify(|mails| mails.push(mail));
                "250 kept"
            }
            Some("QUIT") => return writing.write_all(b"221 bye\r\n").await,
            _ => "250 inbox",
        };
        writing.write_all(format!("{answer}\r\n").as_bytes()).await?;
    }
    Ok(())
}
