//! Prepares everything that processes need before they start: the runtime, directories, code, the database, ports.

use std::ffi::OsString;
use std::iter;
use std::process::Stdio;
use std::sync::Arc;

use podium_airflow::migration;
use podium_airflow::settings::{self, EnvironmentKeys, ProjectSettings, SettingsContext, bundles_in};
use podium_api::enums::SchedulerSize;
use podium_domain::deployments::rollout::RolloutStep;
use podium_domain::{Given, Reason, UserText, options};
use tokio::process::Command;

use super::Supervisor;
use crate::Environment;
use crate::blocking::{blocking, blocking_exclusive};
use crate::local::broker::OwnBroker;
use crate::local::cgroups::Bounds;
use crate::local::command::run;
use crate::local::components::{self, programs};
use crate::local::database::{Database, Kind, Location};
use crate::local::host::Host;
use crate::local::isolation::{FileAccess, Isolation};
use crate::local::metadata::Metadata;
use crate::local::network::is_network;
use crate::local::options::Broker;
use crate::local::prepare_error::PrepareError;
use crate::local::program::Program;
use crate::local::runtimes::Runtime;
use crate::local::sockets::{self, Socket};
use crate::local::state::State;
use crate::local::tasks::choose;

/// CPU and memory of a web server, in thousandths of a CPU and bytes.
const WEB_SERVER: Bounds = Bounds { millicores: 1000, memory: 2 << 30, processes: None };

pub(super) struct Prepared {
    pub(super) environment: Arc<Environment>,
    pub(super) programs: Vec<Program>,
    pub(super) major: u32,
    pub(super) note: Option<UserText>,
    /// Whether tasks run inside the scheduler, which sends no heartbeats meanwhile.
    pub(super) is_sequential: bool,
    /// The project, if its DAGs are in one.
    pub(super) project: Option<ProjectSettings>,
    pub(super) runtime: Runtime,
    /// The variables of platform programs, such as migrations.
    variables: settings::Variables,
}

impl Supervisor {
    /// Creates everything that is missing. It can be cancelled at any point and started again.
    pub(super) async fn prepare(&mut self, environment: &Arc<Environment>) -> Result<Prepared, PrepareError> {
        self.refresh_isolation().await.map_err(|why| ("runtime", why))?;
        let runtime = self.runtime(&environment.spec.runtime_version).await?;
        let (place, isolation) = (self.place.clone(), self.isolation.clone());
        blocking_exclusive(&self.place.root, move || place.make(&isolation))
            .await
            .map_err(|error| ("directories", Reason::of_io("they cannot be created", &error)))?;
        self.open_socket().await.map_err(|error| ("ports", Reason::of_io("no port is available", &error)))?;
        let bounds = Bounds { processes: self.plane.options.environment_processes, ..bounds(environment) };
        let (plane, id) = (Arc::clone(&self.plane), self.id);
        if let Err(error) = blocking(move || plane.cgroups.bound(id, bounds)).await {
            tracing::warn!(id = %self.id, %error, "CPU, memory and process limits could not be set");
        }
        let mut all = self.ensure_network().await.map_err(|why| ("network", why))?;
        let project = self.prepare_release(environment, &runtime).await?;
        self.view.step(RolloutStep::Database, None, None);
        self.choose_database(&runtime).await;
        let database = self.database(&environment.namespace).await.map_err(|why| ("database", why))?;
        let url = database.url();
        self.restore_metadata().await.map_err(|why| ("database", why))?;
        if self.state.migrated_for.is_none() {
            database.make(&runtime, &self.isolation).await.map_err(|why| ("database", why))?;
        }
        let (place, user) = (self.place.clone(), self.isolation.user);
        let key = self.plane.key(self.id, "broker");
        let own_broker = blocking(move || OwnBroker::of(&place, user, key)).await;
        let own_broker = own_broker
            .map_err(|error| ("broker", Reason::of_io("there is no directory for its socket", &error)))?;
        let chosen = choose(
            environment,
            runtime.version.major(),
            matches!(database.at, Location::File),
            &self.plane.options.broker,
            &own_broker,
        );
        let (plane, place) = (Arc::clone(&self.plane), self.place.clone());
        let files = components::files(&place, &runtime, &plane.support);
        let context = SettingsContext {
            environment,
            version: runtime.version,
            files: &files,
            web_server: components::web_server(self.state.web_port),
            public_url: &plane.options.public_url,
            database: components::database(&url),
            bundles: bundles_in(&files.dags),
            tasks: &chosen.tasks,
            keys: self.keys(),
            project: project.as_ref(),
        };
        let broker = chosen.own_broker.map(|program| own_broker.program(self.id, &place, program));
        all.extend(programs(&context, &place, broker));
        if self.must_check(environment) {
            self.check_strictly(&context).await?;
            self.view.waited_for("dags");
        }
        let variables = settings::platform(&context);
        Ok(Prepared {
            environment: Arc::clone(environment),
            programs: all,
            major: runtime.version.major(),
            is_sequential: chosen.tasks.is_sequential,
            note: chosen.note,
            project,
            runtime,
            variables,
        })
    }

    /// Restores its metadata database from the dump of a backup, once.
    async fn restore_metadata(&self) -> Result<(), Reason> {
        let saved = self.place.saved_metadata();
        let path = saved.clone();
        if !blocking(move || path.exists()).await {
            return Ok(());
        }
        self.view.wait_for("database", "restoring the metadata database from the backup");
        Metadata::of_plane(&self.plane).restore(self.id, &saved).await?;
        self.view.waited_for("database");
        let removed = blocking(move || std::fs::remove_file(&saved)).await;
        removed.map_err(|error| Reason::of_io("the restored dump cannot be removed", &error))
    }

    pub(super) async fn refresh_isolation(&mut self) -> Result<(), Reason> {
        let host = self.plane.host().await?;
        self.isolation = self.in_own_network(self.isolation_on(host).await?, &host.network);
        Ok(())
    }

    /// The same before processes are stopped, which must not wait for what the machine lacks: without it they are recognised
    /// by their marks and files only, not by their user.
    pub(super) async fn refresh_isolation_to_stop(&mut self) {
        if let Err(why) = self.refresh_isolation().await {
            tracing::warn!(id = %self.id, %why, "the user of an environment is not known while its processes are stopped");
        }
    }

    /// Its isolation on this host, except for its network.
    pub(super) async fn isolation_on(&self, host: &Host) -> Result<Isolation, Reason> {
        let mut read = self.place.read();
        read.extend(host.read.iter().cloned());
        // Server sockets and trusted certificates have to be readable.
        let (databases, state) = (self.plane.databases.clone(), self.state.clone());
        read.extend(blocking(move || databases.required_paths(&state)).await);
        read.extend(self.relay(host).await?.map(|relay| relay.directory));
        let mut write = self.place.own();
        if matches!(self.plane.options.broker, Broker::Own(_)) {
            let (place, user) = (self.place.clone(), host.isolation.user_of(self.state.slot));
            let directory = blocking(move || OwnBroker::directory(&place, user)).await;
            let lacking = |error| Reason::of_io("there is no directory for its broker's socket", &error);
            write.extend(directory.map_err(lacking)?);
        }
        let access = FileAccess { write, read, temporary: self.place.temporary() };
        Ok(host.isolation.of_environment(self.state.slot, &access))
    }

    async fn runtime(&self, version: &str) -> Result<Runtime, PrepareError> {
        let host = self.plane.host().await.map_err(|why| ("runtime", why))?;
        let tell = |progress: Reason| {
            let message = progress.user_text().clone();
            self.view.wait_for("runtime", progress);
            self.view.step(RolloutStep::Runtime, None, Some(message));
        };
        let runtime =
            self.plane.runtimes.ensure(host, version, tell).await.map_err(|why| ("runtime", why))?;
        self.view.waited_for("runtime");
        Ok(runtime)
    }

    pub(super) fn keys(&self) -> EnvironmentKeys {
        EnvironmentKeys::new(|purpose| self.plane.key(self.id, purpose))
    }

    async fn database<'a>(&'a self, namespace: &'a str) -> Result<Database<'a>, Reason> {
        let relay = self.relay(self.plane.host().await?).await?;
        Ok(Database {
            at: self.plane.databases.of(&self.state).await?,
            relay: relay.map(|relay| relay.directory),
            place: &self.place,
            namespace,
            password: self.plane.key(self.id, "database"),
            support: &self.plane.support,
        })
    }

    /// Saves that a database will be on a server before it is created, so that it is dropped in any case.
    async fn choose_database(&mut self, runtime: &Runtime) {
        let State { migrated_for, server_runtime, is_private, .. } = &mut self.state;
        let is_new = migrated_for.is_none() && server_runtime.is_none();
        let kind = self.plane.databases.kind;
        if is_new && kind != Kind::Files {
            *server_runtime = Some(runtime.version.to_string());
            *is_private = kind == Kind::Private;
            self.save_state().await;
        }
    }

    /// Why its database server is down, if that is the plane's own.
    pub(super) fn database_failure(&self) -> Option<Reason> {
        self.state.is_private.then(|| self.plane.databases.cluster.failure()).flatten()
    }

    /// Drops the database of an environment that is being removed.
    pub(super) async fn drop_database(&self) -> Result<(), Reason> {
        let Some(version) = &self.state.server_runtime else { return Ok(()) };
        let database = self.database(&self.state.namespace).await?;
        let runtime = self.plane.runtimes.ensure(self.plane.host().await?, version, |_| {}).await?;
        database.drop(&runtime).await
    }

    /// Whether the database has to be migrated to another runtime first.
    fn must_migrate(&self, prepared: &Prepared) -> bool {
        let version = prepared.runtime.version.to_string();
        self.state.migrated_for.as_ref().is_some_and(|before| *before != version)
    }

    /// Drains running tasks if a migration is needed; returns whether to continue.
    pub(super) async fn drain_for_migration(&mut self, prepared: &Prepared) -> bool {
        !self.must_migrate(prepared) || self.drain_before("changing the runtime", &prepared.environment).await
    }

    /// Migrates the database to the runtime while nothing uses it.
    pub(super) async fn migrate(&mut self, prepared: &mut Prepared) -> Result<(), PrepareError> {
        let Prepared { environment, runtime, variables, programs, .. } = prepared;
        let version = runtime.version.to_string();
        let Some(before) = self.state.migrated_for.clone().filter(|before| *before != version) else {
            self.state.migrated_for = Some(version);
            self.save_state().await;
            return Ok(());
        };
        let to = &runtime.version;
        let going = UserText::filled("migrating from Apache Airflow {} to {}", &[&Given::word(&before), to]);
        self.view.wait_for("database", going.clone());
        self.view.step(RolloutStep::Database, None, Some(going));
        let goes_down = migration::goes_down(&before, to);
        let newer = if goes_down { self.runtime(&before).await? } else { runtime.clone() };
        let grace = if self.is_forced() { self.timing().short_grace } else { self.drain_grace(environment) };
        self.stop_all(grace).await;
        // Its network was stopped with everything else, and the database may be reached through it.
        let network = self.ensure_network().await.map_err(|why| ("network", why))?;
        programs.retain(|program| !is_network(&program.name));
        programs.splice(..0, network);
        let told = migration::arguments(goes_down, &runtime.version).into_iter().map(OsString::from);
        let arguments: Vec<OsString> = iter::once(newer.program("airflow").into()).chain(told).collect();
        let mut command = Command::from(self.isolation.command(&arguments, variables));
        command.current_dir(self.place.user_home()).stdin(Stdio::null()).kill_on_drop(true);
        run(command, |_| {})
            .await
            .map_err(|error| ("database", Reason::new("the metadata database cannot be migrated", error)))?;
        self.state.migrated_for = Some(version);
        self.save_state().await;
        Ok(())
    }

    /// Opens the web server's socket. Web servers whose socket is not held here are stopped: another process could take
    /// over their port, and with it the requests sent there.
    async fn open_socket(&mut self) -> std::io::Result<()> {
        if self.socket.is_some() {
            return Ok(());
        }
        self.stop_web_servers().await;
        // Other processes may have been configured with the port.
        let is_known = !self.processes.is_empty() || sockets::is_in_our_range(self.state.web_port);
        let context = if is_known { self.state.web_port } else { 0 };
        let avoided = self.plane.options.task_ports.as_ref();
        let socket = Socket::open(sockets::candidates(context, self.state.slot, avoided))?;
        self.state.web_port = socket.port()?;
        self.socket = Some(socket);
        Ok(())
    }
}

/// All components together: the scheduler, the web server, and a worker of each queue.
fn bounds(environment: &Environment) -> Bounds {
    let scheduler = match (environment.spec.scheduler_size, environment.spec.scheduler_au) {
        (Some(size), _) => options::scheduler(size),
        (None, Some(units)) => options::au(units),
        (None, None) => options::scheduler(SchedulerSize::Small),
    };
    let workers = environment.spec.worker_queues.iter().filter_map(|queue| queue.machine);
    let sizes = workers.map(|machine| options::machine(machine).size).chain([scheduler]);
    sizes.fold(WEB_SERVER, |all, size| Bounds {
        millicores: all.millicores + size.cpu.thousandths(),
        memory: all.memory + size.memory.thousandths() * (1 << 30) / 1000,
        ..all
    })
}
