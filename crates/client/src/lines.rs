//! Responses that are read as they come: lines of JSON, and server-sent events.

use std::time::Duration;

use crate::{Attempt, Call, Client, Error, Result};

/// The longest line.
const MOST_BYTES: usize = 8 << 20;
/// How long a stream may be silent. The server says something every 15 seconds.
const SILENCE: Duration = Duration::from_secs(60);

pub struct Lines {
    response: reqwest::Response,
    url: String,
    buffer: Vec<u8>,
    /// How much of the buffer was given out.
    start: usize,
    is_done: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its id, to go on after it.
    pub id: Option<String>,
    pub data: String,
}

pub struct Events(Lines);

impl Client {
    /// The lines of a response, as they come.
    pub async fn lines(&self, call: &Call) -> Result<Lines> {
        let response = self.exchange(call, None).await.map_err(Attempt::into_error)?;
        let url = self.base().to_owned();
        Ok(Lines { response, url, buffer: Vec::new(), start: 0, is_done: false })
    }

    /// The events of a response, as they come.
    pub async fn events(&self, call: &Call) -> Result<Events> {
        Ok(Events(self.lines(call).await?))
    }
}

impl Lines {
    pub async fn next(&mut self) -> Result<Option<String>> {
        let mut searched = self.start;
        loop {
            let found = self.buffer[searched..].iter().position(|byte| *byte == b'\n');
            if let Some(length) = found {
                let line = text(&self.buffer[self.start..searched + length])?;
                self.start = searched + length + 1;
                return Ok(Some(line));
            }
            if self.is_done {
                let rest = text(&self.buffer[self.start..])?;
                self.start = self.buffer.len();
                return Ok((!rest.is_empty()).then_some(rest));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            searched = self.buffer.len();
            if searched > MOST_BYTES {
                return Err(Error::TooLarge { most: MOST_BYTES });
            }
            let silent = || Error::Unreachable { url: self.url.clone(), reason: "it fell silent".into() };
            let chunk = tokio::time::timeout(SILENCE, self.response.chunk()).await.map_err(|_| silent())?;
            match chunk.map_err(|error| Attempt::unreachable(&self.url, &error).into_error())? {
                Some(chunk) => self.buffer.extend_from_slice(&chunk),
                None => self.is_done = true,
            }
        }
    }
}

impl Events {
    pub async fn next(&mut self) -> Result<Option<Event>> {
        let mut event = Event { id: None, data: String::new() };
        while let Some(line) = self.0.next().await? {
            match line.split_once(':').map(|(name, value)| (name, value.strip_prefix(' ').unwrap_or(value))) {
                Some(("id", value)) => event.id = Some(value.to_owned()),
                Some(("data", value)) => {
                    if !event.data.is_empty() {
                        event.data.push('\n');
                    }
                    event.data.push_str(value);
                }
                None if line.is_empty() && !event.data.is_empty() => return Ok(Some(event)),
                _ => {}
            }
        }
        Ok(None)
    }
}

fn text(bytes: &[u8]) -> Result<String> {
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    String::from_utf8(bytes.to_vec()).map_err(|_| Error::Unexpected("a line is not text".into()))
}
