//! A connection, and the pipeline that is being put together for it.

use std::ops::Range;
use std::sync::Arc;

use tokio::runtime::Runtime;

use super::Failure;
use super::answer::Answer;
use super::cache::Cache;
use super::wire::Wire;
use crate::conn::Question;
use crate::{Guard, Owned, Sql, Value};

/// How many bytes of statements wait to be sent at the most: neither side may have to wait for the other to read.
const MOST_WAITING: usize = 64 * 1024;

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
    Guard(Arc<Guard>),
    /// A statement that the unit does not wait for.
    Posted,
    /// A statement whose answer is waited for.
    Asked,
}

/// The first statement of a unit, in a pipeline with those of others: where it is, and where its guard is.
pub(super) struct Gathered {
    guard: Option<usize>,
    statements: Range<usize>,
    hash: u64,
}

/// The replies to gathered units; `None` for a unit that has to send its statement itself.
pub(super) type Replies = Vec<Option<Result<Reply, Failure>>>;

/// What gathered statements were answered with.
pub(super) struct Reply {
    pub(super) answers: Vec<Answer>,
    hash: u64,
}

impl Link {
    pub(super) fn new(wire: Wire, runtime: Runtime) -> Self {
        Self { wire, runtime, cache: Cache::default(), steps: Vec::new(), misfired: false }
    }

    pub(super) fn forget(&mut self) {
        self.wire.clear();
        self.steps.clear();
        self.misfired = false;
    }

    /// Whether a guard waits to be sent.
    pub(super) fn is_guarded(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::Guard(_)))
    }

    /// Makes sure that statements are prepared.
    pub(super) fn know(&mut self, asked: &[Question<'_>]) -> Result<(), Failure> {
        asked.iter().try_for_each(|(sql, _)| self.cache.get(&mut self.wire, &self.runtime, sql).map(drop))
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
    pub(super) fn guard(&mut self, guard: &Arc<Guard>) -> Result<(), Failure> {
        let params: Vec<Value<'_>> = guard.params.iter().map(Owned::as_value).collect();
        self.add(Step::Guard(Arc::clone(guard)), guard.sql, &params).map(drop)
    }

    /// Adds a statement that nobody waits for.
    pub(super) fn post(&mut self, sql: &Sql, params: &[Value<'_>]) -> Result<(), Failure> {
        self.add(Step::Posted, sql, params)?;
        if self.wire.waiting() > MOST_WAITING { self.exchange().map(drop) } else { Ok(()) }
    }

    /// Adds statements, sends all and gives their answers.
    pub(super) fn ask(&mut self, asked: &[Question<'_>]) -> Result<Vec<Answer>, Failure> {
        let first = self.steps.len();
        asked.iter().try_for_each(|(sql, params)| self.add(Step::Asked, sql, params).map(drop))?;
        Ok(self.exchange()?.split_off(first))
    }

    /// Sends the pipeline; gives the answers to all its statements.
    pub(super) fn exchange(&mut self) -> Result<Vec<Answer>, Failure> {
        let steps = std::mem::take(&mut self.steps);
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        let (answers, done) = self.wire.exchange(&self.runtime);
        for (step, answer) in steps.iter().zip(&answers) {
            if let Step::Guard(guard) = step
                && !holds(guard, answer)
            {
                return Err(Failure::Stale);
            }
        }
        self.misfired = done.is_err() && matches!(steps.get(answers.len()), Some(Step::Posted));
        done.map(|()| answers)
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
        asked: &[Question<'_>],
    ) -> Result<Gathered, Failure> {
        self.know(asked)?;
        let guard = match guard {
            Some(guard) => Some(match self.place_of(&guard) {
                Some(place) => place,
                None => {
                    self.guard(&guard)?;
                    self.steps.len() - 1
                }
            }),
            None => None,
        };
        let (first, mut hash) = (self.steps.len(), 0);
        for (sql, params) in asked {
            hash = combined(hash, self.add(Step::Asked, sql, params)?);
        }
        Ok(Gathered { guard, statements: first..self.steps.len(), hash })
    }

    fn place_of(&self, guard: &Arc<Guard>) -> Option<usize> {
        self.steps.iter().position(|step| matches!(step, Step::Guard(known) if is_same(known, guard)))
    }

    /// Sends what was gathered. `None` is for those who have to ask by themselves: they asked for nothing, or something
    /// before them failed.
    pub(super) fn replies(&mut self, gathered: Vec<Option<Gathered>>) -> (Replies, Result<(), Failure>) {
        let steps = std::mem::take(&mut self.steps);
        let (answers, done) =
            if steps.is_empty() { (Vec::new(), Ok(())) } else { self.wire.exchange(&self.runtime) };
        let is_true = |place: usize| match (steps.get(place)?, answers.get(place)?) {
            (Step::Guard(guard), answer) => Some(holds(guard, answer)),
            _ => None,
        };
        let judged: Vec<Option<bool>> =
            gathered.iter().map(|gathered| gathered.as_ref()?.guard.map_or(Some(true), is_true)).collect();
        let mut answers: Vec<Option<Answer>> = answers.into_iter().map(Some).collect();
        let replies = gathered.into_iter().zip(judged).map(|(gathered, is_true)| {
            let Gathered { statements, hash, .. } = gathered?;
            let answers: Option<Vec<Answer>> =
                answers.get_mut(statements)?.iter_mut().map(Option::take).collect();
            if is_true? { Some(Ok(Reply { answers: answers?, hash })) } else { Some(Err(Failure::Stale)) }
        });
        (replies.collect(), done)
    }

    pub(super) fn is_reply_to(&mut self, reply: &Reply, asked: &[Question<'_>]) -> Result<bool, Failure> {
        let mut hash = 0;
        for (sql, params) in asked {
            let statement = self.cache.get(&mut self.wire, &self.runtime, sql)?;
            hash = combined(hash, self.wire.add(&statement, params)?);
        }
        self.wire.clear();
        Ok(hash == reply.hash)
    }

    /// Adds a statement; gives a hash of what will be sent.
    fn add(&mut self, step: Step, sql: &Sql, params: &[Value<'_>]) -> Result<u64, Failure> {
        let statement = self.cache.get(&mut self.wire, &self.runtime, sql)?;
        let hash = self.wire.add(&statement, params)?;
        self.steps.push(step);
        Ok(hash)
    }
}

fn combined(one: u64, other: u64) -> u64 {
    one.rotate_left(1) ^ other
}

fn is_same(one: &Arc<Guard>, other: &Arc<Guard>) -> bool {
    Arc::ptr_eq(one, other)
        || std::ptr::eq(one.sql, other.sql) && one.expected == other.expected && one.params == other.params
}

fn holds(guard: &Guard, answer: &Answer) -> bool {
    answer.number().is_ok_and(|found| found == Some(guard.expected))
}
