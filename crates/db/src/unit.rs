//! A unit of work with its types erased, so that threads can pass it on, run it again and answer it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::conn::Conn;
use crate::{Change, Error, Fault, OnCommit, Result, Tx};

/// How a run of a unit ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Lost,
    Failed,
}

/// A unit that waits for its turn, runs, and is answered.
pub(crate) trait Unit: Send {
    /// Runs it (again) and keeps the result.
    fn run(&mut self, tx: &Tx) -> Outcome;
    /// Gives the last result to the caller.
    fn answer(self: Box<Self>);
    /// Gives an error to the caller, whatever the result was.
    fn refuse(self: Box<Self>, error: Error);
    /// Whether the caller has gone away.
    fn abandoned(&self) -> bool;
}

/// What a unit keeps its result in, for whoever waits for it.
type Slot<T, E> = Arc<Mutex<Option<Result<T, E>>>>;

/// A unit, and how its caller is told that it is done. What is compiled for each unit is little more than its closure.
struct Pending<F> {
    work: F,
    done: oneshot::Sender<Result<()>>,
}

impl<F> Unit for Pending<F>
where
    F: FnMut(&Tx) -> Outcome + Send,
{
    fn run(&mut self, tx: &Tx) -> Outcome {
        (self.work)(tx)
    }

    fn answer(self: Box<Self>) {
        tell(self.done, Ok(()));
    }

    fn refuse(self: Box<Self>, error: Error) {
        tell(self.done, Err(error));
    }

    fn abandoned(&self) -> bool {
        self.done.is_closed()
    }
}

/// Tells the caller that its unit is done, or why it is not.
pub(crate) fn tell(done: oneshot::Sender<Result<()>>, result: Result<()>) {
    // Nobody listens any more: the caller went away, which is its right.
    let _ = done.send(result);
}

/// The end at which the answer to a unit arrives.
pub(crate) struct Answer<T, E> {
    done: oneshot::Receiver<Result<()>>,
    slot: Slot<T, E>,
}

/// Wraps a closure, and gives the end at which its answer arrives.
pub(crate) fn wrap<T, E>(
    mut work: impl FnMut(&Tx) -> Result<T, E> + Send + 'static,
) -> (Box<dyn Unit>, Answer<T, E>)
where
    T: Send + 'static,
    E: Fault,
{
    let (mut keep, done, answer) = answering();
    let work = move |tx: &Tx| {
        let result = guarded(tx, || work(tx));
        let outcome = match &result {
            Ok(_) => Outcome::Done,
            Err(error) if error.db() == Some(&Error::Lost) => Outcome::Lost,
            Err(_) => Outcome::Failed,
        };
        keep(result);
        outcome
    };
    (Box::new(Pending { work, done }), answer)
}

/// What keeps a result, what tells that it is there, and the end at which it arrives.
pub(crate) fn answering<T, E>() -> (impl FnMut(Result<T, E>), oneshot::Sender<Result<()>>, Answer<T, E>) {
    let (done, told) = oneshot::channel();
    let slot = Slot::default();
    let kept = Arc::clone(&slot);
    let keep = move |result| *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    (keep, done, Answer { done: told, slot })
}

/// Waits for the answer; a unit dropped unanswered met the end of its thread.
pub(crate) async fn answer<T, E: Fault>(answer: Answer<T, E>) -> Result<T, E> {
    answer.done.await.unwrap_or_else(|_| Err(closed()))?;
    let result = answer.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    result.unwrap_or_else(|| Err(Error::other("a unit was answered before it ran").into()))
}

/// The error of a database that was closed.
pub(crate) fn closed() -> Error {
    Error::unavailable("the database is closed")
}

/// Runs the closure of one unit: a panic, or success after a failed statement, is an error of this unit alone.
pub(crate) fn guarded<T, E: Fault>(conn: &Conn, mut work: impl FnMut() -> Result<T, E>) -> Result<T, E> {
    let mut result = None;
    caught(conn, &mut || result.insert(work()).is_ok())?;
    result.unwrap_or_else(|| Err(Error::other("a unit ended without a result").into()))
}

/// Runs something that says whether it succeeded.
fn caught(conn: &Conn, work: &mut dyn FnMut() -> bool) -> Result<()> {
    conn.begin();
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(true) if conn.failed() => {
            Err(Error::other("a unit succeeded although one of its statements had failed"))
        }
        Ok(_) => Ok(()),
        Err(panic) => Err(Error::Other(format!("a unit panicked: {}", reason(&*panic)))),
    }
}

/// Tells the listener; its panic must not end the thread that commits.
pub(crate) fn publish(on_commit: &OnCommit, changes: &[Change]) {
    if changes.is_empty() {
        return;
    }
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| on_commit(changes))) {
        tracing::error!(reason = reason(&*panic), "the listener to commits panicked");
    }
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}
