//! Metrics of the loops, for operators.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use podium_app::meters::Page;

use crate::reconciler::{Backoff, Next};

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Settled,
    Scheduled,
    Waiting,
    Retried,
    Failed,
    Overtaken,
}

/// Their names in metrics, in the same order.
const OUTCOMES: [&str; 6] = ["settled", "scheduled", "waiting", "retried", "failed", "overtaken"];

impl Outcome {
    pub(crate) fn of(next: &Next) -> Self {
        match next {
            Next::Settled => Self::Settled,
            Next::At { .. } => Self::Scheduled,
            Next::Retry { backoff: Backoff::Short, .. } => Self::Waiting,
            Next::Retry { backoff: Backoff::Long, .. } => Self::Retried,
        }
    }
}

/// The metrics of one kind of work.
#[derive(Debug)]
pub(crate) struct Counts {
    kind: &'static str,
    running: AtomicI64,
    by_outcome: [AtomicU64; OUTCOMES.len()],
    microseconds: AtomicU64,
}

impl Counts {
    pub(crate) fn new(kind: &'static str) -> Self {
        Self {
            kind,
            running: AtomicI64::new(0),
            by_outcome: Default::default(),
            microseconds: AtomicU64::new(0),
        }
    }

    /// Counts a running step until it is dropped.
    pub(crate) fn begin(&self) -> impl Drop + '_ {
        struct Running<'a>(&'a AtomicI64);
        impl Drop for Running<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        self.running.fetch_add(1, Ordering::Relaxed);
        Running(&self.running)
    }

    pub(crate) fn count(&self, outcome: Outcome, took: Duration) {
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.microseconds.fetch_add(micros, Ordering::Relaxed);
        self.by_outcome[outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) fn write(all: &[Counts], page: &mut Page) {
    page.counter("podium_steps_total", "Steps of the loops that ended.");
    for counts in all {
        for (word, count) in OUTCOMES.iter().zip(&counts.by_outcome) {
            let count = count.load(Ordering::Relaxed);
            if count > 0 {
                page.line("podium_steps_total", &[("kind", counts.kind), ("outcome", word)], count);
            }
        }
    }
    page.counter("podium_step_seconds_total", "Time that steps of the loops took.");
    for counts in all {
        let time = Duration::from_micros(counts.microseconds.load(Ordering::Relaxed)).as_secs_f64();
        page.line("podium_step_seconds_total", &[("kind", counts.kind)], time);
    }
    page.gauge("podium_steps_running", "Steps of the loops that run now.");
    for counts in all {
        let running = counts.running.load(Ordering::Relaxed);
        page.line("podium_steps_running", &[("kind", counts.kind)], running);
    }
}
