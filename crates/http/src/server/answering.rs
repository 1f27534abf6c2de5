//! What answers a request, as one future of a hidden type.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use http::Response;
use http::request::Parts;
use podium_app::front_door;

use super::Server;
use crate::body::{Body, Unread};
use crate::errors::Failure;
use crate::front_door::OwnOrigin;
use crate::peer::Peer;

/// Answers a request: with the id of the operation, or a fault where it panicked.
type Answering<'a> =
    Pin<Box<dyn Future<Output = Result<(&'static str, Response<Body>), Failure>> + Send + 'a>>;

impl Server {
    /// On the heap: what answers a request is large, and is moved into what notes the caller. Its type is hidden, so that
    /// what drives connections is compiled without it.
    pub(super) fn answering<'a>(
        &'a self,
        (parts, body): (Parts, Unread),
        (address, peer): (IpAddr, Arc<Peer>),
        (preflight, own): (Option<Response<Body>>, Option<OwnOrigin>),
        (request_id, started): (&'a str, Instant),
    ) -> Answering<'a> {
        let answering = async move {
            match (preflight, own) {
                (Some(response), _) => ("", response),
                (None, Some(own)) => {
                    let knock = self.knock(parts, (address, peer), request_id);
                    let passing = self.0.front_door.at_own_origin(knock, body, own);
                    (
                        front_door::OPERATION_ID,
                        self.counted(&self.0.passages, passing, request_id, started).await,
                    )
                }
                (None, None) => self.dispatch(parts, body, (address, peer), request_id, started).await,
            }
        };
        Box::pin(self.0.panics.caught(answering, request_id))
    }
}
