//! The handling of a request, as one future of an erased type.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use http::Response;
use http::request::Parts;
use podium_app::front_door;

use super::Server;
use crate::body::{Body, RequestBody};
use crate::errors::Failure;
use crate::front_door::OwnOrigin;
use crate::peer::Peer;

/// Resolves to the id of the operation and its response, or an internal error if it panicked.
type Answering<'a> =
    Pin<Box<dyn Future<Output = Result<(&'static str, Response<Body>), Failure>> + Send + 'a>>;

impl Server {
    /// Boxed: the future is large, and would be moved into the wrapper that records the caller. Its type is erased, so that
    /// the code that drives connections does not contain it.
    pub(super) fn answering<'a>(
        &'a self,
        (parts, body): (Parts, RequestBody),
        (address, peer): (IpAddr, Arc<Peer>),
        (preflight, own): (Option<Response<Body>>, Option<OwnOrigin>),
        (request_id, started): (&'a str, Instant),
    ) -> Answering<'a> {
        let answering = async move {
            match (preflight, own) {
                (Some(response), _) => ("", response),
                (None, Some(own)) => {
                    let inbound = self.inbound(parts, (address, peer), request_id);
                    // On its own: otherwise every request would be as large as the largest, and be copied several times.
                    let passing = Box::pin(self.0.front_door.at_own_origin(inbound, body, own));
                    (
                        front_door::OPERATION_ID,
                        self.counted(&self.0.forwarded, passing, request_id, started).await,
                    )
                }
                (None, None) => self.dispatch(parts, body, (address, peer), request_id, started).await,
            }
        };
        Box::pin(self.0.panics.caught(answering, request_id))
    }
}
