//! Callers of requests that go on with other rights than they began with: their rights are read again when any change.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch::Receiver;

use super::Authority;
use crate::App;
use crate::error::{Error, Result};

impl App {
    /// Whether nobody's rights have changed since the caller was read, as far as this process knows.
    pub(crate) fn is_current(&self, authority: &Authority) -> bool {
        self.rights_generation() == authority.generation
    }

    /// How many changes of rights this process knows of.
    pub(crate) fn rights_generation(&self) -> u64 {
        self.authorities.generation.load(Ordering::Acquire)
    }

    /// Changes when anybody's rights have changed.
    pub(crate) fn rights_changes(&self) -> Receiver<()> {
        self.authorities.notifier.subscribe()
    }

    /// Reads a caller again; `None` if its token is not valid any more.
    pub(crate) async fn renewed(&self, authority: &Authority) -> Result<Option<Arc<Authority>>> {
        let (hash, organization_id) = authority.key;
        if self.is_current(authority) {
            // The database knows of a change that this process has not heard of.
            self.forget_caller_by_hash(hash, organization_id);
        }
        match self.authority_by_hash(hash, organization_id, self.world.now()).await {
            Ok(renewed) => Ok(Some(renewed)),
            Err(Error::Unauthenticated(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
