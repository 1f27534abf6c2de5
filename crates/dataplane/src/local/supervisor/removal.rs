//! Removes an environment completely.

use std::ffi::CStr;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use podium_api::Timestamp;
use podium_domain::Reason;

use super::Supervisor;
use crate::blocking::blocking;
use crate::local::broker::OwnBroker;
use crate::local::layout::Place;
use crate::local::orphans::{LOOK_AGAIN, VANISHING};
use crate::local::trees::{Remaining, clear, remove};

/// The state is removed last: until then its slot is not reused.
const REMEMBERED: &CStr = c"state.json";
/// How many entries are removed before orphans are killed again.
const STEPS: u64 = 20_000;

impl Supervisor {
    /// Removes everything, after running tasks have finished or at this time if one is given; returns whether nothing is
    /// left.
    pub(super) async fn remove(&mut self, drains_until: Option<Timestamp>) -> bool {
        self.view.wait_for("removal", "it is being removed");
        if let Some(until) = drains_until {
            self.drain_before_removal(until).await;
        }
        // From now on a shutdown need not leave anything running.
        self.controls.is_ending.store(true, Ordering::Relaxed);
        self.end_following();
        self.refresh_isolation_to_stop().await;
        self.stop_all(self.timing().short_grace).await;
        if let Err(why) = self.drop_database().await {
            return self.retry_removal(why).await;
        }
        self.remove_cgroups().await;
        self.remove_from_filter().await;
        let (place, user) = (self.place.clone(), self.isolation.user);
        blocking(move || OwnBroker::forget(&place, user)).await;
        self.forget_relay().await;
        if let Err(why) = self.remove_files().await {
            return self.retry_removal(why).await;
        }
        self.plane.forget(self.id);
        // In another task, because this supervisor ends.
        let plane = Arc::clone(&self.plane);
        tokio::spawn(async move { plane.stop_unused_database().await });
        true
    }

    /// Removes all its files, and kills processes that still write there.
    async fn remove_files(&self) -> Result<(), Reason> {
        let on_disk = |work: fn(&Place) -> io::Result<Remaining>| {
            let place = self.place.clone();
            async move {
                let done = blocking(move || work(&place)).await;
                done.map_err(|error| Reason::of_io("its files cannot be removed", &error))
            }
        };
        while on_disk(|place| clear(&place.root, Some(REMEMBERED), STEPS)).await? == Remaining::Something {
            self.orphans().end().await;
        }
        let gone = on_disk(|place| {
            remove(&place.state())?;
            remove(&place.root)?;
            Ok(Remaining::Nothing)
        });
        gone.await.map(drop)
    }

    async fn remove_cgroups(&self) {
        let gone = async {
            loop {
                let (plane, id) = (Arc::clone(&self.plane), self.id);
                if blocking(move || plane.cgroups.forget(id)).await {
                    return;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        if tokio::time::timeout(VANISHING, gone).await.is_err() {
            tracing::warn!(id = %self.id, "the control groups of an environment cannot be removed");
        }
    }

    async fn retry_removal(&mut self, why: Reason) -> bool {
        tracing::warn!(id = %self.id, %why, "an environment cannot be removed yet");
        self.view.wait_for("removal", why);
        tokio::time::sleep(self.timing().retry).await;
        // Retries the same order.
        self.orders.mark_changed();
        false
    }
}
