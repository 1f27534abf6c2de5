//! The relay between one environment and the plane's own database server.
//!
//! A server has a place for every connection from the moment that it is opened, before it knows whose it is. Whoever
//! could reach the server's socket could take all of them. So each environment has a socket of its own, and a process that
//! passes on a limited number of connections. It outlives the control plane, like the environment and the server.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rustix::thread::set_no_new_privs;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Semaphore;

use super::holder::{become_user, drop_capabilities};
use crate::local::layout::missing_is_none;

/// The pause after a local failure.
const PAUSE: Duration = Duration::from_millis(100);

/// A relay.
#[derive(Clone, Debug)]
pub struct DatabaseRelay {
    /// The user to become: the server's.
    pub user: u32,
    /// The user whose connections are passed on.
    pub client: u32,
    /// Its socket.
    pub listen: PathBuf,
    /// The server's socket; of several, the first that can be connected to.
    pub to: Vec<PathBuf>,
    /// How many connections there may be at once.
    pub most: usize,
}

impl DatabaseRelay {
    /// Relays until it is ended. Returns why it cannot. It must be called while this process has a single thread.
    pub fn run(self) -> String {
        match self.relay() {
            Ok(()) => "the relay to the database server ended".into(),
            Err(error) => format!("the relay to the database server failed: {error}"),
        }
    }

    fn relay(self) -> io::Result<()> {
        become_user(Some(self.user), false)?;
        set_no_new_privs(true)?;
        drop_capabilities()?;
        let listener = self.listen()?;
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(self.serve(listener))
    }

    fn listen(&self) -> io::Result<std::os::unix::net::UnixListener> {
        // Of an earlier relay, which is gone.
        missing_is_none(fs::remove_file(&self.listen))?;
        let listener = std::os::unix::net::UnixListener::bind(&self.listen)?;
        fs::set_permissions(&self.listen, fs::Permissions::from_mode(0o777))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }

    async fn serve(self, listener: std::os::unix::net::UnixListener) -> io::Result<()> {
        let listener = UnixListener::from_std(listener)?;
        let (places, to): (_, Arc<[PathBuf]>) = (Arc::new(Semaphore::new(self.most)), self.to.into());
        loop {
            let Ok((mut inside, _)) = listener.accept().await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            // Others do not even count.
            let is_clients = inside.peer_cred().is_ok_and(|peer| peer.uid() == self.client);
            let Some(place) = is_clients.then(|| Arc::clone(&places).try_acquire_owned().ok()).flatten()
            else {
                continue;
            };
            let to = Arc::clone(&to);
            tokio::spawn(async move {
                let _place = place;
                let Ok(mut there) = connect(&to).await else { return };
                let _ = tokio::io::copy_bidirectional(&mut inside, &mut there).await;
            });
        }
    }
}

async fn connect(sockets: &[PathBuf]) -> io::Result<UnixStream> {
    let mut why = io::ErrorKind::NotFound.into();
    for socket in sockets {
        match UnixStream::connect(socket).await {
            Ok(stream) => return Ok(stream),
            Err(error) => why = error,
        }
    }
    Err(why)
}
