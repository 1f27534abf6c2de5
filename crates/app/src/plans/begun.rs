//! The operations that a planned call begins: what they do to running environments is an effect of the call.

use std::cell::RefCell;

use podium_api::enums::{OperationCause, OperationKind};
use podium_db::joined;
use podium_store::operations::OperationTarget;

/// An operation that a call begins.
pub(super) struct Begun {
    pub(super) kind: OperationKind,
    pub(super) cause: OperationCause,
    pub(super) target: OperationTarget,
}

thread_local! {
    static BEGUN: RefCell<Vec<Begun>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn note_begun(kind: OperationKind, cause: OperationCause, target: &OperationTarget) {
    if joined::is_joined() {
        let begun = Begun { kind, cause, target: target.clone() };
        BEGUN.with_borrow_mut(|all| all.push(begun));
    }
}

/// Takes what was noted since the last time.
pub(super) fn take() -> Vec<Begun> {
    BEGUN.take()
}
