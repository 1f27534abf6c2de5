//! A connection, and the pipeline that is being put together for it.

use std::sync::Arc;

use tokio::runtime::Runtime;

use super::Failure;
use super::answer::Answer;
use super::cache::Cache;
use super::wire::Wire;
use crate::{Guard, Owned, Sql, Value};

/// A connection, its prepared statements and the statements that it will send next.
pub(super) struct Link {
    pub(super) wire: Wire,
    runtime: Runtime,
    cache: Cache,
    steps: Vec<Step>,
    /// Whether a statement failed that its unit did not wait for.
    pub(super) misfired: bool,
}

/// What a statement of the pipeline is for.
enum Step {
    /// Something that comes before the statements of the unit, or after them.
    Frame,
    /// A condition.
    Guard(Arc<Guard>),
    /// A statement that the unit does not wait for.
    Posted,
    /// A statement whose answer is waited for.
    Asked,
}

/// The first statement of a unit, in a pipeline with those of others: where it is, and where its guard is.
pub(super) struct Gathered {
    guard: Option<usize>,
    statement: usize,
    hash: u64,
}

/// What a gathered statement was answered with.
pub(super) struct Reply {
    pub(super) answer: Answer,
    hash: u64,
}

impl Link {
    pub(super) fn new(wire: Wire, runtime: Runtime) -> Self {
        Self { wire, runtime, cache: Cache::default(), steps: Vec::new(), misfired: false }
    }

    /// Forgets the pipeline.
    pub(super) fn forget(&mut self) {
        self.wire.clear();
        self.steps.clear();
        self.misfired = false;
    }

    /// Whether a guard waits to be sent.
    pub(super) fn is_guarded(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Guard(_)))
    }

    /// Makes sure that a statement is prepared.
    pub(super) fn know(&mut self, sql: &Sql) -> Result<(), Failure> {
        self.cache.get(&mut self.wire, &self.runtime, sql).map(drop)
    }

    /// Asks the server whether it understands a statement.
    pub(super) fn try_out(&mut self, sql: &Sql) -> Result<(), Failure> {
        self.wire.prepare(&self.runtime, sql.postgres(), None).map(drop)
    }

    /// Adds BEGIN, COMMIT or something that is held.
    pub(super) fn frame(&mut self, sql: &Sql, params: &[Value<'_>]) -> Result<(), Failure> {
        self.add(Step::Frame, sql, params).map(drop)
    }

    /// Adds a condition.
    pub(super) fn guard(&mut self, guard: Arc<Guard>) -> Result<(), Failure> {
        let params: Vec<Value<'_>> = guard.params.iter().map(Owned::as_value).collect();
        self.add(Step::Guard(Arc::clone(&guard)), guard.sql, &params).map(drop)
    }

    /// Adds a statement that nobody waits for.
    pub(super) fn post(&mut self, sql: &Sql, params: &[Value<'_>]) -> Result<(), Failure> {
        self.add(Step::Posted, sql, params).map(drop)
    }

    /// Adds a statement, sends all and gives its answer.
    pub(super) fn ask(&mut self, sql: &Sql, params: &[Value<'_>]) -> Result<Answer, Failure> {
        self.add(Step::Asked, sql, params)?;
        self.exchange()
    }

    /// Sends the pipeline: the answer to its last statement.
    pub(super) fn exchange(&mut self) -> Result<Answer, Failure> {
        let steps = std::mem::take(&mut self.steps);
        if steps.is_empty() {
            return Ok(Answer::default());
        }
        let (mut answers, done) = self.wire.exchange(&self.runtime);
        for (step, answer) in steps.iter().zip(&answers) {
            if let Step::Guard(guard) = step
                && !holds(guard, answer)
            {
                return Err(Failure::Stale);
            }
        }
        self.misfired = done.is_err() && matches!(steps.get(answers.len()), Some(Step::Posted));
        done?;
        Ok(answers.pop().unwrap_or_default())
    }

    /// Runs a script, for as long as it takes.
    pub(super) fn script(&mut self, text: &str) -> Result<(), Failure> {
        self.exchange()?;
        self.wire.patiently(|wire| wire.script(&self.runtime, text)).map(drop)
    }

    /// Adds the first statement of a unit and its guard to those of others. One guard serves for all who have the same:
    /// together they see one snapshot.
    pub(super) fn gather(
        &mut self,
        guard: Option<Arc<Guard>>,
        sql: &Sql,
        params: &[Value<'_>],
    ) -> Result<Gathered, Failure> {
        self.know(sql)?;
        let guard = match guard {
            Some(guard) => Some(match self.place_of(&guard) {
                Some(place) => place,
                None => {
                    self.guard(guard)?;
                    self.steps.len() - 1
                }
            }),
            None => None,
        };
        let hash = self.add(Step::Asked, sql, params)?;
        Ok(Gathered { guard, statement: self.steps.len() - 1, hash })
    }

    fn place_of(&self, guard: &Arc<Guard>) -> Option<usize> {
        self.steps.iter().position(|step| matches!(step, Step::Guard(known) if Arc::ptr_eq(known, guard)))
    }

    /// Sends what was gathered. `None` is for those who have to ask by themselves: they asked for nothing, or something
    /// before them failed.
    pub(super) fn replies(
        &mut self,
        gathered: Vec<Option<Gathered>>,
    ) -> (Vec<Option<Result<Reply, Failure>>>, Result<(), Failure>) {
        let steps = std::mem::take(&mut self.steps);
        let (answers, done) = if steps.is_empty() {
            (Vec::new(), Ok(()))
        } else {
            self.wire.exchange(&self.runtime)
        };
        let is_true = |place: usize| match (steps.get(place)?, answers.get(place)?) {
            (Step::Guard(guard), answer) => Some(holds(guard, answer)),
            _ => None,
        };
        let judged: Vec<Option<bool>> = gathered
            .iter()
            .map(|gathered| gathered.as_ref()?.guard.map_or(Some(true), is_true))
            .collect();
        let mut answers: Vec<Option<Answer>> = answers.into_iter().map(Some).collect();
        let replies = gathered.into_iter().zip(judged).map(|(gathered, is_true)| {
            let Gathered { statement, hash, .. } = gathered?;
            let answer = answers.get_mut(statement)?.take()?;
            Some(if is_true? { Ok(Reply { answer, hash }) } else { Err(Failure::Stale) })
        });
        (replies.collect(), done)
    }

    /// Whether a statement is the one that was replied to.
    pub(super) fn is_reply_to(&mut self, reply: &Reply, sql: &Sql, params: &[Value<'_>]) -> Result<bool, Failure> {
        let statement = self.cache.get(&mut self.wire, &self.runtime, sql)?;
        let hash = self.wire.add(&statement, params);
        self.wire.clear();
        Ok(hash? == reply.hash)
    }

    /// Adds a statement; gives a hash of what will be sent.
    fn add(&mut self, step: Step, sql: &Sql, params: &[Value<'_>]) -> Result<u64, Failure> {
        let statement = self.cache.get(&mut self.wire, &self.runtime, sql)?;
        let hash = self.wire.add(&statement, params)?;
        self.steps.push(step);
        Ok(hash)
    }
}

fn holds(guard: &Guard, answer: &Answer) -> bool {
    answer.number().is_ok_and(|found| found == Some(guard.expected))
}
