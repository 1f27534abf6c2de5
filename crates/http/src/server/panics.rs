//! A panic costs the request that it happened in and nothing else: it is answered with 500, logged and counted, and the
//! connection goes on.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use futures_util::FutureExt as _;
use http::Response;

use super::Server;
use crate::body::Body;
use crate::errors::Failure;
use crate::metrics::Meter;

/// How many requests panicked.
#[derive(Debug, Default)]
pub(crate) struct Panics(AtomicU64);

impl Panics {
    /// What came of answering a request; a fault where it panicked.
    ///
    /// What requests share stays usable: it is behind locks whose users do not mind that a holder has panicked, or in
    /// the database, whose units end by themselves.
    pub(crate) async fn caught<T>(
        &self,
        answering: impl Future<Output = T>,
        request_id: &str,
    ) -> Result<T, Failure> {
        AssertUnwindSafe(answering).catch_unwind().await.map_err(|panic| {
            self.0.fetch_add(1, Ordering::Relaxed);
            tracing::error!(reason = reason(&*panic), request_id, "answering a request panicked");
            Failure::fault()
        })
    }

    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given")
}

impl Server {
    /// Counts an answer, be it that of a request that panicked.
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

    /// The same server, with one endpoint that panics.
    #[cfg(test)]
    pub(crate) fn panicking(mut self, endpoint: &str) -> Self {
        let shared = std::sync::Arc::get_mut(&mut self.0).expect("nobody else has it yet");
        let route = shared.routes.iter_mut().find(|route| route.endpoint.id == endpoint);
        route.expect("there is such an endpoint").handler = crate::bind::Handler::Panicking;
        self
    }
}
