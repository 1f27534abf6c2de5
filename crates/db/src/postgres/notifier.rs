//! Wake-ups between replicas: an empty NOTIFY after a commit, on a connection of its own.
//!
//! It says that something changed, never what: the receiver reads the change log. Inside the transactions
//! themselves a NOTIFY would serialize their commits. A wake-up may be spurious; around a lost connection there is
//! always one, because it is unknown what was missed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::poll_fn;
use tokio::sync::{Notify, watch};
use tokio_postgres::{AsyncMessage, Client};

use super::connect::{Connector, Driver};
use super::translate;
use crate::{Error, Result};

/// State shared by the pool's threads, the waiter and the notifier's thread.
#[derive(Default)]
pub(super) struct Notifier {
    outgoing: Notify,
    incoming: Notify,
    stopped: watch::Sender<bool>,
    own_process: AtomicI32,
}

impl Notifier {
    /// Notifies the other replicas soon; calls in the meantime are coalesced.
    pub(super) fn tell(&self) {
        self.outgoing.notify_one();
    }

    /// Resolves when another replica sent a notification.
    pub(super) async fn woken(&self) {
        self.incoming.notified().await;
    }

    /// Stops the thread after it has sent pending notifications.
    pub(super) fn stop(&self) {
        self.stopped.send_replace(true);
    }
}

pub(super) fn start(notifier: Arc<Notifier>, connector: Arc<Connector>) -> Result<JoinHandle<()>> {
    let runtime = super::connect::runtime()?;
    std::thread::Builder::new()
        .name("podium-pg-notify".to_owned())
        .spawn(move || runtime.block_on(work(&notifier, &connector)))
        .map_err(Error::unavailable)
}

async fn work(notifier: &Arc<Notifier>, connector: &Connector) {
    let mut stopped = notifier.stopped.subscribe();
    let mut owes = false;
    let mut pause = Duration::from_millis(50);
    loop {
        match converse(notifier, connector, &mut stopped, &mut owes, &mut pause).await {
            Ok(()) => return,
            Err(error) => tracing::debug!(%error, "lost the connection for notifications"),
        }
        tokio::select! {
            _ = stopped.wait_for(|stopped| *stopped) => return,
            () = tokio::time::sleep(pause) => pause = (pause * 2).min(Duration::from_secs(5)),
        }
    }
}

/// Sends and receives notifications over one connection until it is stopped or the connection breaks.
async fn converse(
    notifier: &Arc<Notifier>,
    connector: &Connector,
    stopped: &mut watch::Receiver<bool>,
    owes: &mut bool,
    pause: &mut Duration,
) -> Result<()> {
    let (client, connection) = connector.connect().await?;
    let mut listening = tokio::spawn(listen(Arc::clone(notifier), connection));
    let lost = |error| translate(&error);
    connector.prepare(&client).await.map_err(lost)?;
    let own = client.query_one("SELECT pg_backend_pid()", &[]).await.map_err(lost)?;
    notifier.own_process.store(own.try_get(0).map_err(lost)?, Ordering::Relaxed);
    client.batch_execute("LISTEN podium").await.map_err(lost)?;
    notifier.incoming.notify_one();
    *pause = Duration::from_millis(50);
    loop {
        if *owes {
            tell(&client).await?;
            *owes = false;
        }
        tokio::select! {
            biased;
            () = notifier.outgoing.notified() => *owes = true,
            _ = stopped.wait_for(|stopped| *stopped) => return Ok(()),
            _ = &mut listening => return Err(Error::unavailable("the connection was closed")),
        }
    }
}

async fn tell(client: &Client) -> Result<()> {
    client.batch_execute("NOTIFY podium").await.map_err(|error| translate(&error))
}

/// Drives the connection and wakes the waiter on every message from another replica.
async fn listen(notifier: Arc<Notifier>, mut connection: Driver) {
    let mut messages = poll_fn(move |context| connection.poll_message(context));
    while let Some(Ok(message)) = messages.next().await {
        if let AsyncMessage::Notification(said) = message
            && said.process_id() != notifier.own_process.load(Ordering::Relaxed)
        {
            notifier.incoming.notify_one();
        }
    }
}
