//! The authenticated caller of a request, for its log line.

use std::cell::Cell;

use podium_api::SubjectId;

tokio::task_local! {
    static CALLER: Cell<Option<SubjectId>>;
}

/// Does some work, and tells with its result who was found to be calling meanwhile.
pub async fn noting<T>(work: impl Future<Output = T>) -> (T, Option<SubjectId>) {
    CALLER.scope(Cell::new(None), async { (work.await, CALLER.get().get()) }).await
}

pub(crate) fn note(subject_id: SubjectId) {
    // Outside a request there is nothing to record.
    let _ = CALLER.try_with(|caller| caller.set(Some(subject_id)));
}
