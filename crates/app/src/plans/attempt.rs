//! One attempt to make the calls of a plan, inside a transaction.

use std::sync::Arc;

use podium_api::plans::PlannedCall;
use podium_db::Tx;
use podium_store::Scope;
use tokio::runtime::Handle;

use super::AFTER;
use super::making::Making;
use super::outcome::Outcome;
use crate::cx::Cx;
use crate::error::{Error, Result};

/// The calls, without those that are known to be refused.
pub(super) struct Attempt {
    calls: Arc<Vec<PlannedCall>>,
    skipped: Vec<usize>,
    runtime: Handle,
}

/// How an attempt ended.
pub(super) enum Ended {
    /// Every call was made: its place in the plan, and what it did.
    Done(Vec<(usize, Outcome)>),
    /// This call was refused.
    Refused(usize, Box<Outcome>),
}

impl Attempt {
    pub(super) fn new(calls: Arc<Vec<PlannedCall>>, refused: &[(usize, Outcome)]) -> Self {
        let skipped = refused.iter().map(|(index, _)| *index).collect();
        Self { calls, skipped, runtime: Handle::current() }
    }

    /// Makes the calls.
    pub(super) fn run(&self, cx: &Cx<Scope>, tx: &Tx) -> Result<Ended> {
        // What the calls start, such as a mail, runs where it would if they were not planned.
        let _entered = self.runtime.enter();
        AFTER.take();
        let calls = cx.app().calls.get().ok_or_else(|| Error::Internal("no endpoints are bound".into()))?;
        let mut outcomes: Vec<(usize, Outcome)> = Vec::new();
        let mut results = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            if self.skipped.contains(&index) {
                results.push(None);
                continue;
            }
            let is_first = outcomes.is_empty();
            let made = Making { cx, tx, calls: &**calls, index, is_first }.make(call, &results)?;
            if made.is_refused() {
                return Ok(Ended::Refused(index, Box::new(made)));
            }
            results.push(made.result().cloned());
            outcomes.push((index, made));
        }
        Ok(Ended::Done(outcomes))
    }
}
