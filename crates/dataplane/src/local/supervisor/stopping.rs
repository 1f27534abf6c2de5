//! Environments that must not run, because they exceed their quota, or because their operator has stopped them, and the
//! removal of one with everything that it has.

use std::ffi::CStr;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use podium_api::Timestamp;
use podium_domain::deployments::plan::{Component, Health, Rollout};
use podium_domain::{Reason, UserText};

use super::{Supervisor, locked};
use crate::Environment;
use crate::blocking::blocking;
use crate::local::broker::OwnBroker;
use crate::local::layout::Place;
use crate::local::orphans::{LOOK_AGAIN, VANISHING};
use crate::local::state::{State, Stop};
use crate::local::trees::{Remaining, clear, remove};

/// Why an environment does not run that its operator has stopped.
const BY_OPERATOR: &str =
    "the operator of its machine stopped it with `podium stop`. Run `podium start` to start it again";

/// The state is removed last: until then its slot is not reused.
const REMEMBERED: &CStr = c"state.json";
/// How many entries are removed before orphans are killed again.
const STEPS: u64 = 20_000;

/// What stands for the components of an environment that its operator has stopped.
pub(super) fn by_operator() -> Component {
    Component { name: "environment".into(), health: Health::Down(BY_OPERATOR.into()) }
}

impl State {
    /// What was wanted of a stopped environment meanwhile goes on waiting.
    pub(super) fn rollout_of_stopped(&self) -> Rollout {
        if self.settled_generation == self.generation { Rollout::Done } else { Rollout::Underway }
    }
}

impl Supervisor {
    /// Stops all processes and removes temporary files.
    pub(super) async fn stop_and_report(&mut self, why: UserText) {
        tracing::warn!(id = %self.id, %why, "stopping an environment");
        self.refresh_isolation_to_stop().await;
        self.stop_all(self.timing().short_grace).await;
        let temporary = self.place.temporary();
        let cleared = blocking(move || clear(&temporary, None, u64::MAX)).await;
        if let Err(error) = cleared {
            tracing::warn!(id = %self.id, %error, "temporary files of an environment cannot be removed");
        }
        self.follow_logs().await;
        let disk = Component { name: "disk".into(), health: Health::Down(why.into()) };
        self.show_stopped(Rollout::Done, vec![disk]).await;
    }

    /// Stops all processes; returns `false` if another order has arrived.
    pub(super) async fn stop_all_unless_ordered(&mut self) -> bool {
        let mut orders = self.orders.clone();
        tokio::select! {
            () = self.stop_all(self.stop_grace()) => true,
            _ = orders.changed() => false,
        }
    }

    /// Stops the environment if its operator has ordered that, once its running tasks have finished; returns whether it
    /// must not run.
    pub(super) async fn stop_if_ordered(&mut self, environment: Option<&Environment>) -> bool {
        let Some(stop) = *locked(&self.controls.operator_stop) else { return false };
        tracing::info!(id = %self.id, "stopping an environment for its operator");
        if let Err(why) = self.refresh_isolation().await {
            tracing::warn!(id = %self.id, %why, "processes that its components have left behind may not be found");
        }
        if stop == Stop::Now {
            self.controls.force.send_replace(true);
        }
        let grace = environment.map_or(self.timing().drain, |environment| self.drain_grace(environment));
        if !self.drain_within("stopping", grace, None).await || !self.finish_workers(grace).await {
            return true;
        }
        if !self.stop_all_unless_ordered().await {
            return true;
        }
        self.end_drain().await;
        self.show_stopped(self.state.rollout_of_stopped(), vec![by_operator()]).await;
        let plane = Arc::clone(&self.plane);
        tokio::spawn(async move { plane.stop_unused_database().await });
        true
    }

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
