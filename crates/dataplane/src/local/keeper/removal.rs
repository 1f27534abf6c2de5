//! Clears an environment away, until nothing is left of it.

use std::fs;
use std::io;
use std::sync::Arc;

use super::Keeper;
use crate::local::broker::OwnBroker;
use crate::local::strays::{LOOK_AGAIN, VANISHING};

impl Keeper {
    /// Clears everything away; tells whether nothing is left.
    pub(super) async fn remove(&mut self) -> bool {
        self.view.wait_for("removal", "it is being cleared away".into());
        if let Some(tail) = self.tail.take() {
            tail.abort();
        }
        let _ = self.stand_on_ground().await;
        self.stop_all(self.pace().short_grace).await;
        if let Err(why) = self.drop_database().await {
            return self.still_there(why).await;
        }
        self.forget_bounds().await;
        OwnBroker::forget(&self.place, self.isolation.user());
        let root = self.place.root.clone();
        let removed = tokio::task::spawn_blocking(move || match fs::remove_dir_all(root) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error.to_string()),
            _ => Ok(()),
        });
        match removed.await {
            Ok(Ok(())) => {
                self.plane.forget(self.id);
                // By somebody else: nobody keeps this environment any more.
                let plane = Arc::clone(&self.plane);
                tokio::spawn(async move { plane.rest_database().await });
                true
            }
            Ok(Err(why)) => self.still_there(why).await,
            Err(error) => self.still_there(error.to_string()).await,
        }
    }

    async fn forget_bounds(&self) {
        let gone = async {
            while !self.plane.cgroups.forget(self.id) {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        if tokio::time::timeout(VANISHING, gone).await.is_err() {
            tracing::warn!(id = %self.id, "the control groups of an environment cannot be removed");
        }
    }

    async fn still_there(&mut self, why: String) -> bool {
        tracing::warn!(id = %self.id, why, "an environment cannot be cleared away yet");
        self.view.wait_for("removal", why);
        tokio::time::sleep(self.pace().again).await;
        // Again, by the same order.
        self.orders.mark_changed();
        false
    }
}
