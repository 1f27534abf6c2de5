//! Bodies: of responses, complete or streamed, and of requests before they are read.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, SizeHint};

use crate::connections::Connection;
use crate::pace::{Pace, Paced};

pub enum Body {
    Whole(Bytes),
    Streamed(UnsyncBoxBody<Bytes, BodyError>),
}

pub(crate) type Polled = Poll<Option<Result<Frame<Bytes>, BodyError>>>;

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        match self.get_mut() {
            Self::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Self::Streamed(stream) => Pin::new(stream).poll_frame(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.is_empty(),
            Self::Streamed(stream) => stream.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Self::Streamed(stream) => stream.size_hint(),
        }
    }
}

/// Why a body ended early: the peer sees the connection abort.
#[derive(Debug)]
pub struct BodyError {
    why: String,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    BodyError,
    Late,
    TooMuch,
}

impl BodyError {
    pub(crate) fn new(why: impl fmt::Display) -> Self {
        Self { why: why.to_string(), kind: Kind::BodyError }
    }

    /// A body that came too slowly.
    pub(crate) fn timeout() -> Self {
        Self { why: "the body arrived too slowly".to_owned(), kind: Kind::Late }
    }

    /// Whether it came too slowly.
    pub(crate) fn is_timeout(&self) -> bool {
        self.kind == Kind::Late
    }

    /// A body that there is no room for.
    pub(crate) fn too_much() -> Self {
        Self { why: "too many bodies are being received".to_owned(), kind: Kind::TooMuch }
    }

    /// Whether there was no room for it.
    pub(crate) fn is_too_much(&self) -> bool {
        self.kind == Kind::TooMuch
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl std::error::Error for BodyError {}

pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Body::Whole(bytes.into())
}

/// A streamed body. It may be polled again after its end, as compression does.
pub(crate) fn stream(chunks: impl Stream<Item = Result<Bytes, BodyError>> + Send + 'static) -> Body {
    let frames = chunks.map(|chunk| chunk.map(Frame::data)).fuse();
    Body::Streamed(StreamBody::new(frames).boxed_unsync())
}

/// The body of a request, before it is read.
pub(crate) type RequestBody = UnsyncBoxBody<Bytes, BodyError>;

/// Wraps the body of a request, which breaks off when it comes too slowly or there is no room for it, wherever it is
/// read.
pub(crate) fn request_body<B>(body: B, pace: Pace, connection: Option<Arc<Connection>>) -> RequestBody
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: fmt::Display,
{
    Paced::new(body.map_err(BodyError::new).boxed_unsync(), pace, connection).boxed_unsync()
}

pub(crate) fn empty() -> RequestBody {
    Full::new(Bytes::new()).map_err(|never: Infallible| match never {}).boxed_unsync()
}
