//! Claiming, running and finishing work, shared by running loops and tests that drive them by hand.

use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use futures_util::FutureExt as _;
use podium_api::{Id, Timestamp};
use podium_app::App;
use podium_dataplane::{Changed, Changes, Planes};
use podium_db::{Error, Fault, Result, Tx};
use podium_store::work::{self, Claim, Reschedule};
use podium_store::{Steward, clusters, deployments};

use crate::counts::{self, Counts, Outcome};
use crate::reconciler::{Next, Reconciler, StepResult, delay, random};

/// How much work is claimed at once when tests drive the loops.
const AT_ONCE: usize = 100;
/// The number of steps after which tests report an endless loop.
const MOST_STEPS: usize = 1_000_000;

/// The loops of a process; clones share them.
#[derive(Clone)]
pub struct Loops(pub(crate) Arc<Inner>);

pub(crate) struct Inner {
    pub(crate) app: App,
    pub(crate) system: Steward,
    pub(crate) options: Options,
    pub(crate) reconcilers: Vec<Box<dyn Reconciler>>,
    pub(crate) changes: Mutex<Option<Changes>>,
    counts: Arc<Vec<Counts>>,
    holder: OnceLock<String>,
}

/// Why the result of a step was not written.
enum FinishError {
    /// Another process holds the work now.
    Overtaken,
    Db(Error),
}

impl From<Error> for FinishError {
    fn from(error: Error) -> Self {
        Self::Db(error)
    }
}

impl Fault for FinishError {
    fn db(&self) -> Option<&Error> {
        if let Self::Db(error) = self { Some(error) } else { None }
    }
}

impl Loops {
    /// The loops of an application, not started yet.
    pub fn new(app: &App, system: Steward, planes: &Planes, options: Options) -> Self {
        let reconcilers = crate::all(app, system, planes, &options);
        Self::of(app, system, planes, options, reconcilers)
    }

    /// Loops with only these reconcilers.
    pub fn of(
        app: &App,
        system: Steward,
        planes: &Planes,
        options: Options,
        reconcilers: Vec<Box<dyn Reconciler>>,
    ) -> Self {
        let counts = Arc::new(reconcilers.iter().map(|one| Counts::new(one.kind())).collect::<Vec<_>>());
        let shown = Arc::clone(&counts);
        app.meters.show(Arc::new(move |page| counts::write(&shown, page)));
        Self(Arc::new(Inner {
            app: app.clone(),
            system,
            options,
            reconcilers,
            changes: Mutex::new(Some(planes.changes())),
            counts,
            holder: OnceLock::new(),
        }))
    }

    /// Runs due work, one step after the other, until nothing is due; returns the number of steps.
    pub async fn step_until_idle(&self) -> Result<usize> {
        let mut steps = 0;
        loop {
            self.0.enqueue_pending_changes().await?;
            let before = steps;
            for index in 0..self.0.reconcilers.len() {
                let mut claims = self.0.claim_due(index, AT_ONCE).await?;
                claims.sort_by_key(|claim| claim.id);
                for claim in claims {
                    self.0.run(index, claim).await;
                    steps += 1;
                }
            }
            if steps == before {
                return Ok(steps);
            }
            if steps > MOST_STEPS {
                return Err(Error::Other("the loops never become idle".into()));
            }
        }
    }
}

impl Inner {
    /// The lease holder id of this process.
    pub(crate) fn holder(&self) -> &str {
        self.holder.get_or_init(|| self.app.world.id::<Id>().to_string())
    }

    /// The node ids whose work of a kind this process does: unassigned work, and on a node also its own.
    fn nodes(&self, index: usize) -> Vec<String> {
        let is_placed = self.reconcilers[index].kind() == deployments::KIND;
        let own = self.app.node().filter(|_| is_placed).map(|node| node.id.to_string());
        std::iter::once(work::ANY_NODE.to_owned()).chain(own).collect()
    }

    /// When the next work of a kind is due.
    pub(crate) async fn next_due(&self, index: usize) -> Result<Option<Timestamp>> {
        let mut earliest: Option<Timestamp> = None;
        for node in self.nodes(index) {
            earliest = earliest.into_iter().chain(self.next_due_of(index, node).await?).min();
        }
        Ok(earliest)
    }

    async fn next_due_of(&self, index: usize, node: String) -> Result<Option<Timestamp>> {
        let (system, kind) = (self.system, self.reconcilers[index].kind());
        self.app
            .db(&self.system)
            .read(None, move |conn| work::next_due_of(conn, &system, (kind, &node)))
            .await
    }

    /// Claims some due work of a kind; writes nothing if nothing is due.
    pub(crate) async fn claim_due(&self, index: usize, limit: usize) -> Result<Vec<Claim>> {
        let mut claims = Vec::new();
        for node in self.nodes(index) {
            let next_due = self.next_due_of(index, node.clone()).await?;
            if claims.len() < limit && next_due.is_some_and(|due| due <= self.app.world.now()) {
                claims.extend(self.claim(index, node, limit - claims.len()).await?);
            }
        }
        Ok(claims)
    }

    async fn claim(&self, index: usize, node: String, limit: usize) -> Result<Vec<Claim>> {
        let (system, kind) = (self.system, self.reconcilers[index].kind());
        let (now, holder) = (self.app.world.now(), self.holder().to_owned());
        let (lease_ends, limit) = (now + self.options.lease, u32::try_from(limit).unwrap_or(u32::MAX));
        let unit = move |tx: &Tx| work::claim_of(tx, &system, (kind, &node), &holder, lease_ends, now, limit);
        self.app.db(&self.system).write(None, unit).await
    }

    /// Runs one step and writes its result.
    pub(crate) async fn run(&self, index: usize, claim: Claim) {
        let (reconciler, counts) = (&self.reconcilers[index], &self.counts[index]);
        let started = Instant::now();
        let _running = counts.begin();
        let (kind, id) = (reconciler.kind(), claim.id);
        let step = AssertUnwindSafe(reconciler.step(id)).catch_unwind();
        let (done, failed) = match tokio::time::timeout(self.options.step_time, step).await {
            Ok(Ok(Ok(done))) => (done, None),
            Ok(Ok(Err(failure))) => (StepResult::failed(failure.0.clone()), Some(failure.0)),
            Ok(Err(_)) => (StepResult::failed("a defect: the step panicked"), Some("it panicked".into())),
            Err(_) => {
                let why = format!("the step timed out after {:?}", self.options.step_time);
                (StepResult::failed(why.clone()), Some(why))
            }
        };
        let mut outcome = Outcome::of(&done.next);
        if let Some(why) = failed {
            outcome = Outcome::Failed;
            tracing::warn!(kind, %id, attempts = claim.attempts, why, "a step failed and will be retried");
        }
        if let Some(worse) = self.finish(kind, claim, done).await {
            outcome = worse;
        }
        counts.count(outcome, started.elapsed());
        tracing::debug!(kind, %id, ?outcome, "a step ended");
    }

    /// Writes the result of a step together with the end of its work; returns another outcome if that failed.
    async fn finish(&self, kind: &'static str, claim: Claim, done: StepResult) -> Option<Outcome> {
        let (system, now) = (self.system, self.app.world.now());
        let again = self.again(&claim, &done, now);
        let (holder, mut effect) = (self.holder().to_owned(), done.effect);
        let held = claim.clone();
        let unit = move |tx: &Tx| {
            // First the resource, then its work: the same order as in API calls, which avoids deadlocks.
            if let Some(effect) = &mut effect {
                effect(tx)?;
            }
            let is_held = match &again {
                None => work::settle(tx, &system, &holder, &held, now)?,
                Some(again) => work::reschedule(tx, &system, &holder, &held, again, now)?,
            };
            if is_held { Ok(()) } else { Err(FinishError::Overtaken) }
        };
        let id = claim.id;
        match self.app.db(&self.system).write(None, unit).await {
            Ok(()) => None,
            Err(FinishError::Overtaken) => {
                // The step may have undone another one's effect on the data plane: reconcile again.
                tracing::warn!(kind, %id, "a step took longer than its lease; the affected resource is reconciled again");
                let asked = self
                    .app
                    .db(&self.system)
                    .write(None, move |tx| work::enqueue(tx, &system, kind, id, now, now))
                    .await;
                log_if_failed(kind, asked);
                Some(Outcome::Overtaken)
            }
            Err(FinishError::Db(error @ Error::Unavailable(_))) => {
                tracing::warn!(kind, %id, %error, "the result of a step cannot be written; its lease will expire");
                Some(Outcome::Failed)
            }
            Err(FinishError::Db(error)) => {
                tracing::error!(kind, %id, %error, "the result of a step cannot be written");
                let again = self.again(&claim, &StepResult::failed(error.to_string()), now);
                let holder = self.holder().to_owned();
                let put_back = self.app.db(&self.system).write(None, move |tx| match &again {
                    Some(again) => work::reschedule(tx, &system, &holder, &claim, again, now),
                    None => Ok(true),
                });
                log_if_failed(kind, put_back.await);
                Some(Outcome::Failed)
            }
        }
    }

    /// How work is requeued, unless it is settled.
    fn again(&self, claim: &Claim, done: &StepResult, now: Timestamp) -> Option<Reschedule> {
        match &done.next {
            Next::Settled => None,
            Next::At { at, reason } => {
                let since = if done.progressed { (*at).max(claim.since) } else { claim.since };
                Some(Reschedule { due_at: *at, since, attempts: 0, reason: reason.clone() })
            }
            Next::Retry { reason, backoff, no_later_than } => {
                let attempts = if done.progressed { 1 } else { claim.attempts };
                let due_at = now + delay(*backoff, attempts, random(&self.app));
                let due_at = no_later_than.map_or(due_at, |latest| latest.min(due_at));
                Some(Reschedule { due_at, since: claim.since, attempts, reason: reason.clone() })
            }
        }
    }

    /// Queues work for all changes that the data plane has reported so far.
    async fn enqueue_pending_changes(&self) -> Result<()> {
        let mut said = Vec::new();
        {
            let mut changes = self.changes.lock().unwrap_or_else(PoisonError::into_inner);
            while let Some(changed) = changes.as_mut().and_then(Changes::try_next) {
                said.push(changed);
            }
        }
        self.enqueue_changes(said).await
    }

    /// Queues work for changes that the data plane reported.
    pub(crate) async fn enqueue_changes(&self, mut said: Vec<Changed>) -> Result<()> {
        if said.is_empty() {
            return Ok(());
        }
        let mut seen = Vec::new();
        said.retain(|changed| {
            !seen.contains(changed) && {
                seen.push(*changed);
                true
            }
        });
        let (system, now) = (self.system, self.app.world.now());
        self.app
            .db(&self.system)
            .write(None, move |tx| {
                said.iter().try_for_each(|changed| match changed {
                    Changed::Environment(id) => work::enqueue_deployment(tx, &system, *id, now),
                    Changed::Cluster(id) => work::enqueue(tx, &system, clusters::KIND, id.id(), now, now),
                    Changed::Everything => work::enqueue_everything(tx, &system, now).map(drop),
                })
            })
            .await
    }
}

fn log_if_failed<T>(kind: &'static str, written: Result<T>) {
    if let Err(error) = written {
        tracing::warn!(kind, %error, "work cannot be requeued; its lease will expire");
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Concurrent steps of each kind. Kinds have separate limits, so that a slow one does not delay others.
    pub concurrency: usize,
    /// The length of a lease; after that another replica takes the work over.
    pub lease: Duration,
    /// The timeout of a step; shorter than the lease.
    pub step_time: Duration,
    /// The longest sleep if other replicas add work: their wake-up may get lost.
    pub longest_sleep: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 64,
            lease: Duration::from_secs(30),
            step_time: Duration::from_secs(20),
            longest_sleep: Duration::from_secs(30),
        }
    }
}
