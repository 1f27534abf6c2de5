//! Sends response bodies: in small pieces, counted while they are buffered, and watched if the reader can stall them.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{HeaderName, Response, StatusCode};
use hyper::body::{Body as _, Frame, SizeHint};

use crate::body::{Body, BodyError, Polled};
use crate::connections::{
    Buffer, ByteReservation, Connection, LimitExceeded, PendingRequest, ResponseWatch, with_guard,
};
use crate::errors::Failure;
use crate::respond::{EventsBody, StaticBody};

/// The largest chunk that is handed to the HTTP library, which buffers beyond our control.
const PIECE: usize = 8 * 1024;
/// On HTTP/1 a connection has one response, and one this small is in the connection's buffers anyway.
const UNCOUNTED: usize = 16 * 1024;
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The body of a response being sent.
pub(crate) struct Outgoing {
    body: Body,
    watched: Watch,
    /// Where the events of a stream are counted.
    events: Option<Arc<Connection>>,
    begun: PendingRequest,
}

/// Guards that are held while any byte of a streamed response is in memory.
type Watch = Option<Arc<(Option<ByteReservation>, Option<ResponseWatch>)>>;

/// Properties of a request that matter when its response is sent.
#[derive(Clone, Copy)]
pub(crate) struct RequestInfo {
    /// Whether the request only read data: such a response can be replaced by an error.
    pub(crate) is_read: bool,
    /// Whether responses share the connection.
    pub(crate) is_multiplexed: bool,
}

/// Sends a response; it is replaced by an error if too much is already buffered.
pub(crate) fn send(
    connection: &Arc<Connection>,
    mut begun: PendingRequest,
    response: Response<Body>,
    asked: RequestInfo,
) -> Response<Outgoing> {
    let (parts, body) = response.into_parts();
    let is_kept = parts.extensions.get::<StaticBody>().is_some();
    let is_events = parts.extensions.get::<EventsBody>().is_some();
    let held = match &body {
        Body::Whole(_) if is_kept => Ok(None),
        Body::Whole(bytes) if bytes.len() <= UNCOUNTED && !asked.is_multiplexed => Ok(None),
        Body::Whole(bytes) => connection.reserve(Buffer::Response, bytes.len(), !asked.is_read).map(Some),
        // Its events are counted one by one, while they wait to be read.
        Body::Streamed(_) if is_events => Ok(None),
        Body::Streamed(_) => connection.reserve_stream(!asked.is_read).map(Some),
    };
    let held = match held {
        Ok(held) => held,
        Err(LimitExceeded) => {
            let id = parts.headers.get(REQUEST_ID).cloned();
            let refused = refusal(id.as_ref().and_then(|id| id.to_str().ok()).unwrap_or_default());
            let (mut parts, body) = refused.into_parts();
            parts.headers.extend(id.map(|id| (REQUEST_ID, id)));
            return Response::from_parts(parts, Outgoing { body, watched: None, events: None, begun });
        }
    };
    let stalled = asked.is_multiplexed.then(|| connection.watch());
    let is_watched = held.is_some() || stalled.is_some();
    let watched = is_watched.then(|| Arc::new((held, stalled)));
    let body = match (body, &watched) {
        (Body::Whole(bytes), Some(watched)) if !bytes.is_empty() => {
            Body::Whole(with_guard(bytes, Arc::clone(watched)))
        }
        (body, _) => body,
    };
    if body.is_end_stream() {
        begun.answered();
    }
    let events = is_events.then(|| Arc::clone(connection));
    Response::from_parts(parts, Outgoing { body, watched, events, begun })
}

/// A piece of a stream that is watched and counted while it is in memory. Where too many events wait to be read, the stream
/// breaks off: its reader continues after the last one that it has.
fn held(
    frame: Frame<Bytes>,
    watched: &Watch,
    events: Option<&Arc<Connection>>,
) -> Result<Frame<Bytes>, BodyError> {
    let length = frame.data_ref().map_or(0, Bytes::len);
    let counted = events.map(|connection| connection.reserve(Buffer::Events, length, false)).transpose();
    let guards =
        (counted.map_err(|LimitExceeded| BodyError::new("too many events wait to be read"))?, watched);
    Ok(match guards {
        (None, None) => frame,
        (counted, watched) => {
            let guards = (counted, watched.clone());
            frame.map_data(|bytes| with_guard(bytes, guards))
        }
    })
}

fn refusal(request_id: &str) -> Response<Body> {
    let message = "Too many responses are waiting to be read, on this connection, for your address or in total: read those first, then try again.";
    Failure::later(StatusCode::SERVICE_UNAVAILABLE, message, 1).into_response(request_id)
}

impl hyper::body::Body for Outgoing {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        let stalled = this.watched.as_ref().and_then(|watched| watched.1.as_ref());
        stalled.inspect(|stalled| stalled.moves());
        let frame = match &mut this.body {
            Body::Whole(bytes) if bytes.is_empty() => return Poll::Ready(None),
            Body::Whole(bytes) => Frame::data(bytes.split_to(bytes.len().min(PIECE))),
            Body::Streamed(stream) => match ready!(Pin::new(stream).poll_frame(cx)) {
                Some(Ok(frame)) => match held(frame, &this.watched, this.events.as_ref()) {
                    Ok(frame) => frame,
                    Err(too_much) => return Poll::Ready(Some(Err(too_much))),
                },
                end => {
                    if end.is_none() {
                        this.begun.answered();
                    }
                    return Poll::Ready(end);
                }
            },
        };
        stalled.inspect(|stalled| stalled.waits());
        if this.body.is_end_stream() {
            this.begun.answered();
        }
        Poll::Ready(Some(Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
