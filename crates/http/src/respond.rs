//! Answers: JSON with its `ETag`, nothing, or a stream.

use std::future::{Future, ready};

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, ETAG};
use http::{HeaderValue, Response, StatusCode};
use hyper::body::Body as _;
use podium_api::{Blank, Many, Nothing, One, Reply, ReplyKind};
use podium_app::Replay;
use xxhash_rust::xxh3::xxh3_64;

use crate::bind::Env;
use crate::body::{Body, whole};
use crate::errors::Failure;

/// Marks an answer that is passed on as it comes: whoever made it has compressed it, or streams it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PassedOn;

/// Marks an answer whose bytes are kept for everybody: they are compressed already, and cost nothing while they wait.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept;

/// The head of an answer, for whoever asked for no more.
pub(crate) fn head_of(response: Response<Body>) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    if !parts.headers.contains_key(CONTENT_LENGTH)
        && let Some(length) = body.size_hint().exact()
    {
        parts.headers.insert(CONTENT_LENGTH, length.into());
    }
    // There is nothing left to compress.
    parts.extensions.insert(PassedOn);
    Response::from_parts(parts, whole(""))
}

/// A kind of reply, and how what a function answers with becomes one.
pub(crate) trait Answered: Reply {
    /// What the function answers with.
    type Value: Send + 'static;
    /// Writes it.
    fn write(value: Self::Value, env: &Env) -> impl Future<Output = Result<Sent, Failure>> + Send;
}

macro_rules! written_whole {
    ($([$($type:ident)?] $reply:ty)+) => {$(
        impl<$($type)?> Answered for $reply
        where
            Self: Reply,
        {
            type Value = Self;

            fn write(value: Self, _: &Env) -> impl Future<Output = Result<Sent, Failure>> + Send {
                ready(Written::new(&value).map(Sent::Written))
            }
        }
    )+};
}

written_whole! { [T] One<T> [T] Many<T> [] Nothing [] Blank }

/// What an endpoint answers with.
pub(crate) enum Sent {
    /// A whole answer.
    Written(Written),
    /// An answer that is sent as it is read.
    Streamed(Response<Body>),
}

impl Sent {
    /// The response; `known` is the `If-None-Match` of a read.
    pub(crate) fn into_response(self, known: Option<&HeaderValue>) -> Response<Body> {
        match self {
            Self::Written(written) => written.into_response(known),
            Self::Streamed(response) => response,
        }
    }
}

/// A whole answer.
pub(crate) struct Written {
    kind: ReplyKind,
    tag: Option<HeaderValue>,
    bytes: Bytes,
}

impl Written {
    /// Writes the reply of an endpoint.
    pub(crate) fn new<R: Reply>(reply: &R) -> Result<Self, Failure> {
        let (version, body) = reply.parts();
        let mut bytes = Vec::with_capacity(1024);
        if let Some(body) = body {
            serde_json::to_writer(&mut bytes, body).map_err(|error| {
                tracing::error!(%error, "a reply could not be written");
                Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "Something went wrong on our side.")
            })?;
        }
        Ok(Self::of(R::KIND, version, bytes))
    }

    /// An answer that was given before.
    pub(crate) fn again(kind: ReplyKind, replay: Replay) -> Self {
        Self::of(kind, replay.version, replay.body)
    }

    fn of(kind: ReplyKind, version: Option<i64>, bytes: Vec<u8>) -> Self {
        Self { kind, tag: version.and_then(|version| etag(version, &bytes)), bytes: bytes.into() }
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

/// The version that `If-Match` compares, and a hash of the body that `If-None-Match` compares as well.
fn etag(version: i64, body: &[u8]) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("\"{version}-{:016x}\"", xxh3_64(body))).ok()
}

pub(crate) fn names(header: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(header), Ok(tag)) = (header.to_str(), tag.to_str()) else { return false };
    header
        .split(',')
        .map(str::trim)
        .any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}
