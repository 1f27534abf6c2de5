//! The reconciler trait, the result of a step, and delays before retries: exponential backoff within bounds, with jitter.

use std::pin::Pin;
use std::time::Duration;

use podium_api::{Id, Timestamp};
use podium_app::App;
use podium_dataplane::Fault;
use podium_db::Tx;

pub type StepFuture<'a> = Pin<Box<dyn Future<Output = Result<StepResult, Failure>> + Send + 'a>>;

/// The future of what precedes a stop.
pub type PrepareStopFuture<'a> = Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// A write in the transaction that ends a step; it may run more than once.
pub type Effect = Box<dyn FnMut(&Tx) -> podium_db::Result<()> + Send>;

pub trait Reconciler: Send + Sync {
    fn kind(&self) -> &'static str;

    /// Reconciles a resource by one step. It may be cancelled at any point, and may be repeated.
    fn step(&self, id: Id) -> StepFuture<'_>;

    /// Hands over what must not wait for the next start, once no step runs any more. It may be cancelled at any point.
    fn prepare_stop(&self) -> PrepareStopFuture<'_> {
        Box::pin(std::future::ready(Ok(())))
    }
}

/// Lets the `reconcile` of a type take the steps of one kind of work, with typed ids.
macro_rules! reconciles {
    ($kind:expr, $id:ident => $reconciler:ident $({ $($more:tt)* })?) => {
        impl $crate::reconciler::Reconciler for $reconciler {
            fn kind(&self) -> &'static str {
                $kind
            }

            fn step(&self, id: podium_api::Id) -> $crate::reconciler::StepFuture<'_> {
                Box::pin(self.reconcile($id::from_raw(id)))
            }

            $($($more)*)?
        }
    };
}

pub(crate) use reconciles;

pub struct StepResult {
    pub next: Next,
    /// Whether it made progress, which resets the backoff.
    pub progressed: bool,
    pub effect: Option<Effect>,
}

/// How long the attempts of a step that sends something may take.
#[derive(Clone, Copy)]
pub(crate) struct Attempts {
    /// The longest attempt, and for how long further ones are begun; together less than a step may take.
    pub(crate) attempt: Duration,
    pub(crate) begins: Duration,
    /// How long a claim lasts: longer than a step.
    pub(crate) claim: Duration,
}

impl Attempts {
    /// The longest attempt, whatever a step may take.
    const LONGEST: Duration = Duration::from_secs(15);

    pub(crate) fn within(step_time: Duration) -> Self {
        let attempt = (step_time * 3 / 4).min(Self::LONGEST);
        Self { attempt, begins: step_time / 8, claim: step_time * 3 / 2 }
    }
}

/// A random number for the jitter of a retry.
pub(crate) fn random(app: &App) -> u64 {
    let mut random = [0; 8];
    app.world.fill(&mut random);
    u64::from_le_bytes(random)
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Not until there is new work.
    Settled,
    /// At a time.
    At {
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

const FIRST: Duration = Duration::from_secs(1);
const LONGEST_SHORT: Duration = Duration::from_secs(15);
const LONGEST_LONG: Duration = Duration::from_secs(5 * 60);

/// The delay after this many attempts: between half and all of the exponential backoff.
pub(crate) fn delay(backoff: Backoff, attempts: i64, random: u64) -> Duration {
    let longest = match backoff {
        Backoff::Short => LONGEST_SHORT,
        Backoff::Long => LONGEST_LONG,
    };
    let doublings = u32::try_from(attempts.clamp(1, 20) - 1).unwrap_or_default();
    let whole = FIRST.saturating_mul(1 << doublings).min(longest);
    let half = whole / 2;
    let jitter = random % u64::try_from(half.as_millis() + 1).unwrap_or(1);
    half + Duration::from_millis(jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The shortest and the longest pause, in milliseconds.
    fn bounds(backoff: Backoff, attempts: i64) -> (u128, u128) {
        let shortest = delay(backoff, attempts, 0);
        let longest = delay(backoff, attempts, u64::try_from(shortest.as_millis()).unwrap());
        assert!((0..5000).all(|random| (shortest..=longest).contains(&delay(
            backoff,
            attempts,
            random * 7919
        ))));
        (shortest.as_millis(), longest.as_millis())
    }

    #[test]
    fn pauses_double_within_bounds() {
        for (attempts, expected) in [
            (0, 1000),
            (1, 1000),
            (2, 2000),
            (3, 4000),
            (4, 8000),
            (5, 15_000),
            (6, 15_000),
            (i64::MAX, 15_000),
        ] {
            assert_eq!(bounds(Backoff::Short, attempts), (expected / 2, expected), "{attempts}");
        }
        for (attempts, expected) in [(1, 1000), (5, 16_000), (9, 256_000), (10, 300_000), (i64::MAX, 300_000)]
        {
            assert_eq!(bounds(Backoff::Long, attempts), (expected / 2, expected), "{attempts}");
        }
    }
}
