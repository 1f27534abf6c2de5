//! PostgreSQL's protocol, as far as the pool needs it: statements that are prepared once, and pipelines of them.
//!
//! A pipeline is written into one buffer, ends with one Sync and is answered in one go. What follows a statement that
//! failed is passed over by the server, up to the Sync.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio::runtime::Runtime;
use tokio_postgres::types::{IsNull, ToSql, Type};
use xxhash_rust::xxh3::xxh3_64;

use super::Failure;
use super::answer::Answer;
use super::stream::Stream;
use crate::Value;

/// How long an answer may take: a little longer than the server's own limit. Past it, the server is not answering at all.
const SILENCE: Duration = Duration::from_secs(40);

/// How many bytes are read at a time.
const ROOM: usize = 32 * 1024;

pub(super) struct Wire {
    stream: Stream,
    out: BytesMut,
    input: BytesMut,
    room: Box<[u8]>,
    /// The columns of each statement of the pipeline.
    columns: Vec<Arc<[Type]>>,
    names: u64,
}

#[derive(Clone)]
pub(super) struct Prepared {
    name: Arc<str>,
    params: Arc<[Type]>,
    columns: Arc<[Type]>,
}

type Result<T, E = Failure> = std::result::Result<T, E>;

impl Wire {
    pub(super) fn new(mut stream: Stream) -> std::io::Result<Self> {
        stream.wait_at_most(Some(SILENCE))?;
        let (out, input) = (BytesMut::with_capacity(ROOM), BytesMut::with_capacity(ROOM));
        Ok(Self { stream, out, input, room: vec![0; ROOM].into(), columns: Vec::new(), names: 0 })
    }

    /// Does something that may take as long as it likes.
    pub(super) fn patiently<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.stream.wait_at_most(None).map_err(|error| Failure::lost(&error))?;
        let done = work(self);
        self.stream.wait_at_most(Some(SILENCE)).map_err(|error| Failure::lost(&error))?;
        done
    }

    /// Prepares a statement, and forgets another.
    pub(super) fn prepare(
        &mut self,
        runtime: &Runtime,
        text: &str,
        old: Option<Prepared>,
    ) -> Result<Prepared> {
        self.names += 1;
        let name: Arc<str> = format!("s{}", self.names).into();
        let mut out = BytesMut::new();
        if let Some(old) = old {
            message(&mut out, b'C', |out| string(out, b"S", &old.name));
        }
        message(&mut out, b'P', |out| {
            string(out, b"", &name);
            string(out, b"", text);
            out.put_i16(0);
        });
        message(&mut out, b'D', |out| string(out, b"S", &name));
        message(&mut out, b'S', |_| {});
        self.stream.send(runtime, &out).map_err(|error| Failure::lost(&error))?;
        let (mut params, mut columns) = (Vec::new(), Vec::new());
        self.until_ready(runtime, |tag, mut body| {
            match tag {
                b't' => {
                    for _ in 0..body.try_get_u16().ok()? {
                        params.push(kind(body.try_get_u32().ok()?));
                    }
                }
                b'T' => {
                    for _ in 0..body.try_get_u16().ok()? {
                        // The name, its table and column, the type, and what does not matter here.
                        let end = body.iter().position(|byte| *byte == 0)?;
                        body = body.get(end + 7..).map(|rest| body.slice_ref(rest))?;
                        columns.push(kind(body.try_get_u32().ok()?));
                        body = body.get(8..).map(|rest| body.slice_ref(rest))?;
                    }
                }
                _ => {}
            }
            Some(())
        })?;
        Ok(Prepared { name, params: params.into(), columns: columns.into() })
    }

    /// Adds a statement to the pipeline, and gives a hash of it. One whose parameters do not fit is not added.
    pub(super) fn add(&mut self, statement: &Prepared, params: &[Value<'_>]) -> Result<u64> {
        let before = self.out.len();
        if params.len() != statement.params.len() {
            let (given, wanted) = (params.len(), statement.params.len());
            return Err(Failure::Unfit(format!("{given} parameters are given, {wanted} are wanted")));
        }
        let mut unfit = None;
        message(&mut self.out, b'B', |out| {
            string(out, b"\0", &statement.name);
            out.put_slice(&[0, 1, 0, 1]); // One format for all parameters: binary.
            out.put_i16(params.len() as i16);
            for (value, kind) in params.iter().zip(&*statement.params) {
                let at = out.len();
                out.put_i32(-1);
                match value.to_sql(kind, out) {
                    Ok(IsNull::Yes) => out.truncate(at + 4),
                    Ok(IsNull::No) => {
                        let length = (out.len() - at - 4) as i32;
                        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
                    }
                    Err(error) => unfit = Some(Failure::Unfit(error.to_string())),
                }
            }
            out.put_slice(&[0, 1, 0, 1]); // The same for all columns.
        });
        message(&mut self.out, b'E', |out| out.put_slice(&[0, 0, 0, 0, 0]));
        if let Some(unfit) = unfit {
            self.out.truncate(before);
            return Err(unfit);
        }
        self.columns.push(Arc::clone(&statement.columns));
        Ok(xxh3_64(&self.out[before..]))
    }

    pub(super) fn waiting(&self) -> usize {
        self.out.len()
    }

    pub(super) fn clear(&mut self) {
        self.out.clear();
        self.columns.clear();
    }

    /// Sends the pipeline and reads the answers to its statements: as many as there are before one that failed, and how
    /// that one failed.
    pub(super) fn exchange(&mut self, runtime: &Runtime) -> (Vec<Answer>, Result<()>) {
        message(&mut self.out, b'S', |_| {});
        let sent = self.stream.send(runtime, &self.out);
        let columns = std::mem::take(&mut self.columns);
        self.clear();
        let mut answers = Vec::with_capacity(columns.len());
        if let Err(error) = sent {
            return (answers, Err(Failure::lost(&error)));
        }
        let mut rows = Vec::new();
        let done = self.until_ready(runtime, |tag, body| {
            match tag {
                b'D' => rows.push(body),
                b'C' | b'I' => {
                    let columns = Arc::clone(columns.get(answers.len())?);
                    answers.push(Answer {
                        columns,
                        rows: std::mem::take(&mut rows),
                        touched: touched(&body),
                    });
                }
                _ => {}
            }
            Some(())
        });
        let done = match done {
            Ok(()) if answers.len() != columns.len() => Err(out_of_step()),
            done => done,
        };
        (answers, done)
    }

    /// Runs a script of statements; the rows that are answered are text.
    pub(super) fn script(&mut self, runtime: &Runtime, text: &str) -> Result<Answer> {
        let mut out = BytesMut::new();
        message(&mut out, b'Q', |out| string(out, b"", text));
        self.stream.send(runtime, &out).map_err(|error| Failure::lost(&error))?;
        let mut answer = Answer::default();
        self.until_ready(runtime, |tag, body| {
            if tag == b'D' {
                answer.rows.push(body);
            }
            Some(())
        })?;
        Ok(answer)
    }

    /// Reads messages until the server is ready for more; the first error is the outcome. `see` understands a message, or
    /// not.
    fn until_ready(&mut self, runtime: &Runtime, mut see: impl FnMut(u8, Bytes) -> Option<()>) -> Result<()> {
        let mut outcome = Ok(());
        loop {
            let (tag, body) = match (self.receive(runtime), &outcome) {
                (Ok(received), _) => received,
                // The last thing that it said is why it left.
                (Err(_), Err(Failure::Refused(refusal))) => return Err(Failure::Lost(refusal.to_string())),
                (Err(lost), _) => return Err(lost),
            };
            match tag {
                b'Z' => return outcome,
                b'E' if outcome.is_ok() => outcome = Err(Failure::refused(&body)),
                // Notices, settings and notifications come at any time.
                b'E' | b'N' | b'S' | b'A' => {}
                _ if outcome.is_err() => {}
                tag => see(tag, body).ok_or_else(out_of_step)?,
            }
        }
    }

    /// The next message: its tag and its body.
    fn receive(&mut self, runtime: &Runtime) -> Result<(u8, Bytes)> {
        loop {
            if let Some((head, _)) = self.input.split_first_chunk::<5>() {
                let [tag, length @ ..] = *head;
                let length = u32::from_be_bytes(length) as usize;
                if length < 4 {
                    return Err(out_of_step());
                }
                if self.input.len() > length {
                    let mut body = self.input.split_to(length + 1).freeze();
                    body.advance(5);
                    return Ok((tag, body));
                }
                self.input.reserve(length + 1 - self.input.len());
            }
            let count =
                self.stream.receive(runtime, &mut self.room).map_err(|error| Failure::lost(&error))?;
            if count == 0 {
                return Err(Failure::Lost("the server closed the connection".to_owned()));
            }
            self.input.extend_from_slice(&self.room[..count]);
        }
    }
}

fn out_of_step() -> Failure {
    Failure::Lost("the server said something that nobody had asked for".to_owned())
}

/// A type by its number; those that are not built in are read as nothing.
fn kind(number: u32) -> Type {
    Type::from_oid(number).unwrap_or(Type::UNKNOWN)
}

fn message(out: &mut BytesMut, tag: u8, body: impl FnOnce(&mut BytesMut)) {
    out.put_u8(tag);
    let at = out.len();
    out.put_i32(0);
    body(out);
    let length = (out.len() - at) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// Writes some bytes and a text that ends with a zero.
fn string(out: &mut BytesMut, before: &[u8], text: &str) {
    out.put_slice(before);
    out.put_slice(text.as_bytes());
    out.put_u8(0);
}

/// How many rows a statement touched: the last word of what the server says at its end.
fn touched(body: &[u8]) -> u64 {
    let text = std::str::from_utf8(body).unwrap_or_default().trim_end_matches('\0');
    text.rsplit(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_statement_says_how_many_rows_it_touched() {
        assert_eq!(touched(b"INSERT 0 12\0"), 12);
        assert_eq!(touched(b"UPDATE 3\0"), 3);
        assert_eq!(touched(b"BEGIN\0"), 0);
        assert_eq!(touched(b""), 0);
    }

    #[test]
    fn messages_have_their_length() {
        let mut out = BytesMut::new();
        message(&mut out, b'P', |out| string(out, b"S", "ab"));
        message(&mut out, b'S', |_| {});
        assert_eq!(&out[..], b"P\0\0\0\x08Sab\0S\0\0\0\x04");
    }
}
