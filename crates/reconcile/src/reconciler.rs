//! The reconciler trait, and the result of a step.

use std::pin::Pin;

use podium_api::{Id, Timestamp};
use podium_dataplane::Fault;
use podium_db::Tx;

/// The future of a step.
pub type StepFuture<'a> = Pin<Box<dyn Future<Output = Result<StepResult, Failure>> + Send + 'a>>;

/// The future of what precedes a stop.
pub type PrepareStopFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// A write in the transaction that ends a step; it may run more than once.
pub type Effect = Box<dyn FnMut(&Tx) -> podium_db::Result<()> + Send>;

/// Reconciles resources of one kind.
pub trait Reconciler: Send + Sync {
    /// The kind of its work.
    fn kind(&self) -> &'static str;

    /// Reconciles a resource by one step. It may be cancelled at any point, and may be repeated.
    fn step(&self, id: Id) -> StepFuture<'_>;

    /// Hands over what must not wait for the next start, once no step runs any more. It may be cancelled at any point.
    fn prepare_stop(&self) -> PrepareStopFuture<'_> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// The result of a step.
pub struct StepResult {
    /// When to reconcile again.
    pub next: Next,
    /// Whether it made progress, which resets the backoff.
    pub progressed: bool,
    /// What to write.
    pub effect: Option<Effect>,
}

/// When to reconcile again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Not until there is new work.
    Settled,
    /// At a time.
    At {
        /// The time.
        at: Timestamp,
        /// What it waits for, for the operator.
        reason: String,
    },
    /// After a delay that grows each time.
    Retry {
        /// Why it is not settled, for the operator.
        reason: String,
        /// How the delay grows.
        backoff: Backoff,
        /// At this time at the latest.
        no_later_than: Option<Timestamp>,
    },
}

/// How fast the delay between retries grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Work is in progress: short delays.
    Short,
    /// Something is broken: delays up to minutes.
    Long,
}

/// Why a step failed, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl StepResult {
    /// Nothing is left to do.
    pub fn settled() -> Self {
        Self { next: Next::Settled, progressed: true, effect: None }
    }

    /// Nothing is left to do until a time.
    pub(crate) fn at(at: Timestamp, reason: &str) -> Self {
        Self { next: Next::At { at, reason: reason.into() }, ..Self::settled() }
    }

    /// Work is in progress: reconcile again, at `at` if that is known.
    pub fn waiting(reason: impl Into<String>, at: Option<Timestamp>) -> Self {
        let reason = reason.into();
        let next = match at {
            Some(at) => Next::At { at, reason },
            None => Next::Retry { reason, backoff: Backoff::Short, no_later_than: None },
        };
        Self { next, progressed: false, effect: None }
    }

    /// It failed: retry.
    pub(crate) fn failed(reason: impl Into<String>) -> Self {
        let next = Next::Retry { reason: reason.into(), backoff: Backoff::Long, no_later_than: None };
        Self { next, progressed: false, effect: None }
    }
}

impl From<podium_db::Error> for Failure {
    fn from(error: podium_db::Error) -> Self {
        Self(error.to_string())
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self(format!("the data plane: {fault}"))
    }
}
