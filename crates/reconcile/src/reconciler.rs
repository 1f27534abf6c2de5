//! What a reconciler is, and what it says after a step.

use std::pin::Pin;

use podium_api::{Id, Timestamp};
use podium_dataplane::Fault;
use podium_db::Tx;

/// A step that is under way.
pub type StepFuture<'a> = Pin<Box<dyn Future<Output = Result<StepResult, Failure>> + Send + 'a>>;

/// What is written together with the end of a step; it may run more than once.
pub type Effect = Box<dyn FnMut(&Tx) -> podium_db::Result<()> + Send>;

/// Looks after things of one kind.
pub trait Reconciler: Send + Sync {
    /// The kind of its work.
    fn kind(&self) -> &'static str;

    /// Looks at a thing and does one step. It may be cut off anywhere, and may be repeated.
    fn step(&self, id: Id) -> StepFuture<'_>;
}

/// What came of a step.
pub struct StepResult {
    /// When to look again.
    pub next: Next,
    /// Whether it got anywhere: then later tries count from here.
    pub progressed: bool,
    /// What to write.
    pub effect: Option<Effect>,
}

/// When to look again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Not until somebody asks.
    Settled,
    /// At a time.
    At {
        /// The time.
        at: Timestamp,
        /// What is waited for, for the operator.
        reason: String,
    },
    /// After a while, longer each time.
    Retry {
        /// Why it is not settled, for the operator.
        reason: String,
        /// How long a while.
        backoff: Backoff,
        /// By this time in any case.
        no_later_than: Option<Timestamp>,
    },
}

/// How soon to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// Something is under way.
    Short,
    /// Something is broken.
    Long,
}

/// Why a step could not be done. The text is for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure(pub String);

impl StepResult {
    /// Nothing is left to do.
    pub fn settled() -> Self {
        Self { next: Next::Settled, progressed: true, effect: None }
    }

    /// Something is under way: look again, at `at` where that is known.
    pub fn waiting(reason: impl Into<String>, at: Option<Timestamp>) -> Self {
        let reason = reason.into();
        let next = match at {
            Some(at) => Next::At { at, reason },
            None => Next::Retry { reason, backoff: Backoff::Short, no_later_than: None },
        };
        Self { next, progressed: false, effect: None }
    }

    /// It did not work: try again.
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
