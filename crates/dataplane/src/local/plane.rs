//! State that all supervisors share.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use podium_airflow::web_client::WebClient;
use podium_api::{DeploymentId, Id};
use podium_domain::Reason;
use podium_domain::deployments::plan::{Component, Health, Observed};
use tokio::sync::{Mutex as AsyncMutex, OnceCell};

use super::cgroups::Cgroups;
use super::database::Databases;
use super::host::Host;
use super::isolation::{Isolation, Mode};
use super::layout::Layout;
use super::options::Options;
use super::orphans::{LOOK_AGAIN, OrphanProcesses, VANISHING};
use super::packages::Packages;
use super::postgres::Cluster;
use super::process::with_process_limit;
use super::runtimes::Runtimes;
use super::state::State;
use super::supervisor::Handle;
use super::timing::Timing;
use super::users::DATABASE_SLOT;
use super::view::not_applied;
use crate::blocking::blocking;
use crate::{ChangeNotifier, Changed, Keys, Secret, Services};

/// The component that is reported as down for an environment that cannot be taken over.
pub(super) const UNREADABLE_COMPONENT: &str = "state";

/// State that all supervisors share.
pub(super) struct Plane {
    pub(super) options: Options,
    pub(super) timing: Timing,
    pub(super) services: Services,
    pub(super) layout: Layout,
    pub(super) support: PathBuf,
    pub(super) runtimes: Runtimes,
    pub(super) packages: Packages,
    pub(super) databases: Databases,
    host: OnceCell<Host>,
    pub(super) cgroups: Cgroups,
    pub(super) web_client: WebClient,
    pub(super) notifier: ChangeNotifier,
    supervisors: Mutex<HashMap<DeploymentId, Handle>>,
    /// Environments that cannot be supervised because their saved state cannot be read, with the reason.
    unreadable: Mutex<BTreeMap<DeploymentId, Reason>>,
    /// Held while a supervisor is created.
    pub(super) creation_lock: AsyncMutex<()>,
    /// Held by whoever measures processes.
    pub(super) measuring: AsyncMutex<()>,
}

impl Plane {
    pub(super) fn new(
        options: Options,
        services: Services,
        timing: Timing,
        layout: Layout,
        web_client: WebClient,
    ) -> Arc<Self> {
        let databases = databases(&options, &services.keys, &layout, timing);
        let support = layout.support();
        let runtimes = Runtimes::new(layout.clone(), options.disk_reserve);
        let packages = Packages::new(layout.clone(), options.disk_reserve, options.environment_disk);
        Arc::new(Self {
            options,
            services,
            timing,
            runtimes,
            packages,
            layout,
            support,
            databases,
            host: OnceCell::new(),
            cgroups: Cgroups::find(),
            web_client,
            notifier: ChangeNotifier::default(),
            supervisors: Mutex::default(),
            unreadable: Mutex::default(),
            creation_lock: AsyncMutex::default(),
            measuring: AsyncMutex::default(),
        })
    }

    /// The capabilities of this machine. If something is missing, detection is repeated each time: it may have been
    /// installed.
    pub(super) async fn host(&self) -> Result<&Host, Reason> {
        let find = || async {
            let found = Host::find(&self.options, &self.layout).await?;
            let described = found.describe();
            if matches!(found.isolation.mode, Mode::Trusted(_)) {
                tracing::warn!("{described}");
            } else {
                tracing::info!(python = %found.python.path.display(), "{described}");
            }
            Ok(found)
        };
        self.host.get_or_try_init(find).await
    }

    /// The same, if it has been detected.
    pub(super) fn detected_host(&self) -> Option<&Host> {
        self.host.get()
    }

    pub(super) fn key(&self, id: DeploymentId, purpose: &str) -> Secret {
        (self.services.keys)(id, purpose)
    }

    pub(super) fn supervisors(&self) -> MutexGuard<'_, HashMap<DeploymentId, Handle>> {
        self.supervisors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records an environment that cannot be supervised; it is retried whenever it is applied.
    pub(super) fn note_unreadable(&self, id: DeploymentId, error: &std::io::Error) {
        tracing::error!(%id, %error, "an environment cannot be taken over; it will be tried again, and the others are not affected");
        self.unreadable_now().insert(id, Reason::of_io("the environment cannot be taken over", error));
    }

    /// Records that it can be supervised; returns whether it could not before.
    pub(super) fn note_readable(&self, id: DeploymentId) -> bool {
        self.unreadable_now().remove(&id).is_some()
    }

    /// The observed state of an environment that cannot be supervised.
    pub(super) fn unreadable(&self, id: DeploymentId) -> Option<Observed> {
        let why = self.unreadable_now().get(&id).cloned()?;
        let health = Health::Down(why);
        Some(not_applied(vec![Component { name: UNREADABLE_COMPONENT.into(), health }]))
    }

    pub(super) fn unreadable_ids(&self) -> Vec<DeploymentId> {
        self.unreadable_now().keys().copied().collect()
    }

    fn unreadable_now(&self) -> MutexGuard<'_, BTreeMap<DeploymentId, Reason>> {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stops the plane's own database server once no environment uses it.
    pub(super) async fn stop_unused_database(&self) {
        let layout = self.layout.clone();
        let is_needed = blocking(move || {
            let is_on_it = |id: &DeploymentId| {
                let place = layout.environment(*id);
                match State::read(&place.state()) {
                    Ok(state) => state.is_some_and(|state| state.is_private && !state.is_stopped(&place)),
                    Err(_) => true,
                }
            };
            layout.known().map_or(true, |known| known.iter().any(is_on_it))
        });
        self.databases.cluster.stop_unless(is_needed).await;
    }

    /// Kills what runs of an environment whose removal is interrupted by the end of this process: the next start removes the
    /// rest, and may be far away.
    pub(super) fn kill_processes(&self, id: DeploymentId) {
        let place = self.layout.environment(id);
        let slot = State::read(&place.state()).ok().flatten().map(|state| state.slot);
        let user = slot.and_then(|slot| self.detected_host()?.isolation.user_of(slot));
        let mut orphans = OrphanProcesses::of(id, user, &self.cgroups);
        if user.is_none() {
            orphans = orphans.using(place.root);
        }
        let until = Instant::now() + VANISHING;
        // A killed process may have started another one in the meantime.
        while orphans.kill(|_| true) > 0 {
            if Instant::now() > until {
                tracing::warn!(%id, "killed processes of an environment have not exited");
                return;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }

    /// How a program of an environment is started: in its control groups; without them a limit of the environment's user bounds
    /// its processes.
    pub(super) fn bounded(
        &self,
        id: DeploymentId,
        isolation: Isolation,
        arguments: Vec<OsString>,
    ) -> (Isolation, Vec<OsString>) {
        let most = self.options.environment_processes.filter(|_| isolation.user.is_some());
        let arguments = match most.filter(|_| !self.cgroups.counts_processes(id)) {
            Some(most) => with_process_limit(&arguments, most),
            None => arguments,
        };
        let groups = self.cgroups.groups(id).into_iter().filter(|group| group.exists());
        (isolation.in_groups(groups.collect()), arguments)
    }

    /// Removes the supervisor of a removed environment.
    pub(super) fn forget(&self, id: DeploymentId) {
        self.supervisors().remove(&id);
        self.notifier.notify(Changed::Environment(id));
    }
}

pub(super) fn databases(options: &Options, keys: &Keys, layout: &Layout, timing: Timing) -> Databases {
    let user = rustix::process::geteuid().is_root().then(|| layout.users.start + DATABASE_SLOT);
    // Of no environment: the server is shared.
    let password = keys(DeploymentId::from_raw(Id::from_parts(0, 0, 0)), "postgres");
    let cluster = Cluster::new(layout.postgres(), user, password, timing);
    Databases::new(&options.database, &options.directory, cluster)
}
