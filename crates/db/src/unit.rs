//! A unit of work with its types erased, so that threads can run it, retry it and return its result.

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

/// A queued unit of work.
pub(crate) trait Unit: Send {
    /// Runs it and stores the result.
    fn run(&mut self, tx: &Tx) -> Outcome;
    /// Sends the last result to the caller.
    fn answer(self: Box<Self>);
    /// Sends an error to the caller instead of the result.
    fn refuse(self: Box<Self>, error: Error);
    /// Whether the caller is gone.
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
        // The caller is gone and no longer waits for the result.
        let _ = self.reply.send(result);
    }

    fn refuse(self: Box<Self>, error: Error) {
        let _ = self.reply.send(Err(error.into()));
    }

    fn abandoned(&self) -> bool {
        self.reply.is_closed()
    }
}

/// Wraps a closure, and returns the receiver of its result.
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

/// Waits for the result; a unit dropped without one means that its thread ended.
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
            // Logged here as well, because the caller may be gone.
            let reason = reason(&*panic);
            tracing::error!(reason, "a unit of work panicked");
            Err(Error::Panicked(reason.to_owned()).into())
        }
    }
}

/// Calls the listener; its panic must not end the committing thread.
pub(crate) fn publish(on_commit: &OnCommit, changes: &[Change]) {
    if changes.is_empty() {
        return;
    }
    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| on_commit(changes))) {
        tracing::error!(reason = reason(&*panic), "the commit listener panicked");
    }
}

fn reason(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}
