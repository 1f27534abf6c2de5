//! A unit of work with its types erased, so that threads can run it, retry it and return its result.

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

/// Where a unit stores its result.
type Slot<T, E> = Arc<Mutex<Option<Result<T, E>>>>;

/// A unit, and the sender that tells its caller when it is done. Little more than the closure is compiled for each unit.
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

/// Tells the caller that its unit is done, or why not.
pub(crate) fn tell(done: oneshot::Sender<Result<()>>, result: Result<()>) {
    // An error means that the caller is gone and no longer waits for the result.
    let _ = done.send(result);
}

/// The receiver of the result of a unit.
pub(crate) struct Answer<T, E> {
    done: oneshot::Receiver<Result<()>>,
    slot: Slot<T, E>,
}

/// Wraps a closure, and returns the receiver of its result.
pub(crate) fn wrap<T: Send + 'static, E: Fault>(
    mut work: impl FnMut(&Tx) -> Result<T, E> + Send + 'static,
) -> (Box<dyn Unit>, Answer<T, E>) {
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

/// Tells the receiver that the result is stored.
pub(crate) type Done = oneshot::Sender<Result<()>>;

/// A function that stores a result, a sender that tells when it is there, and the receiver.
#[expect(clippy::type_complexity, reason = "a closure has no name that a type could be made of")]
pub(crate) fn answering<T, E>() -> (impl FnMut(Result<T, E>), Done, Answer<T, E>) {
    let (done, told) = oneshot::channel();
    let slot = Slot::default();
    let kept = Arc::clone(&slot);
    let keep = move |result| *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
    (keep, done, Answer { done: told, slot })
}

/// Waits for the result; a unit dropped without one means that its thread ended.
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

/// Runs something that returns whether it succeeded.
fn caught(conn: &Conn, work: &mut dyn FnMut() -> bool) -> Result<()> {
    conn.begin();
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(true) if conn.failed() => {
            Err(Error::other("a unit succeeded although one of its statements had failed"))
        }
        Ok(_) => Ok(()),
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
