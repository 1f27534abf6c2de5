//! Runs environments as Apache Airflow processes on this machine.
//!
//! Each environment has a supervisor, a task that brings it to the desired state and keeps it there. Processes outlive
//! the control plane: the next start takes over what is running and is given the desired state again, because neither
//! settings nor secrets are stored here. DAG code is trusted with nothing but its own environment.

mod backup;
mod broker;
mod cgroups;
mod clusters;
mod code;
mod command;
mod components;
mod database;
mod disk_space;
mod host;
mod identity;
mod isolation;
mod layout;
mod metadata;
mod network;
mod options;
mod orphans;
mod packages;
mod plane;
mod postgres;
mod prepare_error;
mod privileges;
mod process;
mod program;
mod project;
mod quota;
mod requests;
mod runtimes;
mod sockets;
mod spool;
mod state;
mod supervisor;
mod tail;
mod tasks;
#[cfg(test)]
mod tests;
mod timing;
mod trees;
mod unused_runtimes;
mod users;
mod view;

use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

pub use podium_airflow::database_url::BadUrl;
use podium_airflow::support;
use podium_airflow::web_client::WebClient;
use podium_api::DeploymentId;
use podium_api::deploy_reports::RolloutReport;
use podium_api::enums::PlaneKind;
use podium_domain::{Reason, UserText};

pub use self::backup::{BackupContents, backup_contents, prepare_restored, remove_tree};
use self::clusters::NamedClusters;
pub use self::host::{NoPython, check_python};
pub use self::isolation::Confinement;
use self::layout::Layout;
pub use self::metadata::Metadata;
use self::network::Network;
pub use self::network::{DatabaseRelay, Forward, NetworkHolder, Uplink};
pub use self::options::{AirflowDatabase, BadDatabase, Broker, NetworkChoice, OpenError, Options};
use self::plane::Plane;
use self::process::pids;
pub use self::quota::half_of_disk;
use self::state::State;
pub use self::state::{Stop, StoppableEnvironment, stoppable_environments};
use self::supervisor::{Order, Supervisor};
use self::timing::Timing;
use crate::blocking::{allow_blocking, blocking};
use crate::{
    Changes, CleanUp, CleanUpState, Cluster, ClusterLocation, DataPlane, Environment, EnvironmentMetrics,
    Fault, Location, Machine, Observed, ObservedCluster, PlaneFuture, RunningTasks, Services, WebServer,
    socket_owners,
};

/// A data plane that runs environments as processes on this machine.
pub struct Local {
    plane: Arc<Plane>,
    clusters: NamedClusters,
}

impl Local {
    /// Opens the plane and takes over running environments. What this machine lacks is reported by the environments
    /// that need it, and logged.
    pub async fn open(options: Options, services: Services) -> Result<Self, OpenError> {
        blocking(move || Self::open_at(Timing::default(), options, services)).await
    }

    fn open_at(timing: Timing, mut options: Options, services: Services) -> Result<Self, OpenError> {
        let layout = Layout::make(&options.directory)
            .map_err(|error| OpenError::unusable(&options.directory, error))?;
        // Absolute, as it is passed on to programs with another working directory.
        layout.root.clone_into(&mut options.directory);
        let broken = |error| OpenError::unusable(&options.directory, error);
        backup::check_first_start(&options.directory, &layout)?;
        for (name, text) in support::FILES {
            layout.write_support(name, text).map_err(broken)?;
        }
        if options.database == AirflowDatabase::Private
            && let Some(why) = postgres::Cluster::why_not(&options.directory)
        {
            return Err(OpenError::NoServer(why));
        }
        let plane = Plane::new(options, services, timing, layout, WebClient::new(timing.response_timeout)?);
        let local = Self { plane, clusters: NamedClusters::default() };
        local.take_over().map_err(OpenError::NotTakenOver)?;
        tokio::spawn(unused_runtimes::sweep(Arc::downgrade(&local.plane)));
        tokio::spawn(quota::watch(Arc::downgrade(&local.plane)));
        tokio::spawn(state::watch(Arc::downgrade(&local.plane)));
        let plane = Arc::clone(&local.plane);
        tokio::spawn(async move {
            if let Err(lacking) = plane.host().await {
                tracing::warn!("{lacking}");
            }
        });
        Ok(local)
    }

    /// Stops the plane's own database server once no environment uses it.
    pub async fn stop_unused_database(&self) {
        self.plane.stop_unused_database().await;
    }

    /// Takes over existing environments. A broken one does not prevent the others from running.
    fn take_over(&self) -> std::io::Result<()> {
        for id in self.plane.layout.known()? {
            match State::read(&self.plane.layout.environment(id).state()) {
                Ok(Some(state)) => {
                    let order =
                        if state.is_removed { Order::Remove(state.drains_until) } else { Order::Hold };
                    let handle = Supervisor::start(&self.plane, id, state, order);
                    self.plane.supervisors().insert(id, handle);
                }
                // Interrupted before the first state was saved, or almost completely removed.
                Ok(None) => remove_unknown(&self.plane, id),
                Err(error) => self.plane.note_unreadable(id, &error),
            }
        }
        Ok(())
    }

    async fn measure(&self) -> Vec<EnvironmentMetrics> {
        // It looks at all of the machine, so one at a time does.
        let _turn = self.plane.measuring.lock().await;
        let plane = Arc::clone(&self.plane);
        blocking(move || view::metrics_of(&plane)).await
    }

    async fn apply_environment(&self, environment: &Environment) -> Result<(), Fault> {
        if self.send_order(environment) {
            return Ok(());
        }
        let _turn = self.plane.creation_lock.lock().await;
        // Another call may have created it in the meantime.
        if self.send_order(environment) {
            return Ok(());
        }
        let (plane, environment) = (Arc::clone(&self.plane), Arc::new(environment.clone()));
        let kept = blocking(move || start_supervising(&plane, &environment)).await;
        Ok(kept.map_err(|error| Reason::of_io("the requested state cannot be saved", &error))?)
    }

    /// Sends the desired state to the environment's supervisor, if there is one.
    fn send_order(&self, environment: &Environment) -> bool {
        let supervisors = self.plane.supervisors();
        let Some(handle) = supervisors.get(&environment.id) else { return false };
        let known = match handle.view.observed().generation {
            -1 => handle.generation,
            known => known,
        };
        if known <= environment.generation && !handle.is_removing() {
            // Where nothing is to be done, nothing is under way.
            let stays = known == environment.generation && handle.is_stopped_by_operator();
            handle.view.change(|status| {
                status.generation = environment.generation;
                status.is_hibernating = environment.is_hibernating;
                if !stays {
                    status.rollout = podium_domain::deployments::plan::Rollout::Underway;
                }
            });
            handle.orders.send_replace(Order::Run(Arc::new(environment.clone())));
        }
        true
    }

    /// Removes an environment, after its running tasks have finished if `drain` says how long to wait for them.
    async fn remove_environment(&self, id: DeploymentId, drain: Option<Duration>) -> Result<(), Fault> {
        if self.plane.note_readable(id) {
            tracing::warn!(%id, "removing an environment without saved state; a database that it has on a server is not dropped");
            let plane = Arc::clone(&self.plane);
            blocking(move || remove_unknown(&plane, id)).await;
            return Ok(());
        }
        let state_file = match self.plane.supervisors().get(&id) {
            Some(handle) if !handle.is_removing() => Arc::clone(&handle.controls.state_file),
            _ => return Ok(()),
        };
        // On disk first, so that nothing brings it back after this.
        let now = (self.plane.services.clock)();
        let until = drain.map(|grace| now + grace);
        let marked = blocking(move || state_file.mark_removed(until)).await;
        marked.map_err(|error| Reason::of_io("the removal cannot be saved", &error))?;
        if until.is_some() {
            // Not only in its supervisor, which may be busy: if this process ends first, no further tasks are to start. What
            // has nothing to drain cannot be asked, and its supervisor reports other errors.
            let _ = supervisor::drain::ask(&self.plane.layout.environment(id), now).await;
        }
        if let Some(handle) = self.plane.supervisors().get(&id).filter(|handle| !handle.is_removing()) {
            handle.orders.send_replace(Order::Remove(until));
        }
        Ok(())
    }
}

impl Drop for Local {
    /// Ends the supervisors, but not the processes that they supervise, unless these are being removed.
    fn drop(&mut self) {
        allow_blocking(|| end(&self.plane));
    }
}

/// Ends the supervisors, and what runs of environments that are being removed.
fn end(plane: &Plane) {
    let mut supervisors = std::mem::take(&mut *plane.supervisors());
    supervisors.retain(|_, handle| handle.is_ending());
    let ending: Vec<DeploymentId> = supervisors.into_keys().collect();
    ending.into_iter().for_each(|id| plane.kill_processes(id));
    plane.databases.cluster.stop_supervising();
    if let Some(Network::Filtered(filter, _)) = plane.detected_host().map(|host| &host.network) {
        filter.remove_if_unused();
    }
}

/// Starts to supervise an environment: a new one, or one whose state could not be read before.
fn start_supervising(plane: &Arc<Plane>, environment: &Arc<Environment>) -> std::io::Result<()> {
    let id = environment.id;
    let place = plane.layout.environment(id);
    let state = match State::read(&place.state())? {
        Some(state) => state,
        None => {
            let (namespace, generation) = (environment.namespace.clone(), environment.generation);
            let state = State { slot: free_slot(plane)?, namespace, generation, ..State::default() };
            fs::create_dir_all(&place.root)?;
            state.write(&place.state())?;
            state
        }
    };
    plane.note_readable(id);
    let order = match state.is_removed {
        true => Order::Remove(state.drains_until),
        false => Order::Run(Arc::clone(environment)),
    };
    let handle = Supervisor::start(plane, id, state, order);
    handle.view.change(|status| {
        status.generation = environment.generation;
        status.is_hibernating = environment.is_hibernating;
    });
    plane.supervisors().insert(id, handle);
    Ok(())
}

/// Removes an environment without saved state, using what its files reveal.
fn remove_unknown(plane: &Arc<Plane>, id: DeploymentId) {
    let place = plane.layout.environment(id);
    let slot = place.slot_by_owner(&plane.layout.users).unwrap_or_default();
    let state = State { slot, is_removed: true, ..State::default() };
    let handle = Supervisor::start(plane, id, state, Order::Remove(None));
    plane.supervisors().insert(id, handle);
}

/// A slot that no environment has or had.
fn free_slot(plane: &Plane) -> std::io::Result<u32> {
    let mut taken = Vec::new();
    for id in plane.layout.known()? {
        let place = plane.layout.environment(id);
        let known = State::read(&place.state()).ok().flatten().map(|state| state.slot);
        taken.extend(known.or_else(|| place.slot_by_owner(&plane.layout.users)));
    }
    users::take_slot(&plane.layout.root, &plane.layout.users, &taken)
}

impl DataPlane for Local {
    fn kind(&self) -> PlaneKind {
        PlaneKind::Local
    }

    fn accepts(&self, _: &Cluster) -> Result<(), UserText> {
        Err(clusters::NO_CLUSTERS.into())
    }

    fn runs_images(&self) -> bool {
        false
    }

    fn apply<'a>(&'a self, environment: &'a Environment) -> PlaneFuture<'a, ()> {
        Box::pin(self.apply_environment(environment))
    }

    fn observe<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, Option<Observed>> {
        Box::pin(async move {
            let kept = self.plane.supervisors().get(&at.id).map(|handle| handle.view.observed());
            Ok(kept.or_else(|| self.plane.unreadable(at.id)))
        })
    }

    fn rollout_report<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, Option<(i64, RolloutReport)>> {
        Box::pin(async {
            Ok(self.plane.supervisors().get(&at.id).and_then(|handle| handle.view.lock().report.clone()))
        })
    }

    fn remove<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, ()> {
        Box::pin(self.remove_environment(at.id, None))
    }

    fn drain_and_remove<'a>(&'a self, at: &'a Location, grace: Option<Duration>) -> PlaneFuture<'a, ()> {
        Box::pin(self.remove_environment(at.id, Some(grace.unwrap_or(self.plane.timing.drain))))
    }

    fn end_drain<'a>(&'a self, at: &'a Location, generation: i64) -> PlaneFuture<'a, ()> {
        if let Some(handle) = self.plane.supervisors().get(&at.id)
            && handle.view.is_draining()
            && handle.view.observed().generation == generation
        {
            handle.controls.force.send_replace(true);
        }
        Box::pin(async { Ok(()) })
    }

    fn clean_up<'a>(&'a self, at: &'a Location, clean_up: CleanUp) -> PlaneFuture<'a, CleanUpState> {
        Box::pin(async move {
            let supervisors = self.plane.supervisors();
            let handle = supervisors.get(&at.id).ok_or_else(|| Fault::Failed("it is not here".into()))?;
            Ok(handle.controls.clean_ups.ask(clean_up))
        })
    }

    fn apply_cluster<'a>(&'a self, cluster: &'a Cluster) -> PlaneFuture<'a, ()> {
        self.clusters.apply(cluster);
        Box::pin(async { Ok(()) })
    }

    fn observe_cluster(&self, at: ClusterLocation) -> PlaneFuture<'_, Option<ObservedCluster>> {
        Box::pin(async move { Ok(self.clusters.get(at.id)) })
    }

    fn remove_cluster(&self, at: ClusterLocation) -> PlaneFuture<'_, ()> {
        self.clusters.remove(at.id);
        Box::pin(async { Ok(()) })
    }

    fn web_server<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, Option<WebServer>> {
        Box::pin(async { Ok(self.find_web_server(at.id)) })
    }

    fn changes(&self) -> Changes {
        self.plane.notifier.subscribe()
    }

    fn metrics<'a>(&'a self, of: &'a [Location]) -> PlaneFuture<'a, Vec<EnvironmentMetrics>> {
        Box::pin(async {
            let mut metrics = self.measure().await;
            metrics.retain(|metrics| of.iter().any(|location| location.id == metrics.id));
            Ok(metrics)
        })
    }

    fn running_tasks<'a>(&'a self, at: &'a Location) -> PlaneFuture<'a, Option<RunningTasks>> {
        Box::pin(self.find_running_tasks(at.id))
    }

    fn machine(&self) -> Option<&dyn Machine> {
        Some(self)
    }
}

impl Machine for Local {
    fn environments(&self) -> Vec<DeploymentId> {
        let mut ids: Vec<DeploymentId> = self.plane.supervisors().keys().copied().collect();
        ids.extend(self.plane.unreadable_ids());
        ids.sort_unstable();
        ids
    }

    fn runs_peer(&self, peer: SocketAddr, own: Option<SocketAddr>) -> PlaneFuture<'_, bool> {
        // Only root gives environments users of their own.
        let users = rustix::process::geteuid().is_root().then(|| self.plane.layout.users.clone());
        Box::pin(async move { Ok(socket_owners::is_of(users, peer, own).await) })
    }

    fn all_metrics(&self) -> PlaneFuture<'_, Vec<EnvironmentMetrics>> {
        Box::pin(async { Ok(self.measure().await) })
    }

    fn set_aside(&self, id: DeploymentId) -> PlaneFuture<'_, ()> {
        Box::pin(self.move_aside(id))
    }

    fn end(&self) -> PlaneFuture<'_, ()> {
        let plane = Arc::clone(&self.plane);
        Box::pin(async move {
            blocking(move || end(&plane)).await;
            Ok(())
        })
    }
}
