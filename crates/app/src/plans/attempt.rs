//! One attempt to make the calls of a plan, inside a transaction.

use std::sync::Arc;

use podium_api::PlanId;
use podium_api::enums::PlannedMethod;
use podium_api::plans::PlannedCall;
use podium_db::Tx;
use podium_store::Scope;
use tokio::runtime::Handle;

use super::after;
use super::calls::CallKey;
use super::making::{Making, Resource};
use super::outcome::Outcome;
use crate::cx::Cx;
use crate::error::{Error, Result};

/// The calls, without those that are known to be refused.
pub(super) struct Attempt {
    calls: Arc<Vec<PlannedCall>>,
    skipped: Vec<usize>,
    runtime: Handle,
    /// The plan under which answers are kept, and whether they are only given again.
    kept_under: Option<(PlanId, bool)>,
}

pub(super) enum Ended {
    /// Every call was made: its place in the plan, and what it did.
    Done(Vec<(usize, Outcome)>),
    Refused(usize, Box<Outcome>),
}

impl Attempt {
    pub(super) fn new(calls: Arc<Vec<PlannedCall>>, refused: &[(usize, Outcome)]) -> Self {
        let skipped = refused.iter().map(|(index, _)| *index).collect();
        Self { calls, skipped, runtime: Handle::current(), kept_under: None }
    }

    /// An attempt whose answers are kept, so that they can be given again.
    pub(super) fn kept_under(calls: Arc<Vec<PlannedCall>>, plan_id: PlanId) -> Self {
        Self { kept_under: Some((plan_id, false)), ..Self::new(calls, &[]) }
    }

    /// An attempt that makes no call, and gives their answers again.
    pub(super) fn replay(calls: Arc<Vec<PlannedCall>>, plan_id: PlanId) -> Self {
        Self { kept_under: Some((plan_id, true)), ..Self::new(calls, &[]) }
    }

    fn making<'a>(&self, cx: &'a Cx<Scope>, tx: &'a Tx, index: usize, is_first: bool) -> Result<Making<'a>> {
        let calls = cx.app().calls.get().ok_or_else(|| Error::Internal("no endpoints are bound".into()))?;
        let kept_under = self.kept_under.map(|(plan_id, is_replay)| CallKey::new(plan_id, index, is_replay));
        Ok(Making { cx, tx, calls: &**calls, index, is_first, kept_under })
    }

    /// What the calls answered when they were made, for a caller who still may make them. What is deleted answered
    /// nothing, and is there no longer to judge.
    pub(super) fn answers(&self, cx: &Cx<Scope>, tx: &Tx) -> Result<Vec<Option<Resource>>> {
        let _entered = self.runtime.enter();
        let mut results: Vec<Option<Resource>> = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            let result = match call.method {
                PlannedMethod::Delete => None,
                PlannedMethod::Post => self.making(cx, tx, index, index == 0)?.answer(call, &results)?,
            };
            results.push(result);
        }
        after::take();
        Ok(results)
    }

    pub(super) fn run(&self, cx: &Cx<Scope>, tx: &Tx) -> Result<Ended> {
        // What the calls start, such as a mail, runs where it would if they were not planned.
        let _entered = self.runtime.enter();
        after::take();
        let mut outcomes: Vec<(usize, Outcome)> = Vec::new();
        let mut results = Vec::new();
        for (index, call) in self.calls.iter().enumerate() {
            if self.skipped.contains(&index) {
                results.push(None);
                continue;
            }
            let is_first = outcomes.is_empty();
            let made = self.making(cx, tx, index, is_first)?.make(call, &results)?;
            if made.is_refused() {
                return Ok(Ended::Refused(index, Box::new(made)));
            }
            results.push(made.result().cloned());
            outcomes.push((index, made));
        }
        Ok(Ended::Done(outcomes))
    }
}
