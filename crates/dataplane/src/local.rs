//! Environments as processes on this machine: Apache Airflow for real.
//!
//! Each environment has a keeper, a task that brings it to what is wanted and holds it there. Processes outlive the
//! control plane: after any end of it the next start takes over what runs, and is told anew what is wanted, because
//! neither settings nor secrets are kept here. Code of DAGs is not trusted with anything but its own environment.

mod aside;
mod broker;
mod carrying;
mod cgroups;
mod code;
mod components;
mod database;
mod ground;
mod health;
mod identity;
mod isolation;
mod keeper;
mod layout;
mod lines;
mod locks;
mod metadata;
mod network;
mod offsets;
mod open_error;
mod options;
mod pace;
mod plane;
mod ports;
mod postgres;
mod process;
mod program;
mod python;
mod quota;
mod room;
mod running;
mod runtimes;
mod server_url;
mod services;
mod settings;
mod short_directory;
mod socket;
mod state;
mod strays;
mod tail;
mod tasks;
#[cfg(test)]
mod tests;
mod trees;
mod unused;
mod users;
mod view;
mod vitals;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use podium_api::{ClusterId, DeploymentId};
use podium_domain::Reason;

pub use self::carrying::{Carried, carried, remove_tree, settle_in};
use self::health::Probes;
pub use self::isolation::Confinement;
use self::keeper::{Keeper, Order};
use self::layout::Layout;
pub use self::metadata::Metadata;
use self::network::Network;
pub use self::network::{Forward, Holding, Uplink};
pub use self::open_error::OpenError;
pub use self::options::{AirflowDatabase, BadDatabase, Broker, NetworkChoice, Options};
use self::pace::Pace;
use self::plane::Plane;
use self::process::numbers;
pub use self::python::{NoPython, check_python};
pub use self::quota::half_of_disk;
pub use self::server_url::BadUrl;
pub use self::services::{Archive, Archives, Keys, Logs, Services};
use self::settings::EnvironmentKeys;
use self::state::State;
use crate::blocking::blocking;
use crate::simulated::Simulated;
use crate::{
    Answer, Changes, Cluster, DataPlane, Door, Environment, Fault, Line, Observed, ObservedCluster, Vitals,
};

/// What Airflow needs to know of this plane, in Python.
const SUPPORT: &[(&str, &str)] = &[
    ("airflow_local_settings.py", include_str!("local/airflow_local_settings.py")),
    ("podium_airflow/__init__.py", include_str!("local/podium_airflow/__init__.py")),
    ("podium_airflow/auth.py", include_str!("local/podium_airflow/auth.py")),
    ("podium_airflow/broker.py", include_str!("local/podium_airflow/broker.py")),
    ("podium_airflow/executors.py", include_str!("local/podium_airflow/executors.py")),
    ("podium_airflow/signals.py", include_str!("local/podium_airflow/signals.py")),
    ("podium_bundle.py", include_str!("local/podium_bundle.py")),
    ("podium_database.py", include_str!("local/podium_database.py")),
    ("podium_launch.py", include_str!("local/podium_launch.py")),
    ("webserver_config.py", include_str!("local/webserver_config.py")),
];

/// Runs environments as processes on this machine.
pub struct Local {
    plane: Arc<Plane>,
    /// Clusters are names here: all of them are this machine.
    clusters: Simulated,
}

impl Local {
    /// Opens the plane, and takes over the environments that run. What this machine lacks is said by the environments
    /// that need it, and in the log.
    pub async fn open(options: Options, services: Services) -> Result<Self, OpenError> {
        blocking(move || Self::open_at(Pace::default(), options, services)).await
    }

    fn open_at(pace: Pace, options: Options, services: Services) -> Result<Self, OpenError> {
        let broken = |error| OpenError::unusable(&options.directory, error);
        let layout = Layout::make(&options.directory).map_err(broken)?;
        carrying::first_start(&options.directory, &layout)?;
        for (name, text) in SUPPORT {
            layout.write_support(name, text).map_err(broken)?;
        }
        if options.database == AirflowDatabase::Private
            && let Some(why) = postgres::Cluster::why_not(&options.directory)
        {
            return Err(OpenError::NoServer(why));
        }
        let clock = Arc::clone(&services.clock);
        let clusters = Simulated::kept_in(options.directory.join("clusters"), clock).map_err(broken)?;
        let plane = Plane::new(options, services, pace, layout, Probes::new(pace.answer)?);
        let local = Self { plane, clusters };
        local.take_over().map_err(OpenError::NotTakenOver)?;
        tokio::spawn(unused::sweep(Arc::downgrade(&local.plane)));
        tokio::spawn(quota::watch(Arc::downgrade(&local.plane)));
        let plane = Arc::clone(&local.plane);
        tokio::spawn(async move {
            if let Err(lacking) = plane.ground().await {
                tracing::warn!("{lacking}");
            }
        });
        Ok(local)
    }

    /// Finds the environments that were here before. One that is broken does not keep the others from running.
    fn take_over(&self) -> std::io::Result<()> {
        for id in self.plane.layout.known()? {
            match State::read(&self.plane.layout.environment(id).state()) {
                Ok(Some(state)) => {
                    let order = if state.is_removed { Order::Remove } else { Order::Hold };
                    let handle = Keeper::start(&self.plane, id, state, order);
                    self.plane.keepers().insert(id, handle);
                }
                // Made, and cut off before anything was remembered; or all but removed.
                Ok(None) => remove_unknown(&self.plane, id),
                Err(error) => self.plane.note_unreadable(id, &error),
            }
        }
        Ok(())
    }

    async fn put(&self, environment: &Environment) -> Result<(), Fault> {
        if self.tell(environment) {
            return Ok(());
        }
        let _turn = self.plane.turn.lock().await;
        // Somebody else may have begun with it meanwhile.
        if self.tell(environment) {
            return Ok(());
        }
        let (plane, environment) = (Arc::clone(&self.plane), Arc::new(environment.clone()));
        let kept = blocking(move || keep(&plane, &environment)).await;
        Ok(kept.map_err(|error| Reason::of_io("it cannot be written down that it is wanted", &error))?)
    }

    /// Tells the keeper of an environment what is wanted, if there is one.
    fn tell(&self, environment: &Environment) -> bool {
        let keepers = self.plane.keepers();
        let Some(handle) = keepers.get(&environment.id) else { return false };
        let known = handle.view.get().generation.unwrap_or(handle.generation);
        if known <= environment.generation && !handle.is_removing() {
            handle.view.change(|shown| {
                shown.generation = Some(environment.generation);
                shown.is_hibernating = environment.is_hibernating;
                shown.rollout = podium_domain::deployments::plan::Rollout::Underway;
            });
            handle.orders.send_replace(Order::Run(Arc::new(environment.clone())));
        }
        true
    }

    async fn take(&self, id: DeploymentId) -> Result<(), Fault> {
        if self.plane.note_readable(id) {
            tracing::warn!(%id, "an environment is removed of which nothing is known: a database of it on a server stays");
            let plane = Arc::clone(&self.plane);
            blocking(move || remove_unknown(&plane, id)).await;
            return Ok(());
        }
        let memory = match self.plane.keepers().get(&id) {
            Some(handle) if !handle.is_removing() => Arc::clone(&handle.memory),
            _ => return Ok(()),
        };
        // On disk first: nothing brings it back after this.
        let marked = blocking(move || memory.mark_removed()).await;
        marked.map_err(|error| Reason::of_io("it cannot be written down that it is removed", &error))?;
        if let Some(handle) = self.plane.keepers().get(&id).filter(|handle| !handle.is_removing()) {
            handle.orders.send_replace(Order::Remove);
        }
        Ok(())
    }

    fn find_door(&self, id: DeploymentId) -> Option<Door> {
        let keepers = self.plane.keepers();
        let shown = keepers.get(&id)?.view.get();
        let version = shown.running.runtime_version.clone().unwrap_or_default();
        let keys = EnvironmentKeys::new(|purpose| self.plane.key(id, purpose));
        Some(Door {
            address: SocketAddr::from((Ipv4Addr::LOCALHOST, shown.web_port?)),
            line: if version.starts_with("2.") { Line::Two } else { Line::Three },
            key: keys.door,
        })
    }
}

impl Drop for Local {
    /// Ends the keepers, and nothing that they keep.
    fn drop(&mut self) {
        self.plane.keepers().clear();
        self.plane.databases.cluster.leave();
        if let Some(Network::Filtered(filter, _)) = self.plane.known_ground().map(|ground| &ground.network) {
            filter.remove_if_unused();
        }
    }
}

/// Begins to keep an environment: a new one, or one that could not be read before and is taken over late.
fn keep(plane: &Arc<Plane>, environment: &Arc<Environment>) -> std::io::Result<()> {
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
    let order = if state.is_removed { Order::Remove } else { Order::Run(Arc::clone(environment)) };
    let handle = Keeper::start(plane, id, state, order);
    handle.view.change(|shown| {
        shown.generation = Some(environment.generation);
        shown.is_hibernating = environment.is_hibernating;
    });
    plane.keepers().insert(id, handle);
    Ok(())
}

/// Clears away an environment of which nothing is remembered but what its files tell.
fn remove_unknown(plane: &Arc<Plane>, id: DeploymentId) {
    let place = plane.layout.environment(id);
    let slot = place.slot_by_owner(&plane.layout.users()).unwrap_or_default();
    let state = State { slot, is_removed: true, ..State::default() };
    let handle = Keeper::start(plane, id, state, Order::Remove);
    plane.keepers().insert(id, handle);
}

/// A number that no environment has or had.
fn free_slot(plane: &Plane) -> std::io::Result<u32> {
    let mut taken = Vec::new();
    for id in plane.layout.known()? {
        let place = plane.layout.environment(id);
        let known = State::read(&place.state()).ok().flatten().map(|state| state.slot);
        taken.extend(known.or_else(|| place.slot_by_owner(&plane.layout.users())));
    }
    plane.layout.take_slot(&taken)
}

impl DataPlane for Local {
    fn apply<'a>(&'a self, environment: &'a Environment) -> Answer<'a, ()> {
        Box::pin(self.put(environment))
    }

    fn observe(&self, id: DeploymentId) -> Answer<'_, Option<Observed>> {
        Box::pin(async move {
            let kept = self.plane.keepers().get(&id).map(|handle| handle.view.observed());
            Ok(kept.or_else(|| self.plane.unreadable(id)))
        })
    }

    fn remove(&self, id: DeploymentId) -> Answer<'_, ()> {
        Box::pin(self.take(id))
    }

    fn apply_cluster<'a>(&'a self, cluster: &'a Cluster) -> Answer<'a, ()> {
        self.clusters.apply_cluster(cluster)
    }

    fn observe_cluster(&self, id: ClusterId) -> Answer<'_, Option<ObservedCluster>> {
        self.clusters.observe_cluster(id)
    }

    fn remove_cluster(&self, id: ClusterId) -> Answer<'_, ()> {
        self.clusters.remove_cluster(id)
    }

    fn door(&self, id: DeploymentId) -> Answer<'_, Option<Door>> {
        Box::pin(async move { Ok(self.find_door(id)) })
    }

    fn environment_users(&self) -> Option<std::ops::Range<u32>> {
        rustix::process::geteuid().is_root().then(|| self.plane.layout.users())
    }

    fn changes(&self) -> Changes {
        self.plane.news.listen()
    }

    fn is_bound_to_machine(&self) -> bool {
        true
    }

    fn vitals(&self) -> Answer<'_, Vec<Vitals>> {
        let plane = Arc::clone(&self.plane);
        Box::pin(async move { Ok(blocking(move || vitals::of(&plane)).await) })
    }

    fn kept(&self) -> Vec<DeploymentId> {
        let mut ids: Vec<DeploymentId> = self.plane.keepers().keys().copied().collect();
        ids.extend(self.plane.unreadable_ids());
        ids.sort_unstable();
        ids
    }

    fn set_aside(&self, id: DeploymentId) -> Answer<'_, ()> {
        Box::pin(self.put_aside(id))
    }
}
