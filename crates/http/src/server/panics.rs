//! A panic affects only the request that it happened in: the response is 500, the panic is logged and counted, and the
//! connection stays open. A response that panics after its status was sent is aborted, which the client can tell from a
//! complete one.

use std::any::Any;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use bytes::Bytes;
use futures_util::FutureExt as _;
use http::{HeaderValue, Response};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::SizeHint;

use super::{REQUEST_ID, Server};
use crate::body::{Body, BodyError, Polled};
use crate::compress::{Accepted, compress};
use crate::errors::Failure;
use crate::metrics::Meter;

/// How often this process has panicked.
static PANICS: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
pub(crate) struct Panics(());

impl Panics {
    /// Counts every panic in this process from now on, on any thread and whether it is caught or not: in requests, units of
    /// work, reconcilers and detached tasks.
    pub(super) fn watch() -> Self {
        static WATCHED: Once = Once::new();
        WATCHED.call_once(|| {
            let before = panic::take_hook();
            panic::set_hook(Box::new(move |panic| {
                PANICS.fetch_add(1, Ordering::Relaxed);
                before(panic);
            }));
        });
        Self(())
    }

    /// The result of handling a request; an internal error if it panicked.
    ///
    /// What requests share stays usable: it is behind locks whose users do not mind that a holder has panicked, or in
    /// the database, whose units end by themselves.
    pub(crate) async fn caught<T>(
        &self,
        answering: impl Future<Output = T>,
        request_id: &str,
    ) -> Result<T, Failure> {
        AssertUnwindSafe(answering).catch_unwind().await.map_err(|panic| {
            tracing::error!(reason = reason(&*panic), request_id, "answering a request panicked");
            Failure::fault()
        })
    }

    pub(crate) fn count(&self) -> u64 {
        PANICS.load(Ordering::Relaxed)
    }
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

/// A streamed body that ends with an error if it panics.
struct Guarded {
    /// `None` once it has panicked.
    body: Option<UnsyncBoxBody<Bytes, BodyError>>,
    request_id: HeaderValue,
}

impl hyper::body::Body for Guarded {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Polled {
        let this = self.get_mut();
        let Some(body) = &mut this.body else { return Poll::Ready(None) };
        let request_id = this.request_id.to_str().unwrap_or_default();
        match catch_unwind(AssertUnwindSafe(|| Pin::new(body).poll_frame(cx))) {
            Ok(polled) => {
                if let Poll::Ready(Some(Err(error))) = &polled {
                    tracing::warn!(%error, request_id, "a streamed response failed");
                }
                polled
            }
            Err(panic) => {
                tracing::error!(reason = reason(&*panic), request_id, "a streamed response panicked");
                this.body = None;
                Poll::Ready(Some(Err(BodyError::new("the response panicked"))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_some_and(hyper::body::Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::new, hyper::body::Body::size_hint)
    }
}

impl Server {
    /// Prepares a response for sending: compressed if the client accepts that, and guarded against panics.
    pub(crate) async fn finish(
        &self,
        mut response: Response<Body>,
        accepted: Option<Accepted>,
    ) -> Response<Body> {
        let request_id = response.headers().get(REQUEST_ID).cloned();
        let request_id = request_id.unwrap_or_else(|| HeaderValue::from_static(""));
        if let Some(accepted) = accepted {
            let id = request_id.to_str().unwrap_or_default();
            let caught = self.0.panics.caught(compress(response, accepted, self.compressing()), id).await;
            response = caught.unwrap_or_else(|failure| {
                let mut response = failure.into_response(id);
                response.headers_mut().insert(REQUEST_ID, request_id.clone());
                response
            });
        }
        response.map(|body| match body {
            Body::Streamed(body) => Body::Streamed(Guarded { body: Some(body), request_id }.boxed_unsync()),
            whole @ Body::Whole(_) => whole,
        })
    }

    /// Counts a response, including that of a request that panicked.
    pub(super) async fn counted(
        &self,
        meter: &Meter,
        answering: impl Future<Output = Response<Body>>,
        request_id: &str,
        started: Instant,
    ) -> Response<Body> {
        let caught = self.0.panics.caught(answering, request_id).await;
        let response = caught.unwrap_or_else(|failure| failure.into_response(request_id));
        meter.count(response.status().as_u16(), started.elapsed());
        response
    }

    /// The same server, with another handler behind one endpoint.
    #[cfg(test)]
    pub(crate) fn with_handler(mut self, endpoint: &str, handler: crate::bind::Handler) -> Self {
        let shared = std::sync::Arc::get_mut(&mut self.0).expect("nobody else has it yet");
        let route = shared.routes.iter_mut().find(|route| route.endpoint.id == endpoint);
        let route = route.expect("there is such an endpoint");
        let meter = crate::metrics::Meter::default();
        *route = std::sync::Arc::new(crate::routes::Route { endpoint: route.endpoint, handler, meter });
        self
    }
}
