//! A small client that keeps its connection: for what the load tool cannot do, because one call needs the answer of
//! another.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use serde_json::Value;

use crate::outcome::{Outcome, While};

pub(super) struct Client {
    stream: BufReader<TcpStream>,
    token: String,
}

impl Client {
    pub(super) fn connect(port: u16, token: &str) -> Outcome<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).doing("connecting")?;
        stream.set_nodelay(true).doing("connecting")?;
        Ok(Self { stream: BufReader::new(stream), token: token.to_owned() })
    }

    /// Posts JSON, and gives the JSON of a success.
    pub(super) fn post(&mut self, path: &str, body: &Value) -> Outcome<Value> {
        let (body, token) = (body.to_string(), &self.token);
        let length = body.len();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        serde_json::from_str(&self.success(path, &request)?).doing(path)
    }

    pub(super) fn get(&mut self, path: &str) -> Outcome<String> {
        let token = &self.token;
        let request = format!("GET {path} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {token}\r\n\r\n");
        self.success(path, &request)
    }

    /// Sends a request, and gives the body of a success.
    fn success(&mut self, path: &str, request: &str) -> Outcome<String> {
        self.stream.get_mut().write_all(request.as_bytes()).doing(path)?;
        let (status, body) = self.answer().doing(path)?;
        if status.contains(" 200 ") { Ok(body) } else { Err(format!("{path}: {status}: {body}")) }
    }

    fn answer(&mut self) -> std::io::Result<(String, String)> {
        let (mut status, mut length) = (String::new(), 0);
        self.stream.read_line(&mut status)?;
        loop {
            let mut line = String::new();
            self.stream.read_line(&mut line)?;
            let line = line.trim().to_ascii_lowercase();
            if line.is_empty() {
                break;
            }
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body)?;
        Ok((status.trim().to_owned(), String::from_utf8_lossy(&body).into_owned()))
    }
}
