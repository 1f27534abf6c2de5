//! Units that run inside the transaction of another unit.
//!
//! While a unit polls a future with [`within`], every unit that the future hands to any [`Db`](crate::Db) on this thread
//! runs at once, in the transaction of the outer unit, and sees what that has written. So a call that consists of several
//! units, written for transactions of their own, can become part of a larger one.
//!
//! An inner unit takes no guard and no locks: those of the outer unit have to cover it. What an inner unit has written is
//! not taken back when it fails, so the outer unit must fail too.

use std::cell::RefCell;

use scoped_tls::scoped_thread_local;

use crate::unit::{Outcome, guarded};
use crate::{Error, Result, Tx};

scoped_thread_local!(static OUTER: Tx);

thread_local! {
    static FAULT: RefCell<Option<Error>> = const { RefCell::new(None) };
}

/// Whether units of this thread run inside another one now.
pub fn is_joined() -> bool {
    OUTER.is_set()
}

/// Runs something whose units join the transaction. Fails with the fault of the database that ended one of them, whatever
/// became of it, so that the outer unit is retried where that helps.
pub fn within<T>(tx: &Tx, work: impl FnOnce() -> T) -> Result<T> {
    FAULT.take();
    let done = OUTER.set(tx, work);
    match FAULT.take() {
        Some(fault) => Err(fault),
        None => Ok(done),
    }
}

/// Runs a unit in the outer transaction, if there is one; returns whether its result counts.
pub(crate) fn run(work: &mut dyn FnMut(&Tx) -> Outcome) -> Option<Result<()>> {
    if !is_joined() {
        return None;
    }
    let ran = OUTER.with(|tx| guarded(tx, &mut || work(tx)));
    if let Ok(Outcome::Failed(Some(fault))) | Err(fault) = &ran
        && matches!(fault, Error::Lost | Error::Unavailable(_) | Error::Panicked(_) | Error::Other(_))
    {
        FAULT.set(Some(fault.clone()));
    }
    Some(ran.map(drop))
}
