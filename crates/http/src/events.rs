//! Streams of server-sent events: they go on until the operation has no more to say, or the server stops.

use std::future::Future;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Response};
use podium_api::operation::{Input, Permitted};
use podium_api::path::PathParams;
use podium_api::{Events, Operation, Reply, Spec};
use podium_app::log_events::LogEvents;
use podium_app::{Call, Cx, Error};
use podium_domain::Scope;

use crate::bind::{Endpoint, Env, guarded};
use crate::body;
use crate::incoming::Checks;
use crate::respond::Sent;

/// Tells proxies in between to pass on each event at once.
const BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Binds an operation that answers with events.
pub(crate) fn bind_events<P, Q, B, T, F, Fut>(
    operation: &Operation<Permitted, P, Q, B, Events<T>>,
    spec: &'static Spec,
    checks: Checks,
    env: Arc<Env>,
    function: F,
) -> Endpoint
where
    P: PathParams,
    Q: Input,
    B: Input,
    Events<T>: Reply,
    F: Fn(Cx<Scope>, Call<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<LogEvents, Error>> + Send + 'static,
{
    debug_assert_eq!(operation.spec.id, spec.id);
    let stopping = env.stopping.clone();
    guarded::<Permitted, P, Q, B, _, _>(spec, checks, env, move |cx, call| {
        let (running, stopping) = (function(cx, call), stopping.subscribe());
        async move {
            let events = running.await?;
            let chunks = stream::unfold((events, stopping), |(mut events, mut stopping)| async {
                let next = tokio::select! {
                    next = events.next() => next?,
                    _ = stopping.wait_for(|stops| *stops) => return None,
                };
                Some((next.map(Bytes::from).map_err(body::Broken::new), (events, stopping)))
            });
            let mut response = Response::new(body::stream(chunks));
            let headers = response.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
            headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            headers.insert(BUFFERING, HeaderValue::from_static("no"));
            Ok(Sent::Streamed(response))
        }
    })
}
