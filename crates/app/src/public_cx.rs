//! The context of a call that is not authenticated by a token: the request carries its own proof.

use crate::App;
use crate::cx::Request;

/// A call of an endpoint that anybody may call.
pub struct PublicCx {
    /// The application.
    pub app: App,
    /// What the request says of itself.
    pub request: Request,
    /// The token, where one was sent along; nobody has looked at it.
    pub bearer: Option<String>,
}
