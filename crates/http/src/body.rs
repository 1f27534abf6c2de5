//! Bodies of answers: whole, or sent as they are read.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::Stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Either, Full, StreamBody};
use hyper::body::Frame;

/// The body of an answer.
pub type Body = Either<Full<Bytes>, UnsyncBoxBody<Bytes, Broken>>;

/// Why the body of an answer ends too early: the client sees the connection break off.
pub type Broken = Box<dyn std::error::Error + Send + Sync>;

/// A whole body.
pub(crate) fn whole(bytes: impl Into<Bytes>) -> Body {
    Either::Left(Full::new(bytes.into()))
}

/// A body that is sent as it is read.
pub(crate) fn stream(chunks: impl Stream<Item = Result<Bytes, Broken>> + Send + 'static) -> Body {
    let frames = futures_util::StreamExt::map(chunks, |chunk| chunk.map(Frame::data));
    Either::Right(StreamBody::new(frames).boxed_unsync())
}

/// The body of a request, before it is read.
pub(crate) type Unread = UnsyncBoxBody<Bytes, Broken>;

/// Wraps the body of a request.
pub(crate) fn unread<B>(body: B) -> Unread
where
    B: hyper::body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Broken>,
{
    body.map_err(Into::into).boxed_unsync()
}

/// The body of a request that has none.
pub(crate) fn nothing() -> Unread {
    Full::new(Bytes::new()).map_err(|never: Infallible| match never {}).boxed_unsync()
}
