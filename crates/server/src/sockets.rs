//! Inherited sockets, opened by the service manager: the port is never free while this process restarts, so no other
//! process can take it, and clients wait instead of being refused.

use listenfd::ListenFd;
use tokio::net::TcpListener;

use crate::failure::Failure;

/// The inherited listening socket, if there is one (`LISTEN_FDS`). It is not passed on to child processes.
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
