//! A unit of work with its types erased, so that threads can pass it on, run it again and answer it.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

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

struct Pending<F, T, E> {
    work: F,
    result: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Unit for Pending<F, T, E>
where
    F: FnMut(&Tx) -> Result<T, E> + Send,
    T: Send,
    E: Fault,
{
    fn run(&mut self, tx: &Tx) -> Outcome {
        let result = guarded(tx, || (self.work)(tx));
        let outcome = match &result {
            Ok(_) => Outcome::Done,
            Err(error) if error.db() == Some(&Error::Lost) => Outcome::Lost,
            Err(_) => Outcome::Failed,
        };
        self.result = Some(result);
        outcome
    }

    fn answer(self: Box<Self>) {
        let result =
            self.result.unwrap_or_else(|| Err(Error::other("a unit was answered before it ran").into()));
        // Nobody listens any more: the caller went away, which is its right.
        let _ = self.reply.send(result);
    }

    fn refuse(self: Box<Self>, error: Error) {
        let _ = self.reply.send(Err(error.into()));
    }

    fn abandoned(&self) -> bool {
        self.reply.is_closed()
    }
}

/// Wraps a closure, and gives the end at which its answer arrives.
pub(crate) fn wrap<T, E>(
    work: impl FnMut(&Tx) -> Result<T, E> + Send + 'static,
) -> (Box<dyn Unit>, oneshot::Receiver<Result<T, E>>)
where
    T: Send + 'static,
    E: Fault,
{
    let (reply, answer) = oneshot::channel();
    (Box::new(Pending { work, result: None, reply }), answer)
}

/// Waits for the answer; a unit dropped unanswered met the end of its thread.
pub(crate) async fn answer<T, E: Fault>(answer: oneshot::Receiver<Result<T, E>>) -> Result<T, E> {
    answer.await.unwrap_or_else(|_| Err(closed().into()))
}

/// The error of a database that was closed.
pub(crate) fn closed() -> Error {
    Error::unavailable("the database is closed")
}

/// Runs the closure of one unit: a panic, or success after a failed statement, is an error of this unit alone.
pub(crate) fn guarded<T, E: Fault>(conn: &Conn, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    conn.begin();
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(_)) if conn.failed() => {
            Err(Error::other("a unit succeeded although one of its statements had failed").into())
        }
        Ok(result) => result,
        Err(panic) => {
            // Whoever asked may have gone away, so it is logged here in any case.
            let reason = reason(&*panic);
            tracing::error!(reason, "a unit of work panicked");
            Err(Error::Panicked(reason.to_owned()).into())
        }
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
