//! Environments as processes on this machine: Apache Airflow for real.
//!
//! Each environment has a keeper, a task that brings it to what is wanted and holds it there. Processes outlive the
//! control plane: after any end of it the next start takes over what runs, and is told anew what is wanted, because
//! neither settings nor secrets are kept here. Code of DAGs is not trusted with anything but its own environment.

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
mod offsets;
mod options;
mod plane;
mod process;
mod program;
mod python;
mod runtimes;
mod services;
mod settings;
mod state;
mod tail;
mod tasks;
mod view;

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use podium_api::Id;

use self::health::Probes;
pub use self::isolation::confine;
use self::keeper::{Keeper, Order};
use self::layout::Layout;
pub use self::options::{Broker, Options};
use self::plane::Plane;
pub use self::services::{Archive, Archives, Keys, Logs, Services};
use self::settings::EnvironmentKeys;
use self::state::State;
use crate::simulated::Simulated;
use crate::{Answer, Changes, Cluster, DataPlane, Door, Environment, Fault, Line, Observed, ObservedCluster};

/// What Airflow needs to know of this plane, in Python.
const SUPPORT: &[(&str, &str)] = &[
    ("podium_bundle.py", include_str!("local/podium_bundle.py")),
    ("podium_database.py", include_str!("local/podium_database.py")),
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
    pub fn open(options: Options, services: Services) -> Result<Self, String> {
        let broken = |error: std::io::Error| {
            format!("the local data plane in {} cannot be used: {error}", options.directory.display())
        };
        let layout = Layout::make(&options.directory).map_err(broken)?;
        for (name, text) in SUPPORT {
            layout::write_whole(&layout.support().join(name), text.as_bytes(), 0o644).map_err(broken)?;
        }
        let clock = Arc::clone(&services.clock);
        let clusters = Simulated::kept_in(options.directory.join("clusters"), clock).map_err(broken)?;
        let plane = Plane::new(options, services, layout, Probes::new()?);
        let local = Self { plane, clusters };
        local.take_over().map_err(|error| format!("environments cannot be taken over: {error}"))?;
        let plane = Arc::clone(&local.plane);
        tokio::spawn(async move {
            if let Err(lacking) = plane.ground().await {
                tracing::warn!("{lacking}");
            }
        });
        Ok(local)
    }

    /// Finds the environments that were here before.
    fn take_over(&self) -> std::io::Result<()> {
        for id in self.plane.layout.known()? {
            let place = self.plane.layout.environment(id);
            let Some(state) = State::read(&place.state())? else {
                // Made, and cut off before anything was remembered.
                fs::remove_dir_all(&place.root)?;
                continue;
            };
            let order = if state.is_removed { Order::Remove } else { Order::Hold };
            let handle = Keeper::start(&self.plane, id, state, order);
            self.plane.keepers().insert(id, handle);
        }
        Ok(())
    }

    fn put(&self, environment: &Environment) -> Result<(), Fault> {
        let mut keepers = self.plane.keepers();
        let id = environment.id;
        if let Some(handle) = keepers.get(&id) {
            let is_overtaken =
                handle.view.get().generation.is_some_and(|known| known > environment.generation);
            if !is_overtaken && !matches!(*handle.orders.borrow(), Order::Remove) {
                handle.view.change(|shown| {
                    shown.generation = Some(environment.generation);
                    shown.is_hibernating = environment.is_hibernating;
                    shown.rollout = podium_domain::deployments::plan::Rollout::Underway;
                });
                handle.orders.send_replace(Order::Run(Arc::new(environment.clone())));
            }
            return Ok(());
        }
        let place = self.plane.layout.environment(id);
        let state = State {
            slot: free_slot(&self.plane).map_err(|error| Fault::Failed(error.to_string()))?,
            namespace: environment.namespace.clone(),
            generation: environment.generation,
            ..State::default()
        };
        fs::create_dir_all(&place.root)
            .and_then(|()| state.write(&place.state()))
            .map_err(|error| Fault::Failed(error.to_string()))?;
        let handle = Keeper::start(&self.plane, id, state, Order::Run(Arc::new(environment.clone())));
        handle.view.change(|shown| {
            shown.generation = Some(environment.generation);
            shown.is_hibernating = environment.is_hibernating;
        });
        keepers.insert(id, handle);
        Ok(())
    }

    fn take(&self, id: Id) -> Result<(), Fault> {
        let keepers = self.plane.keepers();
        let Some(handle) = keepers.get(&id) else { return Ok(()) };
        if matches!(*handle.orders.borrow(), Order::Remove) {
            return Ok(());
        }
        // On disk first: nothing brings it back after this.
        let path = self.plane.layout.environment(id).state();
        let mut state = State::read(&path).ok().flatten().unwrap_or_default();
        state.is_removed = true;
        state.write(&path).map_err(|error| Fault::Failed(error.to_string()))?;
        handle.orders.send_replace(Order::Remove);
        Ok(())
    }

    fn find_door(&self, id: Id) -> Option<Door> {
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

/// The lowest number that no environment has.
fn free_slot(plane: &Plane) -> std::io::Result<u32> {
    let mut taken = Vec::new();
    for id in plane.layout.known()? {
        taken.extend(State::read(&plane.layout.environment(id).state())?.map(|state| state.slot));
    }
    Ok((1..).find(|slot| !taken.contains(slot)).unwrap_or(u32::MAX))
}

impl DataPlane for Local {
    fn apply<'a>(&'a self, environment: &'a Environment) -> Answer<'a, ()> {
        Box::pin(async move { self.put(environment) })
    }

    fn observe(&self, id: Id) -> Answer<'_, Option<Observed>> {
        Box::pin(async move { Ok(self.plane.keepers().get(&id).map(|handle| handle.view.observed())) })
    }

    fn remove(&self, id: Id) -> Answer<'_, ()> {
        Box::pin(async move { self.take(id) })
    }

    fn apply_cluster<'a>(&'a self, cluster: &'a Cluster) -> Answer<'a, ()> {
        self.clusters.apply_cluster(cluster)
    }

    fn observe_cluster(&self, id: Id) -> Answer<'_, Option<ObservedCluster>> {
        self.clusters.observe_cluster(id)
    }

    fn remove_cluster(&self, id: Id) -> Answer<'_, ()> {
        self.clusters.remove_cluster(id)
    }

    fn door(&self, id: Id) -> Answer<'_, Option<Door>> {
        Box::pin(async move { Ok(self.find_door(id)) })
    }

    fn changes(&self) -> Changes {
        self.plane.news.listen()
    }
}
