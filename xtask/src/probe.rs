//! A GET to a server of this machine, without an HTTP library.

use std::io::{Error, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

/// The status that a GET is answered with.
pub(crate) fn status(port: u16, path: &str, token: &str) -> Result<u16> {
    Ok(answer(port, path, token)?.0)
}

/// The body that a GET is answered with, if that is a success.
pub(crate) fn get(port: u16, path: &str, token: &str) -> Result<String> {
    match answer(port, path, token)? {
        (200, body) => Ok(body),
        (status, body) => Err(Error::other(format!("{path} was answered with {status}: {body}"))),
    }
}

fn answer(port: u16, path: &str, token: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.set_read_timeout(Some(Duration::from_secs(5)))?;
    // HTTP/1.0, so that the body comes in one piece and its end is the end of the connection.
    write!(stream, "GET {path} HTTP/1.0\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    let status = status.ok_or_else(|| Error::other(format!("not an HTTP answer: {head:?}")))?;
    Ok((status, body.to_owned()))
}
