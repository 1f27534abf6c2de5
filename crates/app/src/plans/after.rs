//! What the calls of a plan do once they are committed.

use std::cell::RefCell;

use podium_db::joined;

/// Something that cannot be taken back.
pub(super) type Task = Box<dyn FnOnce() + Send>;

thread_local! {
    static TASKS: RefCell<Vec<Task>> = const { RefCell::new(Vec::new()) };
}

/// What the calls that this thread has made want done; nothing is left of it.
pub(super) fn take() -> Vec<Task> {
    TASKS.take()
}

/// Does something that cannot be taken back: now, or, in a plan, once it is applied.
pub(crate) fn once_committed(task: impl FnOnce() + Send + 'static) {
    if joined::is_joined() {
        TASKS.with_borrow_mut(|tasks| tasks.push(Box::new(task)));
    } else {
        task();
    }
}
