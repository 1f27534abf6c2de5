//! Listeners on the ports of environments: opened when a port is first needed, and closed once its deployment is gone.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use podium_app::App;
use podium_app::front_door::ListenRequest;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::serve::bound_send_buffer;

/// How often ports allocated or released by other replicas are looked up.
const LOOK: Duration = Duration::from_secs(30);
/// How long to wait when no connection can be accepted.
const PAUSE: Duration = Duration::from_millis(50);

pub(crate) struct Arrived {
    pub(crate) port: u16,
    pub(crate) stream: TcpStream,
    pub(crate) peer: SocketAddr,
}

/// Listens on the ports of environments at an address, as long as the first is kept; connections come out of the channel.
pub(crate) fn listen(app: App, address: IpAddr) -> (AbortOnDrop, mpsc::Receiver<Arrived>) {
    let (arrivals, arrived) = mpsc::channel(1);
    let (asking, asked) = mpsc::channel(16);
    app.listeners.attach(asking);
    let open = Open { app, address, arrivals, listeners: HashMap::new() };
    (AbortOnDrop(tokio::spawn(open.run(asked))), arrived)
}

/// A task that ends with its owner.
pub(crate) struct AbortOnDrop(pub(crate) JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

struct Open {
    app: App,
    address: IpAddr,
    arrivals: mpsc::Sender<Arrived>,
    listeners: HashMap<u16, AbortOnDrop>,
}

impl Open {
    async fn run(mut self, mut asked: mpsc::Receiver<ListenRequest>) {
        let mut looks = tokio::time::interval(LOOK);
        loop {
            tokio::select! {
                _ = looks.tick() => self.look().await,
                ask = asked.recv() => match ask {
                    Some((port, answer)) => drop(answer.send(self.open(port).await)),
                    None => return,
                },
            }
        }
    }

    /// Makes the listeners those of the ports that are taken.
    async fn look(&mut self) {
        let ports = match self.app.environment_ports().await {
            Ok(ports) => ports,
            Err(error) => {
                tracing::warn!(%error, "cannot read the environments' ports; retrying soon");
                return;
            }
        };
        self.listeners.retain(|port, _| ports.contains(port));
        for port in ports {
            if let Err(error) = self.open(port).await {
                tracing::warn!(port, %error, "cannot listen on an environment's port");
            }
        }
    }

    async fn open(&mut self, port: u16) -> std::io::Result<()> {
        if self.listeners.contains_key(&port) {
            return Ok(());
        }
        let listener = TcpListener::bind((self.address, port)).await?;
        bound_send_buffer(&listener);
        let accepting = tokio::spawn(accept(listener, port, self.arrivals.clone()));
        self.listeners.insert(port, AbortOnDrop(accepting));
        Ok(())
    }
}

async fn accept(listener: TcpListener, port: u16, arrivals: mpsc::Sender<Arrived>) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                if arrivals.send(Arrived { port, stream, peer }).await.is_err() {
                    return;
                }
            }
            Err(error) => {
                tracing::warn!(%error, port, "could not accept a connection");
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}
