//! Streams of server-sent events: they go on until the function has no more to say, or the server stops.

use std::future::{Future, ready};

use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use podium_api::Events;
use podium_api::deployment_logs::DeploymentLogEntry;
use podium_api::operations::Operation;
use podium_app::log_events::LogEvents;
use podium_app::operations::OperationEvents;

use crate::bind::Env;
use crate::body::{self, Body};
use crate::errors::Failure;
use crate::respond::{ReplyOutput, WriteReply};

/// Tells proxies to forward each event at once.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Says which source the events of a type come from.
macro_rules! streams {
    ($($event:ty => $source:ty),+ $(,)?) => {$(
        impl WriteReply for Events<$event> {
            type Value = $source;

            fn write(events: $source, env: &Env) -> impl Future<Output = Result<ReplyOutput, Failure>> + Send {
                let stopping = env.stopping.subscribe();
                let chunks = stream::unfold((events, stopping), |(mut events, mut stopping)| async {
                    let next = tokio::select! {
                        next = events.next() => next?,
                        _ = stopping.wait_for(|stops| *stops) => return None,
                    };
                    Some((next.map(Bytes::from).map_err(body::BodyError::new), (events, stopping)))
                });
                ready(Ok(ReplyOutput::Streamed(respond(body::stream(chunks)))))
            }
        }
    )+};
}

streams! { DeploymentLogEntry => LogEvents, Operation => OperationEvents }

fn respond(events: Body) -> Response<Body> {
    let mut response = Response::new(events);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(BUFFERING, HeaderValue::from_static("no"));
    response
}
