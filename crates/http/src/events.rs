//! Streams of server-sent events: they go on until the function has no more to say, or the server stops.

use std::future::{Future, ready};

use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use podium_api::deployment_logs::DeploymentLogEntry;
use podium_api::events::Event;
use podium_api::operations::Operation;
use podium_api::{Events, Reply};
use podium_app::events::EventStream;
use podium_app::log_events::LogEvents;
use podium_app::operations::OperationEvents;

use crate::bind::Env;
use crate::body;
use crate::errors::Failure;
use crate::respond::{EventsBody, ReplyOutput, WriteReply};

/// Tells proxies to forward each event at once.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// What events are read from: the next chunk once there is one, and `None` at the end.
pub(crate) trait EventSource: Send + 'static {
    fn next(&mut self) -> impl Future<Output = Option<podium_app::Result<Vec<u8>>>> + Send;
}

/// The data of events, and what they are read from.
pub(crate) trait Followed {
    type Source: EventSource;
}

macro_rules! followed {
    ($($data:ty => $source:ty)+) => {$(
        impl Followed for $data {
            type Source = $source;
        }

        impl EventSource for $source {
            fn next(&mut self) -> impl Future<Output = Option<podium_app::Result<Vec<u8>>>> + Send {
                Self::next(self)
            }
        }
    )+};
}

followed! {
    DeploymentLogEntry => LogEvents
    Event => EventStream
    Operation => OperationEvents
}

impl<T: Followed> WriteReply for Events<T>
where
    Self: Reply,
{
    type Value = T::Source;

    fn write(events: T::Source, env: &Env) -> impl Future<Output = Result<ReplyOutput, Failure>> + Send {
        let stopping = env.stopping.subscribe();
        let chunks = stream::unfold((events, stopping), |(mut events, mut stopping)| async {
            let next = tokio::select! {
                next = events.next() => next?,
                _ = stopping.wait_for(|stops| *stops) => return None,
            };
            Some((next.map(Bytes::from).map_err(body::BodyError::new), (events, stopping)))
        });
        let mut response = Response::new(body::stream(chunks));
        response.extensions_mut().insert(EventsBody);
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        headers.insert(BUFFERING, HeaderValue::from_static("no"));
        ready(Ok(ReplyOutput::Streamed(response)))
    }
}
