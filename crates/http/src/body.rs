//! Bodies of answers: whole, or sent as they are read.

use std::convert::Infallible;
use std::fmt;

use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::body::Frame;

/// The body of an answer.
pub type Body = Either<Full<Bytes>, UnsyncBoxBody<Bytes, Broken>>;

/// Why a body ends too early: the other side sees the connection break off.
#[derive(Debug)]
pub struct Broken(String);

impl Broken {
    pub(crate) fn new(why: impl fmt::Display) -> Self {
        Self(why.to_string())
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Broken {}

/// A whole body.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Either::Left(Full::new(bytes.into()))
}

/// A body that is sent as it is read. Whoever reads it may ask again after its end, as compression does.
pub(crate) fn stream(chunks: impl Stream<Item = Result<Bytes, Broken>> + Send + 'static) -> Body {
    let frames = chunks.map(|chunk| chunk.map(Frame::data)).fuse();
    Either::Right(StreamBody::new(frames).boxed_unsync())
}

/// The body of a request, before it is read.
pub(crate) type Unread = UnsyncBoxBody<Bytes, Broken>;

/// Wraps the body of a request.
pub(crate) fn unread<B>(body: B) -> Unread
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: fmt::Display,
{
    body.map_err(Broken::new).boxed_unsync()
}

/// The body of a request that has none.
pub(crate) fn nothing() -> Unread {
    Full::new(Bytes::new()).map_err(|never: Infallible| match never {}).boxed_unsync()
}
