//! The running loops of a process: one task that claims due work, and the steps that it has started.

use std::sync::PoisonError;
use std::time::Duration;

use podium_api::Timestamp;
use podium_dataplane::{Changed, Changes};
use podium_db::Result;
use podium_store::work;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::loops::{Inner, Loops};
use crate::reconciler::Failure;

/// The pause before a retry if the database is unavailable.
const DATABASE_RETRY: Duration = Duration::from_secs(1);
/// How often the clock is read during a long sleep, because it may be set meanwhile.
const CLOCK_READ_EVERY: Duration = Duration::from_secs(30);
/// How many changes of the data plane are queued at once.
const CHANGES_AT_ONCE: usize = 256;

/// Running loops; they stop when this is dropped.
pub struct Running {
    loops: Loops,
    stop: watch::Sender<bool>,
    dispatcher: JoinHandle<()>,
    listener: JoinHandle<()>,
}

impl Loops {
    /// Starts working on due work, now and from now on.
    pub fn start(&self) -> Running {
        let (stop, stopped) = watch::channel(false);
        let changes = self.0.changes.lock().unwrap_or_else(PoisonError::into_inner).take();
        let listener = tokio::spawn(listen(self.clone(), changes));
        let dispatcher = tokio::spawn(Dispatcher::new(self.clone(), stopped).work());
        Running { loops: self.clone(), stop, dispatcher, listener }
    }
}

impl Running {
    /// Claims no more work, lets steps finish until the deadline, hands over what must not wait, and releases the rest.
    pub async fn drain(mut self, deadline: Duration) {
        self.listener.abort();
        self.stop.send_replace(true);
        if timeout(deadline, &mut self.dispatcher).await.is_err() {
            tracing::warn!("some steps did not finish in time; they will be repeated");
            self.dispatcher.abort();
            let _ = (&mut self.dispatcher).await;
        }
        let inner = &self.loops.0;
        inner.prepare_stop(deadline).await;
        let (system, holder, now) = (inner.system, inner.holder().to_owned(), inner.app.world.now());
        let released =
            inner.app.db(&system).write(None, move |tx| work::release(tx, &system, &holder, now)).await;
        if let Err(error) = released {
            tracing::warn!(%error, "claimed work cannot be released; its lease will expire");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.listener.abort();
        self.dispatcher.abort();
    }
}

/// Queues work for the changes that the data plane reports.
async fn listen(loops: Loops, changes: Option<Changes>) {
    let Some(mut changes) = changes else { return };
    while let Some(first) = changes.next().await {
        let mut said = vec![first];
        while said.len() < CHANGES_AT_ONCE
            && let Some(next) = changes.try_next()
        {
            said.push(next);
        }
        while let Err(error) = loops.0.enqueue_changes(said.clone()).await {
            tracing::warn!(%error, "changes that the data plane reported cannot be queued yet");
            sleep(DATABASE_RETRY).await;
            // Further changes may have been dropped in the meantime.
            said = vec![Changed::Everything];
        }
    }
}

/// Claims due work up to the concurrency limit, and sleeps until more is due.
struct Dispatcher {
    loops: Loops,
    stopped: watch::Receiver<bool>,
    steps: JoinSet<usize>,
    running: Vec<usize>,
}

impl Dispatcher {
    fn new(loops: Loops, stopped: watch::Receiver<bool>) -> Self {
        let running = vec![0; loops.0.reconcilers.len()];
        Self { loops, stopped, steps: JoinSet::new(), running }
    }

    async fn work(mut self) {
        let mut is_released = self.inner().app.db(&self.inner().system).is_shared();
        while !*self.stopped.borrow() {
            let claimed = match is_released {
                true => self.claim().await,
                false => self.release().await.map(|()| Some(self.inner().app.world.now())),
            };
            match claimed {
                Ok(next_due) => {
                    is_released = true;
                    self.wait(next_due).await;
                }
                Err(error) => {
                    tracing::warn!(%error, "work cannot be claimed; retrying");
                    self.wait(Some(self.inner().app.world.now() + DATABASE_RETRY)).await;
                }
            }
        }
        while self.steps.join_next().await.is_some() {}
    }

    /// Releases the work of the previous process: with this database there are no others.
    async fn release(&self) -> Result<()> {
        let (system, now) = (self.inner().system, self.inner().app.world.now());
        let released =
            self.inner().app.db(&system).write(None, move |tx| work::release_all(tx, &system, now)).await?;
        if released > 0 {
            tracing::info!(released, "took over the work of the previous process");
        }
        Ok(())
    }

    /// Starts due work of each kind up to its limit; returns when the next work is due that could start.
    async fn claim(&mut self) -> Result<Option<Timestamp>> {
        let mut earliest: Option<Timestamp> = None;
        for index in 0..self.running.len() {
            let room = self.inner().options.concurrency.saturating_sub(self.running[index]);
            if room == 0 {
                continue;
            }
            let claims = self.inner().claim_due(index, room).await?;
            self.running[index] += claims.len();
            // At the limit the end of a step leads here again.
            let is_full = claims.len() == room;
            for claim in claims {
                let loops = self.loops.clone();
                self.steps.spawn(async move {
                    loops.0.run(index, claim).await;
                    index
                });
            }
            let next_due = if is_full { None } else { self.inner().next_due(index).await? };
            earliest = earliest.into_iter().chain(next_due).min();
        }
        Ok(earliest)
    }

    /// Waits until work may be due, a step ends, work is added, or the loops are stopped.
    async fn wait(&mut self, next_due: Option<Timestamp>) {
        let loops = self.loops.clone();
        tokio::select! {
            _ = self.stopped.changed() => {}
            Some(ended) = self.steps.join_next() => {
                self.count(ended);
                while let Some(ended) = self.steps.try_join_next() {
                    self.count(ended);
                }
            }
            () = loops.0.app.work_notifier.notified() => {}
            () = loops.0.sleep_until(next_due) => {}
        }
    }

    fn count(&mut self, ended: Result<usize, tokio::task::JoinError>) {
        match ended {
            Ok(index) => self.running[index] -= 1,
            // Steps catch their own panics and are never cancelled; here the kind of the step is unknown.
            Err(error) => tracing::error!(%error, "a step was lost; its lease will expire"),
        }
    }

    fn inner(&self) -> &Inner {
        &self.loops.0
    }
}

impl Inner {
    /// Lets every reconciler hand over what must not wait for the next start.
    async fn prepare_stop(&self, deadline: Duration) {
        for reconciler in &self.reconcilers {
            let kind = reconciler.kind();
            match timeout(deadline, reconciler.prepare_stop()).await {
                Ok(Ok(())) => {}
                Ok(Err(Failure(why))) => {
                    tracing::warn!(kind, why, "what is pending waits for the next start");
                }
                Err(_) => tracing::warn!(
                    kind,
                    "what is pending waits for the next start: handing it over takes too long"
                ),
            }
        }
    }

    /// Sleeps until a time, but not for long if other replicas add work: their wake-up may get lost.
    async fn sleep_until(&self, due: Option<Timestamp>) {
        let latest =
            self.app.db(&self.system).is_shared().then(|| self.app.world.now() + self.options.longest_sleep);
        let Some(until) = due.into_iter().chain(latest).min() else { return std::future::pending().await };
        loop {
            let left = until.millis() - self.app.world.now().millis();
            let Ok(left) = u64::try_from(left) else { return };
            if left == 0 {
                return;
            }
            sleep(Duration::from_millis(left).min(CLOCK_READ_EVERY)).await;
        }
    }
}
