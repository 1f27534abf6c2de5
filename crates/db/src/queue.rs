//! The bounded queue between callers and the threads that serve them.
//!
//! Closing it loses nothing: whatever was taken in before is still served, whatever comes after is refused. (A
//! channel alone cannot promise that: what is sent while its last receiver leaves is neither.)

use std::sync::{PoisonError, RwLock};

use crossbeam_channel::{Receiver, Sender, TrySendError};

use crate::{Error, Result, unit};

/// The callers' end.
pub(crate) struct Queue<T>(RwLock<Option<Sender<T>>>);

impl<T> Queue<T> {
    /// A queue with room for so many, and the end where they come out.
    pub(crate) fn new(room: usize) -> (Self, Receiver<T>) {
        let (sender, receiver) = crossbeam_channel::bounded(room.max(1));
        (Self(RwLock::new(Some(sender))), receiver)
    }

    /// Adds one, or says why not; never waits.
    pub(crate) fn push(&self, item: T) -> Result<()> {
        let sender = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match sender.as_ref().map(|sender| sender.try_send(item)) {
            Some(Ok(())) => Ok(()),
            Some(Err(TrySendError::Full(_))) => Err(Error::unavailable("too many units of work are waiting")),
            Some(Err(TrySendError::Disconnected(_))) | None => Err(unit::closed()),
        }
    }

    /// How many wait.
    pub(crate) fn len(&self) -> usize {
        let sender = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().map_or(0, Sender::len)
    }

    /// Takes in no more; the threads end when they have served the rest.
    pub(crate) fn close(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).take();
    }
}
