//! The bounded queue between callers and the threads that serve them.
//!
//! Closing it loses nothing: items accepted before are still processed, later ones are refused. (A
//! channel alone cannot guarantee that: an item sent while its last receiver is dropped is neither.)

use std::sync::{PoisonError, RwLock};

use crossbeam_channel::{Receiver, Sender, TrySendError};

use crate::{Error, Result, unit};

pub(crate) struct Queue<T>(RwLock<Option<Sender<T>>>);

impl<T> Queue<T> {
    pub(crate) fn new(room: usize) -> (Self, Receiver<T>) {
        let (sender, receiver) = crossbeam_channel::bounded(room.max(1));
        (Self(RwLock::new(Some(sender))), receiver)
    }

    /// Adds an item, or returns why not; never waits.
    pub(crate) fn push(&self, item: T) -> Result<()> {
        let sender = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match sender.as_ref().map(|sender| sender.try_send(item)) {
            Some(Ok(())) => Ok(()),
            Some(Err(TrySendError::Full(_))) => Err(Error::unavailable("too many units of work are waiting")),
            Some(Err(TrySendError::Disconnected(_))) | None => Err(unit::closed()),
        }
    }

    pub(crate) fn len(&self) -> usize {
        let sender = self.0.read().unwrap_or_else(PoisonError::into_inner);
        sender.as_ref().map_or(0, Sender::len)
    }

    /// Accepts no more items; the threads end when the queue is empty.
    pub(crate) fn close(&self) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).take();
    }
}
