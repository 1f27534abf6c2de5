//! Who is at the other end of a connection: its address and, where environments run on this machine, whether it is a
//! process of one.
//!
//! Environments run code that nobody vouches for, on the machine that the console may be on. A cookie that such a
//! process got hold of must not work for it, and on loopback the address tells nothing.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::OnceCell;

use crate::connections::Connection;
use crate::planes::PlanesInScope;

/// The other end of a connection.
pub(crate) struct Peer {
    pub(crate) address: SocketAddr,
    /// Our own end.
    own: Option<SocketAddr>,
    /// The connection itself, if it is a real one.
    pub(crate) connection: Option<Arc<Connection>>,
    is_of_an_environment: OnceCell<bool>,
}

impl Peer {
    pub(crate) fn new(
        address: SocketAddr,
        own: Option<SocketAddr>,
        connection: Option<Arc<Connection>>,
    ) -> Self {
        Self { address, own, connection, is_of_an_environment: OnceCell::new() }
    }

    /// Whether it is a process of an environment. Determined once per connection.
    pub(crate) async fn is_of_an_environment(&self, planes: &PlanesInScope) -> bool {
        *self.is_of_an_environment.get_or_init(|| planes.run_peer(self.address, self.own)).await
    }
}
