//! Responses: JSON with its `ETag`, no content, or a stream.

use std::cell::Cell;
use std::future::{Future, ready};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG};
use http::{HeaderValue, Response, StatusCode};
use hyper::body::Body as _;
use podium_api::json::Written as _;
use podium_api::{Blank, Many, Nothing, One, Reply, ReplyKind, hex};
use podium_app::Replay;
use podium_app::secrets::sha256;

use crate::bind::Env;
use crate::body::{Body, whole};
use crate::errors::Failure;

/// How many bytes of the SHA-256 an `ETag` contains: a collision would take 2^96 attempts.
const DIGEST: usize = 24;

/// A draft that has grown beyond this is not kept for the next response.
const LARGEST_DRAFT: usize = 256 * 1024;

thread_local! {
    /// Responses are serialized here and copied once, instead of each growing a buffer of its own.
    static DRAFT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Marks a response that is passed through unchanged: it is already compressed, or a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Passthrough;

/// Marks a response with a shared static body: it is already compressed, and buffering it costs nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StaticBody;

/// Marks a stream of events, which mostly waits for something to happen: only what it sends is buffered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventsBody;

/// The head of a response, for HEAD requests.
pub(crate) fn head_of(response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    if !parts.headers.contains_key(CONTENT_LENGTH)
        && let Some(length) = body.size_hint().exact()
    {
        parts.headers.insert(CONTENT_LENGTH, length.into());
    }
    // There is nothing left to compress.
    parts.extensions.insert(Passthrough);
    Response::from_parts(parts, whole(""))
}

/// Turns what a function returns into a reply of this kind.
pub(crate) trait WriteReply: Reply {
    type Value: Send + 'static;
    fn write(value: Self::Value, env: &Env) -> impl Future<Output = Result<ReplyOutput, Failure>> + Send;
}

macro_rules! written_whole {
    ($([$($type:ident)?] $reply:ty)+) => {$(
        impl<$($type)?> WriteReply for $reply
        where
            Self: Reply,
        {
            type Value = Self;

            fn write(value: Self, _: &Env) -> impl Future<Output = Result<ReplyOutput, Failure>> + Send {
                ready(WrittenReply::new(&value).map(ReplyOutput::WrittenReply))
            }
        }
    )+};
}

written_whole! { [T] One<T> [T] Many<T> [] Nothing [] Blank }

pub(crate) enum ReplyOutput {
    WrittenReply(WrittenReply),
    Streamed(Response<Body>),
}

impl ReplyOutput {
    /// The response; `known` is the `If-None-Match` of a read.
    pub(crate) fn into_response(self, known: Option<&HeaderValue>) -> Response<Body> {
        match self {
            Self::WrittenReply(written) => written.into_response(known),
            Self::Streamed(response) => response,
        }
    }
}

#[derive(Clone)]
pub(crate) struct WrittenReply {
    kind: ReplyKind,
    tag: Option<HeaderValue>,
    bytes: Bytes,
}

impl WrittenReply {
    pub(crate) fn new<R: Reply>(reply: &R) -> Result<Self, Failure> {
        let (version, body) = reply.parts();
        let mut draft = DRAFT.take();
        draft.clear();
        if let Some(body) = body {
            body.write(&mut draft).map_err(|error| {
                tracing::error!(%error, "could not serialize a response");
                Failure::server(StatusCode::INTERNAL_SERVER_ERROR, "Internal server error.")
            })?;
        }
        let bytes = draft.to_vec();
        if draft.capacity() <= LARGEST_DRAFT {
            DRAFT.set(draft);
        }
        Ok(Self::of(R::KIND, version, bytes))
    }

    pub(crate) fn again(kind: ReplyKind, replay: Replay) -> Self {
        Self::of(kind, replay.version, replay.body)
    }

    fn of(kind: ReplyKind, version: Option<i64>, bytes: Vec<u8>) -> Self {
        let bytes = podium_api::text::escaped_json_bytes(bytes);
        Self { kind, tag: version.and_then(|version| etag(version, &bytes)), bytes: bytes.into() }
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The response; `known` is the `If-None-Match` of a read.
    pub(crate) fn into_response(self, known: Option<&HeaderValue>) -> Response<Body> {
        let unchanged = self.tag.as_ref().zip(known).is_some_and(|(tag, known)| names(known, tag));
        let (status, bytes) = if unchanged {
            (StatusCode::NOT_MODIFIED, Bytes::new())
        } else {
            (StatusCode::from_u16(self.kind.status()).unwrap_or(StatusCode::OK), self.bytes)
        };
        let mut response = Response::new(whole(bytes));
        *response.status_mut() = status;
        if !unchanged && !matches!(self.kind, ReplyKind::Empty | ReplyKind::Blank) {
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        if let Some(tag) = self.tag {
            response.headers_mut().insert(ETAG, tag);
        }
        response
    }
}

/// The version that `If-Match` compares, and a digest of the body that `If-None-Match` compares too. Callers choose much of a
/// body, so the digest has to resist collisions. It has no key, so that it is the same on every replica and after a restart.
fn etag(version: i64, body: &[u8]) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("\"{version}-{}\"", hex(&sha256(body)[..DIGEST]))).ok()
}

pub(crate) fn names(header: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(header), Ok(tag)) = (header.to_str(), tag.to_str()) else { return false };
    header
        .split(',')
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}

#[cfg(test)]
mod tests {
    use xxhash_rust::xxh3::xxh3_64;

    use super::*;

    #[test]
    fn bodies_that_collided_before_have_different_etags() {
        // `ETag`s were xxh3_64 once. These two bodies with the same hash were found in half a minute.
        let zeros = |count| "0".repeat(count);
        let found = "90ce35150a79c551ad88562574493fe8a26d7771142c9c6c8b307730089b3a1c";
        let [one, other] = [zeros(117), [zeros(7).as_str(), found, &zeros(46)].concat()]
            .map(|name| format!("{{\"name\":\"{name}\"}}"));
        assert_eq!((one.len(), xxh3_64(one.as_bytes())), (other.len(), xxh3_64(other.as_bytes())));
        assert_ne!(etag(1, one.as_bytes()), etag(1, other.as_bytes()));
        assert_ne!(etag(1, one.as_bytes()), etag(2, one.as_bytes()), "the version is part of it");
    }

    #[test]
    fn an_etag_depends_on_version_and_body_only() {
        let tag = etag(7, b"abc").unwrap();
        assert_eq!(tag, "\"7-ba7816bf8f01cfea414140de5dae2223b00361a396177a9c\"");
    }
}
