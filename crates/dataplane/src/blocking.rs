//! Where this crate waits for disks and processes: on threads that are there for it, never on a runtime's worker.
//!
//! A worker that waits for a disk keeps everything else waiting that runs on it: requests, timers, leases. Functions that
//! wait say so with [`not_on_a_worker`], which panics in debug builds wherever a worker calls them.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};

thread_local! {
    /// Whether this thread may wait now.
    static MAY_WAIT: Cell<bool> = const { Cell::new(false) };
}

/// Who works in a directory.
type Turns = Mutex<HashMap<PathBuf, Weak<Mutex<()>>>>;

static TURNS: LazyLock<Turns> = LazyLock::new(Mutex::default);

/// Does what waits for a disk or a process on a thread that may wait. What was begun is finished, also where nobody waits
/// for it any more.
pub(crate) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(move || here(work)).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime ends, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// The same, after whatever else was begun in this turn for the same path: what nobody waits for any more may still be at
/// it.
pub(crate) fn in_turn<T: Send + 'static, W: FnOnce() -> T + Send + 'static>(
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
    let mut turns = TURNS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(turn) = turns.get(path).and_then(Weak::upgrade) {
        return turn;
    }
    turns.retain(|_, turn| turn.strong_count() > 0);
    let turn = Arc::default();
    turns.insert(path.to_owned(), Arc::downgrade(&turn));
    turn
}

/// Does work on this very thread, which nobody else needs meanwhile.
pub(crate) fn here<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            MAY_WAIT.set(self.0);
        }
    }
    let _before = Before(MAY_WAIT.replace(true));
    work()
}

/// Panics in debug builds where a worker of a runtime is about to wait.
#[track_caller]
pub(crate) fn not_on_a_worker() {
    debug_assert!(
        MAY_WAIT.get() || tokio::runtime::Handle::try_current().is_err(),
        "a worker of the runtime must not wait here: use `blocking`"
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waiting_is_for_threads_that_may_wait() {
        blocking(not_on_a_worker).await;
        here(not_on_a_worker);
        let caught = std::panic::catch_unwind(not_on_a_worker);
        assert_eq!(caught.is_err(), cfg!(debug_assertions));
        std::thread::spawn(not_on_a_worker).join().unwrap();
    }

    #[tokio::test]
    async fn a_panic_reaches_whoever_waits() {
        let panicked = tokio::spawn(blocking(|| panic!("broken"))).await;
        assert!(panicked.unwrap_err().is_panic());
    }

    #[tokio::test]
    async fn what_nobody_waits_for_any_more_is_finished_before_the_next() {
        let path = Path::new("/a/directory");
        let (began, has_begun) = tokio::sync::oneshot::channel();
        let (go_on, may_go_on) = std::sync::mpsc::channel::<()>();
        let order = Arc::new(Mutex::new(Vec::new()));
        let first = Arc::clone(&order);
        let abandoned = tokio::spawn(in_turn(path, move || {
            began.send(()).unwrap();
            may_go_on.recv().unwrap();
            first.lock().unwrap().push("abandoned");
        }));
        has_begun.await.unwrap();
        abandoned.abort();
        let second = Arc::clone(&order);
        let next = in_turn(path, move || second.lock().unwrap().push("next"));
        let ((), ()) = tokio::join!(next, async { go_on.send(()).unwrap() });
        assert_eq!(*order.lock().unwrap(), ["abandoned", "next"]);
        assert_eq!(TURNS.lock().unwrap().get(path).and_then(Weak::upgrade).map(|_| ()), None);
    }
}
