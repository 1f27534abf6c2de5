//! A unit of work with its types erased, so that threads can run it, retry it and return its result.
//!
//! Only the closure and the slot for its result are compiled for each unit, in whichever crate it is written.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use crate::conn::Conn;
use crate::{Change, Error, Fault, OnCommit, Result, Tx};

/// How a run of a unit ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// With the error of the database, if that is why.
    Failed(Option<Error>),
}

/// Runs a unit, and leaves its result where its caller finds it.
pub(crate) type Work<C> = Box<dyn FnMut(&C) -> Outcome + Send>;

pub(crate) struct Slot<T, E>(Arc<Mutex<Option<Result<T, E>>>>);

/// A unit whose types are erased, and where it leaves its result.
pub(crate) fn erased<C, T: Send + 'static, E: Fault>(
    mut unit: impl FnMut(&C) -> Result<T, E> + Send + 'static,
) -> (Work<C>, Slot<T, E>) {
    let slot = Arc::<Mutex<_>>::default();
    let kept = Arc::clone(&slot);
    let work = move |conn: &C| {
        let result = unit(conn);
        let outcome = match &result {
            Ok(_) => Outcome::Done,
            Err(error) => Outcome::Failed(error.db().cloned()),
        };
        *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        outcome
    };
    (Box::new(work), Slot(slot))
}

impl<T, E: Fault> Slot<T, E> {
    pub(crate) fn take(self) -> Result<T, E> {
        let result = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        result.unwrap_or_else(|| Err(Error::other("a unit was answered before it ran").into()))
    }
}

/// Tells the caller of a unit that its result is stored, or why there is none.
pub(crate) type Done = oneshot::Sender<Result<()>>;

pub(crate) struct Unit {
    work: Work<Tx>,
    done: Done,
    /// Why the last run counts for nothing, whatever it has stored.
    fault: Option<Error>,
}

impl Unit {
    /// A unit for a queue, and what tells of its end.
    pub(crate) fn new(work: Work<Tx>) -> (Self, oneshot::Receiver<Result<()>>) {
        let (done, told) = oneshot::channel();
        (Self { work, done, fault: None }, told)
    }

    pub(crate) fn run(&mut self, tx: &Tx) -> Outcome {
        let ran = guarded(tx, &mut || (self.work)(tx));
        self.fault = ran.as_ref().err().cloned();
        ran.unwrap_or_else(|fault| Outcome::Failed(Some(fault)))
    }

    /// Tells the caller that the last result counts.
    pub(crate) fn answer(self) {
        tell(self.done, self.fault.map_or(Ok(()), Err));
    }

    /// Sends an error to the caller instead of the result.
    pub(crate) fn refuse(self, error: Error) {
        tell(self.done, Err(error));
    }

    /// Whether the caller is gone.
    pub(crate) fn abandoned(&self) -> bool {
        self.done.is_closed()
    }
}

/// Tells the caller that its unit is done, or why not.
pub(crate) fn tell(done: Done, result: Result<()>) {
    // An error means that the caller is gone and no longer waits for the result.
    let _ = done.send(result);
}

/// Waits until the result is stored; a unit dropped without one means that its thread ended.
pub(crate) async fn answered(told: oneshot::Receiver<Result<()>>) -> Result<()> {
    told.await.unwrap_or_else(|_| Err(closed()))
}

/// The error of a database that was closed.
pub(crate) fn closed() -> Error {
    Error::unavailable("the database is closed")
}

/// Runs one unit: a panic, or success after a failed statement, is an error of this unit alone.
pub(crate) fn guarded(conn: &Conn, work: &mut dyn FnMut() -> Outcome) -> Result<Outcome> {
    conn.begin();
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Outcome::Done) if conn.failed() => {
            Err(Error::other("a unit succeeded although one of its statements had failed"))
        }
        Ok(outcome) => Ok(outcome),
        Err(panic) => {
            // Logged here as well, because the caller may be gone.
            let reason = reason(&*panic);
            tracing::error!(reason, "a unit of work panicked");
            Err(Error::Panicked(reason.to_owned()))
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
