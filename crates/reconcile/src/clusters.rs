//! Reconciles clusters: created, changed, failed over, watched, and removed.

use podium_api::ClusterId;
use podium_api::clusters::ClusterMetadata;
use podium_api::enums::ClusterStatus;
use podium_app::App;
use podium_dataplane::{Cluster, ClusterLocation, Fault, Planes, Progress};
use podium_domain::UserText;
use podium_domain::clusters::plan::{Observed, Settled, Step};
use podium_domain::clusters::{plan, states};
use podium_domain::operations::Seen;
use podium_store::Steward;
use podium_store::clusters::{self, ClusterState};
use podium_store::operations::{self, OperationRow};

use crate::operations::Advanced;
use crate::reconciler::{Backoff, Effect, Failure, Next, StepResult, reconciles};

pub(crate) struct Clusters {
    app: App,
    system: Steward,
    planes: Planes,
}

impl Clusters {
    pub(crate) fn new(app: &App, system: Steward, planes: &Planes) -> Self {
        Self { app: app.clone(), system, planes: planes.clone() }
    }

    async fn reconcile(&self, id: ClusterId) -> Result<StepResult, Failure> {
        let (system, mut is_done) = (self.system, false);
        loop {
            let read = self.app.db(&self.system).read(None, move |conn| {
                // First the operation: one that is newer than the desired state would be taken for done.
                let operation = operations::under_way(conn, &system, id.id())?;
                let state = clusters::state(conn, &system, id)?;
                let at = match &state {
                    Some(state) => Some(state.location()),
                    None => clusters::removed_location(conn, &system, id)?,
                };
                let at = at.unwrap_or(ClusterLocation { id, plane: None });
                Ok::<_, podium_db::Error>((state, at, operation))
            });
            let (state, at, operation) = read.await?;
            let operation = operation.as_ref();
            let now = self.app.world.now();
            let working = match &state {
                Some(_) => Seen::Underway(None, &UserText::EMPTY),
                None => Seen::Removing,
            };
            let working = || Advanced::of(operation, &working, now).map(|working| working.effect(system));
            let observed = match &state {
                Some(state) if at.plane.is_none() => match self.choose_plane(state).await? {
                    Ok(()) => continue,
                    Err(observed) => observed,
                },
                _ => self.observe(at).await,
            };
            match plan(state.as_ref().map(ClusterState::desired).as_ref(), &observed) {
                Step::Apply | Step::Remove if is_done => {
                    let waiting = StepResult::waiting("The data plane has not picked it up yet.", None);
                    return Ok(StepResult { effect: working(), ..waiting });
                }
                Step::Apply => {
                    if let Some(state) = &state {
                        self.apply(state).await?;
                    }
                }
                Step::Remove => self.planes.of_cluster(at).remove_cluster(at).await?,
                Step::Settle(settled) => {
                    let (generation, was_under_way) = state.map_or((0, false), |state| {
                        (state.generation, states::is_under_way(state.cluster.status))
                    });
                    let operation = operation.filter(|_| was_under_way);
                    return Ok(self.settle(id, generation, settled, operation, &observed));
                }
                Step::Wait => {
                    return match observed {
                        Observed::Unreachable(why) => Err(Failure(format!("the data plane: {why}"))),
                        _ => {
                            let waiting = StepResult::waiting("The data plane is working on it.", None);
                            Ok(StepResult { effect: working(), ..waiting })
                        }
                    };
                }
                Step::Watch | Step::Done => {
                    let next = next_after(&observed);
                    let done = operation.filter(|_| state.is_none());
                    let done = Advanced::of(done, &Seen::Done, now).map(|done| done.effect(system));
                    return Ok(StepResult { progressed: next == Next::Settled, next, effect: done });
                }
            }
            is_done = true;
        }
    }

    /// Chooses the plane of a cluster that has none. If no plane makes it, that is what is observed.
    async fn choose_plane(&self, state: &ClusterState) -> Result<Result<(), Observed>, Failure> {
        let (system, id) = (self.system, state.cluster.id);
        let chosen = match state.cluster.status {
            ClusterStatus::Creating => self.planes.for_new(&wanted(state)),
            ClusterStatus::CreateFailed => return Ok(Err(Observed::Absent)),
            // It is from before clusters had planes: there was only one.
            _ => Ok(self.planes.own().kind()),
        };
        match chosen {
            Ok(plane) => {
                let choose = move |tx: &podium_db::Tx| clusters::choose_plane(tx, &system, id, plane);
                self.app.db(&self.system).write(None, choose).await?;
                Ok(Ok(()))
            }
            Err(why) => Ok(Err(Observed::Present {
                generation: state.generation,
                progress: Progress::Failed(why.into()),
                metadata: ClusterMetadata::default(),
            })),
        }
    }

    async fn observe(&self, at: ClusterLocation) -> Observed {
        match self.planes.of_cluster(at).observe_cluster(at).await {
            Ok(None) => Observed::Absent,
            Ok(Some(seen)) => Observed::Present {
                generation: seen.generation,
                progress: seen.progress,
                metadata: seen.metadata,
            },
            Err(fault) => Observed::Unreachable(fault.into_reason()),
        }
    }

    async fn apply(&self, state: &ClusterState) -> Result<(), Fault> {
        self.planes.of_cluster(state.location()).apply_cluster(&wanted(state)).await
    }

    fn settle(
        &self,
        id: ClusterId,
        generation: i64,
        settled: Settled,
        operation: Option<&OperationRow>,
        observed: &Observed,
    ) -> StepResult {
        let (system, now, app) = (self.system, self.app.world.now(), self.app.clone());
        let seen = match settled.status {
            ClusterStatus::Created => Seen::Done,
            _ => Seen::Failed(&settled.reason),
        };
        let advanced = Advanced::of(operation, &seen, now);
        let effect: Effect = Box::new(move |tx| {
            let mut new_id = || app.world.id();
            if clusters::settle(tx, &system, id, generation, &settled, &mut new_id, now)?
                && let Some(advanced) = &advanced
            {
                advanced.write(tx, &system)?;
            }
            Ok(())
        });
        StepResult { next: next_after(observed), progressed: true, effect: Some(effect) }
    }
}

reconciles!(clusters::KIND, ClusterId => Clusters);

fn wanted(state: &ClusterState) -> Cluster {
    Cluster {
        generation: state.generation,
        wants_failed_over: state.wants_failed_over,
        cluster: state.cluster.clone(),
    }
}

/// Retries if the data plane does not respond; otherwise it sends a notification when something changes.
fn next_after(observed: &Observed) -> Next {
    match observed {
        Observed::Unreachable(why) => Next::Retry {
            reason: format!("the data plane: {why}"),
            backoff: Backoff::Long,
            no_later_than: None,
        },
        _ => Next::Settled,
    }
}
