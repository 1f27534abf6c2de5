//! The context of a call that is not authenticated by a token: the request carries its own proof.

use crate::App;
use crate::request::Request;

/// A call of an endpoint that anybody may call.
pub struct PublicCx {
    pub app: App,
    pub request: Request,
    /// The token, if one was sent; it has not been verified.
    pub bearer: Option<String>,
}
