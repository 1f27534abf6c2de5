//! Runs blocking work (disks and processes) on threads of the blocking pool, never on a worker thread of the runtime.
//!
//! A worker that blocks on a disk delays everything else that runs on it: requests, timers, leases. Functions that
//! block call [`assert_may_block`], which panics in debug builds if a worker calls them.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

thread_local! {
    /// Whether this thread may block now.
    static MAY_BLOCK: Cell<bool> = const { Cell::new(false) };
}

type PathLocks = Mutex<HashMap<PathBuf, Weak<Mutex<()>>>>;

static LOCKS_BY_PATH: LazyLock<PathLocks> = LazyLock::new(Mutex::default);

/// Runs blocking work on a thread of the blocking pool. Work that has begun runs to its end, even if the caller stops
/// waiting for it.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let slot = Arc::new(Mutex::new(None));
    let result = Arc::clone(&slot);
    run_on_pool(Box::new(move || {
        let done = allow_blocking(work);
        *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(done);
    }))
    .await;
    let done = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
    match done {
        Some(done) => done,
        // The runtime is shutting down, and this task with it.
        None => std::future::pending().await,
    }
}

/// Runs work on the pool; returns early if the runtime is shutting down. The work is boxed, because each type of task would
/// be compiled with its own copy of the runtime's code.
async fn run_on_pool(work: Box<dyn FnOnce() + Send>) {
    if let Err(error) = tokio::task::spawn_blocking(work).await
        && let Ok(panic) = error.try_into_panic()
    {
        resume_unwind(panic);
    }
}

/// Like [`blocking`], but one piece of work at a time for each path: abandoned work on the same path may still be
/// running.
pub(crate) fn blocking_exclusive<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
    path: &Path,
    work: W,
) -> impl Future<Output = T> + Send + use<T, W> {
    let turn = turn(path);
    blocking(move || {
        let _turn = turn.lock().unwrap_or_else(PoisonError::into_inner);
        work()
    })
}

fn turn(path: &Path) -> Arc<Mutex<()>> {
    let mut turns = LOCKS_BY_PATH.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(turn) = turns.get(path).and_then(Weak::upgrade) {
        return turn;
    }
    turns.retain(|_, turn| turn.strong_count() > 0);
    let turn = Arc::default();
    turns.insert(path.to_owned(), Arc::downgrade(&turn));
    turn
}

/// Runs blocking work on the current thread, which must not be needed for anything else.
pub(crate) fn allow_blocking<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            MAY_BLOCK.set(self.0);
        }
    }
    let _before = Before(MAY_BLOCK.replace(true));
    work()
}

/// Panics in debug builds if a worker of the runtime is about to block.
#[track_caller]
pub(crate) fn assert_may_block() {
    debug_assert!(
        MAY_BLOCK.get() || tokio::runtime::Handle::try_current().is_err(),
        "a worker of the runtime must not wait here: use `blocking`"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_marked_threads_may_block() {
        blocking(assert_may_block).await;
        allow_blocking(assert_may_block);
        let caught = std::panic::catch_unwind(assert_may_block);
        assert_eq!(caught.is_err(), cfg!(debug_assertions));
        std::thread::spawn(assert_may_block).join().unwrap();
    }

    #[tokio::test]
    async fn a_panic_reaches_the_waiting_task() {
        let panicked = tokio::spawn(blocking(|| panic!("broken"))).await;
        assert!(panicked.unwrap_err().is_panic());
    }

    #[tokio::test]
    async fn abandoned_work_is_finished_before_the_next() {
        let path = Path::new("/a/directory");
        let (began, has_begun) = tokio::sync::oneshot::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
        let order = Arc::new(Mutex::new(Vec::new()));
        let first = Arc::clone(&order);
        let abandoned = tokio::spawn(blocking_exclusive(path, move || {
            began.send(()).unwrap();
            may_go_on.recv().unwrap();
            first.lock().unwrap().push("abandoned");
        }));
        has_begun.await.unwrap();
        abandoned.abort();
        let second = Arc::clone(&order);
        let next = blocking_exclusive(path, move || second.lock().unwrap().push("next"));
        let ((), ()) = tokio::join!(next, async { go_on.send(()).unwrap() });
        assert_eq!(*order.lock().unwrap(), ["abandoned", "next"]);
        assert_eq!(LOCKS_BY_PATH.lock().unwrap().get(path).and_then(Weak::upgrade).map(|_| ()), None);
    }
}
