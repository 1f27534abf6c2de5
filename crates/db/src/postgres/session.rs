//! One connection, behind the interface that both engines share.
//!
//! Everything that precedes the first statement of a unit (its BEGIN, its advisory locks and its guard) is sent
//! together with it: the server runs them in order, and one round trip covers all. Each is a statement of its own,
//! because a statement of a writing transaction sees what was committed when it began: the guard must begin after the wait for
//! the locks.
//!
//! Statements that nobody waits for ([`Session::post`]) are sent with the next one, or with the COMMIT. A unit cannot know
//! which of them failed, so if one does, the unit runs again and waits for each.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::answer::Answer;
use super::connect::{Connector, runtime};
use super::link::{Gathered, Link, Reply};
use super::{Failure, Mode};
use crate::conn::{Question, Visit};
use crate::row::Kind;
use crate::{AdvisoryLock, Error, Guard, Result, Row, Sql, Value};

static SCAN: Sql = Sql::new("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");
static WRITE: Sql = Sql::new("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE");
static COMMIT: Sql = Sql::new("COMMIT");
static ROLLBACK: Sql = Sql::new("ROLLBACK");

/// Take an advisory lock until the transaction ends: shared, or exclusive.
static SHARED: Sql = Sql::new("SELECT pg_advisory_xact_lock_shared($1)");
static EXCLUSIVE: Sql = Sql::new("SELECT pg_advisory_xact_lock($1)");

/// A connection, with the state of the unit that uses it.
pub(crate) struct Session {
    connector: Arc<Connector>,
    link: RefCell<Option<Link>>,
    opening: RefCell<Opening>,
    phase: RefCell<Phase>,
    begun: Cell<bool>,
    stale: Cell<bool>,
    broken: Cell<bool>,
    misfired: Cell<bool>,
}

/// What is sent before the first statement.
#[derive(Default)]
struct Opening {
    begin: Option<&'static Sql>,
    locks: Arc<[AdvisoryLock]>,
    guard: Option<Arc<Guard>>,
}

/// What becomes of the statements of a unit.
enum Phase {
    Run {
        /// How many may be run, where the unit is to see one snapshot and has no transaction.
        left: Option<u32>,
        /// Whether it may go on before a statement is answered.
        posts: bool,
    },
    /// The first one is kept, to be sent with those of other units.
    Gather(Option<Gathered>),
    /// The first one has been answered.
    Answered(Reply, Mode),
}

/// Why a unit did not commit.
pub(super) enum End {
    /// Nothing was committed, and a retry may succeed.
    Again(Error),
    /// It has to run again, one statement at a time.
    Slower,
    Final(Error),
}

impl Session {
    /// A session that is not connected yet.
    pub(super) fn new(connector: Arc<Connector>) -> Self {
        Self {
            connector,
            link: RefCell::default(),
            opening: RefCell::default(),
            phase: RefCell::new(Phase::Run { left: None, posts: false }),
            begun: Cell::new(false),
            stale: Cell::new(false),
            broken: Cell::new(false),
            misfired: Cell::new(false),
        }
    }

    /// Connects if necessary, retrying until the deadline.
    pub(super) fn connect(&self, deadline: Instant) -> Result<()> {
        if !self.broken.get() && self.link.borrow().is_some() {
            return Ok(());
        }
        self.link.replace(None);
        let runtime = runtime()?;
        let mut pause = Duration::from_millis(10);
        let wire = loop {
            match self.connector.open(&runtime) {
                Ok(wire) => break wire,
                Err(error) if Instant::now() + pause > deadline => return Err(error),
                Err(error) => tracing::debug!(%error, "cannot connect to PostgreSQL, trying again"),
            }
            std::thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_secs(1));
        };
        self.link.replace(Some(Link::new(wire, runtime)));
        self.broken.set(false);
        Ok(())
    }

    /// Sets what to send before the first statement of the next unit; `slowly` makes it wait for each statement.
    pub(super) fn open(
        &self,
        mode: Mode,
        guard: Option<Arc<Guard>>,
        locks: Arc<[AdvisoryLock]>,
        slowly: bool,
    ) {
        let begin = match mode {
            Mode::Page if slowly => Some(&SCAN),
            Mode::Read | Mode::Page => None,
            Mode::Scan => Some(&SCAN),
            Mode::Write => Some(&WRITE),
        };
        let left = (mode == Mode::Page && !slowly).then_some(1);
        self.start(Phase::Run { left, posts: mode == Mode::Write && !slowly });
        self.opening.replace(Opening { begin, locks, guard });
    }

    fn start(&self, phase: Phase) {
        self.phase.replace(phase);
        self.begun.set(false);
        self.stale.set(false);
        self.misfired.set(false);
        if let Some(link) = &mut *self.link.borrow_mut() {
            link.forget();
        }
    }

    /// Ends a unit: the guard if nothing has sent it, then the COMMIT if there is something to commit.
    pub(super) fn end(&self, commit: bool) -> Result<(), End> {
        self.opening.borrow_mut().begin = None;
        let waits = self.opening.borrow().guard.is_some()
            || self.link.borrow().as_ref().is_some_and(Link::is_guarded);
        if waits && !self.stale.get() && !self.broken.get() {
            // Errors are recorded, and read below. Nothing is committed before the guard has been read.
            let _ = self.run(|link| {
                self.lead(link)?;
                link.exchange()
            });
        }
        if self.broken.get() {
            return Err(End::Again(Error::unavailable("the connection to PostgreSQL was lost")));
        }
        if self.stale.get() {
            return Err(End::Final(Error::Stale));
        }
        if self.misfired.get() {
            return Err(End::Slower);
        }
        if !(commit && self.begun.get()) {
            return Ok(());
        }
        let committed = self.run(|link| {
            link.frame(&COMMIT, &[])?;
            link.exchange()
        });
        match committed {
            Ok(_) => {
                self.begun.set(false);
                Ok(())
            }
            Err(_) if self.broken.get() => Err(End::Final(Error::unavailable(
                "the connection was lost during COMMIT: its outcome is unknown",
            ))),
            Err(Error::Lost) => Err(End::Again(Error::Lost)),
            Err(_) if self.misfired.get() => Err(End::Slower),
            Err(error) => Err(End::Final(error)),
        }
    }

    /// Whether the connection is of no further use.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.get()
    }

    /// Leaves a transaction that is still open.
    pub(super) fn leave(&self) {
        if !self.begun.replace(false) || self.broken.get() {
            return;
        }
        let left = self.run(|link| {
            link.forget();
            link.frame(&ROLLBACK, &[])?;
            link.exchange()
        });
        if left.is_err() {
            self.broken.set(true);
        }
    }

    pub(crate) fn each(&self, sql: &Sql, params: &[Value<'_>], visit: Visit<'_>) -> Result<()> {
        let [answer] = self.ask([(sql, params)])?;
        answer.each(&mut |line| visit(&Row(Kind::Postgres(line))))
    }

    pub(crate) fn execute(&self, sql: &Sql, params: &[Value<'_>]) -> Result<u64> {
        let [answer] = self.ask([(sql, params)])?;
        Ok(answer.touched)
    }

    /// Asks two things at once.
    pub(crate) fn both(
        &self,
        asked: [Question<'_>; 2],
        visit_first: Visit<'_>,
        visit_second: Visit<'_>,
    ) -> Result<()> {
        let [first, second] = self.ask(asked)?;
        first.each(&mut |line| visit_first(&Row(Kind::Postgres(line))))?;
        second.each(&mut |line| visit_second(&Row(Kind::Postgres(line))))
    }

    /// Runs a statement at some time before the COMMIT.
    pub(crate) fn post(&self, sql: &Sql, params: &[Value<'_>]) -> Result<()> {
        if !matches!(*self.phase.borrow(), Phase::Run { posts: true, .. }) {
            return self.execute(sql, params).map(drop);
        }
        let asked = [(sql, params)];
        self.explained(&asked, |link| {
            link.know(&asked)?;
            self.lead(link)?;
            link.post(sql, params)
        })
    }

    pub(crate) fn prepare(&self, sql: &Sql) -> Result<()> {
        self.run(|link| link.try_out(sql))
    }

    pub(crate) fn script(&self, text: &str) -> Result<()> {
        self.run(|link| {
            self.lead(link)?;
            link.script(text)
        })
    }

    /// Begins to gather: the first statement of the next unit is kept, and so is its guard.
    pub(super) fn gather(&self, guard: Option<Arc<Guard>>) {
        self.phase.replace(Phase::Gather(None));
        self.opening.replace(Opening { guard, ..Opening::default() });
    }

    /// What was kept of a unit that ran: nothing where it asked for nothing.
    pub(super) fn gathered(&self) -> Option<Gathered> {
        match self.phase.replace(Phase::Gather(None)) {
            Phase::Gather(gathered) => gathered,
            _ => None,
        }
    }

    /// Forgets what was gathered.
    pub(super) fn scatter(&self) {
        self.start(Phase::Run { left: None, posts: false });
    }

    /// Sends what was gathered; each unit's reply, or `None` where it has to ask by itself.
    pub(super) fn replies(&self, gathered: Vec<Option<Gathered>>) -> Vec<Option<Result<Reply>>> {
        let units = gathered.len();
        let mut replies = Vec::new();
        // What went wrong is noted; those whom it concerns have no reply.
        let _ = self.run(|link| {
            let (found, done) = link.replies(gathered);
            replies = found;
            done
        });
        replies.resize_with(units, || None);
        replies.into_iter().map(|reply| Some(reply?.map_err(Failure::into_error))).collect()
    }

    /// The next unit's first statement has this answer, and its guard holds.
    pub(super) fn answered(&self, reply: Reply, mode: Mode) {
        self.opening.take();
        self.start(Phase::Answered(reply, mode));
    }

    /// Runs statements in one round trip and waits for their answers.
    fn ask<const N: usize>(&self, asked: [Question<'_>; N]) -> Result<[Answer; N]> {
        let once = |mode| Phase::Run { left: (mode == Mode::Page).then_some(0), posts: false };
        match &mut *self.phase.borrow_mut() {
            Phase::Run { left: Some(0), .. } => {
                self.misfired.set(true);
                return Err(Error::other("a page that is read without a transaction is one statement"));
            }
            Phase::Run { left, .. } => *left = left.map(|left| left - 1),
            Phase::Gather(gathered) => {
                let guard = self.opening.take().guard;
                *gathered = Some(self.explained(&asked, |link| link.gather(guard, &asked))?);
                return Err(Error::other("the statement will be sent with others"));
            }
            phase => {
                let Phase::Answered(reply, mode) = std::mem::replace(phase, once(Mode::Page)) else {
                    return Err(Error::other("there are no other phases"));
                };
                if self.explained(&asked, |link| link.is_reply_to(&reply, &asked))? {
                    *phase = once(mode);
                    return each_answered(reply.answers);
                }
                self.misfired.set(true);
                return Err(Error::other("a unit that ran again asked for something else"));
            }
        }
        each_answered(self.explained(&asked, |link| {
            link.know(&asked)?;
            self.lead(link)?;
            link.ask(&asked)
        })?)
    }

    /// Adds what comes first to the pipeline, unless it is there.
    fn lead(&self, link: &mut Link) -> Result<(), Failure> {
        let Opening { begin, locks, guard } = self.opening.take();
        if let Some(begin) = begin {
            link.frame(begin, &[])?;
            self.begun.set(true);
            for lock in &*locks {
                link.frame(if lock.exclusive { &EXCLUSIVE } else { &SHARED }, &[Value::Int(lock.key)])?;
            }
        }
        guard.map_or(Ok(()), |guard| link.guard(&guard))
    }

    /// Does something with the connection, and notes what comes of it.
    fn run<T>(&self, work: impl FnOnce(&mut Link) -> Result<T, Failure>) -> Result<T> {
        let mut link = self.link.borrow_mut();
        let link = link.as_mut().ok_or_else(|| Error::unavailable("not connected"))?;
        work(link).map_err(|failure| {
            self.broken.set(self.broken.get() || failure.is_loss());
            self.stale.set(self.stale.get() || matches!(failure, Failure::Stale));
            self.misfired.set(self.misfired.get() || link.misfired);
            failure.into_error()
        })
    }

    /// Like `run`; the error names the statement if the statement caused it.
    fn explained<T>(
        &self,
        asked: &[Question<'_>],
        work: impl FnOnce(&mut Link) -> Result<T, Failure>,
    ) -> Result<T> {
        self.run(work).map_err(|error| match error {
            Error::Other(message) => {
                let texts: Vec<&str> = asked.iter().map(|(sql, _)| sql.text()).collect();
                Error::Other(format!("{message}: {}", texts.join("; ")))
            }
            error => error,
        })
    }
}

fn each_answered<const N: usize>(answers: Vec<Answer>) -> Result<[Answer; N]> {
    answers.try_into().map_err(|_| Error::other("not every statement has an answer"))
}
