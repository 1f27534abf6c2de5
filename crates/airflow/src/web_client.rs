//! The HTTP client for web servers of environments. What they say is not trusted: they run code of authors.

use std::time::Duration;

use podium_domain::{Reason, UserText};
use reqwest::{RequestBuilder, Response};
use serde::de::DeserializeOwned;

use crate::health::{self, HealthReport};

/// How long the first response of the task API may take: the first request initializes it.
const FIRST_ANSWER: Duration = Duration::from_secs(120);
/// No document about the health of an environment is larger.
const MOST_HEALTH: usize = 64 * 1024;

/// A client for web servers of environments. It is given their URLs.
#[derive(Clone, Debug)]
pub struct WebClient(reqwest::Client);

impl WebClient {
    pub fn new(timeout: Duration) -> reqwest::Result<Self> {
        let client = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(timeout)
            .build();
        client.map(Self)
    }

    /// Requests the health of all components from a web server; an error says why it does not respond.
    pub async fn health(&self, base: &str, major: u32) -> Result<HealthReport, Reason> {
        let question = self.0.get(format!("{base}/{}", health::path(major)));
        parsed(answer(question, "its health check returned status {}").await?, MOST_HEALTH).await
    }

    /// Requests a JSON document with a header that authenticates; one that is larger than `most` bytes is refused.
    pub async fn get_json(
        &self,
        url: &str,
        (header, value): (&str, String),
        most: usize,
    ) -> Result<serde_json::Value, Reason> {
        let question = self.0.get(url).header(header, value);
        parsed(answer(question, "its API returned status {}").await?, most).await
    }

    /// Initializes the task API, so that no task has to wait for it.
    pub async fn warm_up(&self, base: &str) -> Result<(), Reason> {
        let question = self.0.get(format!("{base}/execution/health")).timeout(FIRST_ANSWER);
        answer(question, "its task API returned status {}").await.map(drop)
    }
}

/// Sends a request; an answer that is none is an error with its status.
async fn answer(question: RequestBuilder, failed: &'static str) -> Result<Response, Reason> {
    let answer = question.send().await.map_err(|error| reason(&error))?;
    if answer.status().is_success() {
        Ok(answer)
    } else {
        Err(UserText::filled(failed, &[&answer.status().as_u16()]).into())
    }
}

/// Reads and parses a JSON document of at most `most` bytes.
async fn parsed<T: DeserializeOwned>(mut answer: Response, most: usize) -> Result<T, Reason> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| reason(&error))? {
        if bytes.len() + chunk.len() > most {
            return Err("its response is too large".into());
        }
        bytes.extend_from_slice(&chunk);
    }
    serde_json::from_slice(&bytes).map_err(|error| Reason::new("its response cannot be parsed", error))
}

/// Why there is no response, in a few words.
fn reason(error: &reqwest::Error) -> Reason {
    if error.is_connect() {
        Reason::new("it is not listening", error)
    } else if error.is_timeout() {
        Reason::new("it does not respond", error)
    } else {
        Reason::new("its response cannot be parsed", error)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    use super::*;

    #[tokio::test]
    async fn a_health_document_without_end_is_refused() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async move {
            let (mut client, _) = listener.accept().await.unwrap();
            let _ = client.read(&mut [0; 1024]).await.unwrap();
            client.write_all(b"HTTP/1.1 200 OK\r\n\r\n{").await.unwrap();
            while client.write_all(&[b' '; 1024]).await.is_ok() {}
        });
        let client = WebClient::new(Duration::from_secs(60)).unwrap();
        let why = client.health(&base, 3).await.unwrap_err();
        assert_eq!(why.to_string(), "its response is too large");
        server.await.unwrap();
    }
}
