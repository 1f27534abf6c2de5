//! Sockets that were opened before this process, by whoever starts it: the port is never free while it restarts, so
//! nobody else can take it, and clients wait instead of being refused.

use listenfd::ListenFd;
use tokio::net::TcpListener;

use crate::failure::Failure;

/// The listening socket that this process was started with, if there is one (`LISTEN_FDS`). It is not passed on to
/// what this process starts.
pub(crate) fn inherited() -> Result<Option<TcpListener>, Failure> {
    let mut given = ListenFd::from_env();
    let wrong = |error: std::io::Error| format!("the inherited socket cannot be used: {error}");
    match given.len() {
        0 => Ok(None),
        1 => {
            let listener = given.take_tcp_listener(0).map_err(wrong)?;
            let Some(listener) = listener else { return Ok(None) };
            listener.set_nonblocking(true).map_err(wrong)?;
            Ok(TcpListener::from_std(listener).map(Some).map_err(wrong)?)
        }
        count => Err(format!("this process inherited {count} sockets, but listens on one").into()),
    }
}
