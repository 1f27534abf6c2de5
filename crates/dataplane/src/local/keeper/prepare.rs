//! Everything that must be there before processes start: the runtime, directories, code, the database, ports.

use std::sync::Arc;

use podium_api::enums::SchedulerSize;
use podium_domain::options::{self, Version};
use podium_domain::{Given, Reason, UserText};

use super::Keeper;
use crate::Environment;
use crate::blocking::{blocking, in_turn};
use crate::local::broker::OwnBroker;
use crate::local::cgroups::Bounds;
use crate::local::code;
use crate::local::components::programs;
use crate::local::database::{At, Database, Kind, migration, run_within};
use crate::local::ground::Ground;
use crate::local::isolation::{Isolation, Reach};
use crate::local::metadata::Metadata;
use crate::local::network::is_network;
use crate::local::options::Broker;
use crate::local::ports;
use crate::local::program::Program;
use crate::local::room::Roomy;
use crate::local::runtimes::Runtime;
use crate::local::settings::{self, EnvironmentKeys, Known};
use crate::local::socket::Socket;
use crate::local::state::State;
use crate::local::tasks::Tasks;

/// Processor time and memory of a web server, in thousandths and bytes.
const WEB_SERVER: Bounds = Bounds { millicores: 1000, memory: 2 << 30, processes: None };

/// What is to run.
pub(super) struct Prepared {
    pub(super) programs: Vec<Program>,
    pub(super) major: u32,
    pub(super) note: Option<UserText>,
    /// Whether tasks run within the scheduler, which is silent meanwhile.
    pub(super) is_sequential: bool,
    runtime: Runtime,
    /// What programs of the platform are told, such as those that migrate.
    variables: settings::Variables,
}

/// What could not be made, and why.
type Trouble = (&'static str, Reason);

impl Keeper {
    /// Makes everything that is missing. It can be cut off anywhere and begun again.
    pub(super) async fn prepare(&mut self, environment: &Environment) -> Result<Prepared, Trouble> {
        self.stand_on_ground().await.map_err(|why| ("runtime", why))?;
        let runtime = self.runtime(&environment.runtime_version).await?;
        let (place, isolation) = (self.place.clone(), self.isolation.clone());
        in_turn(&self.place.root, move || place.make(&isolation))
            .await
            .map_err(|error| ("directories", Reason::of_io("they cannot be made", &error)))?;
        self.open_socket().await.map_err(|error| ("ports", Reason::of_io("none can be had", &error)))?;
        let bounds = Bounds { processes: self.plane.options.environment_processes, ..bounds(environment) };
        let (plane, id) = (Arc::clone(&self.plane), self.id);
        if let Err(error) = blocking(move || plane.cgroups.bound(id, bounds)).await {
            tracing::warn!(id = %self.id, %error, "processor time, memory and processes are not bounded");
        }
        let mut all = self.ensure_network().await.map_err(|why| ("network", why))?;
        let archives = &Roomy {
            archives: &*self.plane.services.archives,
            directory: &self.place.code(),
            reserve: self.plane.options.disk_reserve,
        };
        let release = &environment.release;
        let placed = async {
            code::bring_dags(archives, self.id, &self.place, release.dag_version.as_deref()).await?;
            code::bring_bundles(archives, self.id, &self.place, &release.bundles).await
        };
        placed.await.map_err(|why| ("code", why))?;
        self.choose_database(&runtime).await;
        let database = self.database(&environment.namespace).await.map_err(|why| ("database", why))?;
        let url = database.url();
        self.bring_metadata_back().await.map_err(|why| ("database", why))?;
        if self.state.migrated_for.is_none() {
            database.make(&runtime, &self.isolation).await.map_err(|why| ("database", why))?;
        }
        let (place, user) = (self.place.clone(), self.isolation.user());
        let key = self.plane.key(self.id, "broker");
        let own_broker = blocking(move || OwnBroker::of(&place, user, key)).await;
        let own_broker = own_broker
            .map_err(|error| ("broker", Reason::of_io("there is no place for its socket", &error)))?;
        let tasks = Tasks::new(
            environment,
            runtime.version.major(),
            matches!(database.at, At::File),
            &self.plane.options.broker,
            &own_broker,
        );
        let known = Known {
            environment,
            place: &self.place,
            runtime: &runtime,
            support: &self.plane.layout.support(),
            public_url: &self.plane.options.public_url,
            database: &url,
            tasks: &tasks,
            web_port: self.state.web_port,
            keys: self.keys(),
        };
        all.extend(programs(&known, &own_broker));
        let variables = settings::platform(&known);
        Ok(Prepared {
            programs: all,
            major: runtime.version.major(),
            is_sequential: tasks.is_sequential,
            note: tasks.note,
            runtime,
            variables,
        })
    }

    /// Puts what a backup had of its metadata onto the server again, once.
    async fn bring_metadata_back(&self) -> Result<(), Reason> {
        let saved = self.place.saved_metadata();
        let path = saved.clone();
        if !blocking(move || path.exists()).await {
            return Ok(());
        }
        self.view.wait_for("database", "what the backup had is brought back");
        Metadata::of_plane(&self.plane).restore(self.id, &saved).await?;
        let removed = blocking(move || std::fs::remove_file(&saved)).await;
        removed.map_err(|error| Reason::of_io("what the backup had cannot be removed", &error))
    }

    /// Learns what keeps this environment apart from the others.
    pub(super) async fn stand_on_ground(&mut self) -> Result<(), Reason> {
        let ground = self.plane.ground().await?;
        self.isolation = self.within_network(self.bounds_of(ground).await?, &ground.network);
        Ok(())
    }

    /// What keeps it apart from the others, but for its network.
    pub(super) async fn bounds_of(&self, ground: &Ground) -> Result<Isolation, Reason> {
        let mut read = self.place.read();
        read.extend(ground.read.iter().cloned());
        // Where sockets of servers are, and whom to trust, is nobody's to hide.
        let (databases, state) = (self.plane.databases.clone(), self.state.clone());
        read.extend(blocking(move || databases.ways(&state)).await);
        let mut write = self.place.own();
        if matches!(self.plane.options.broker, Broker::Own(_)) {
            let (place, user) = (self.place.clone(), ground.apart.user_of(self.state.slot));
            let directory = blocking(move || OwnBroker::directory(&place, user)).await;
            let lacking = |error| Reason::of_io("there is no place for the socket of its broker", &error);
            write.extend(directory.map_err(lacking)?);
        }
        let reach = Reach { write, read, temporary: self.place.temporary() };
        Ok(ground.apart.of_environment(self.state.slot, &reach))
    }

    async fn runtime(&self, version: &str) -> Result<Runtime, Trouble> {
        let ground = self.plane.ground().await.map_err(|why| ("runtime", why))?;
        let tell = |progress| self.view.wait_for("runtime", progress);
        self.plane.runtimes.ensure(ground, version, tell).await.map_err(|why| ("runtime", why))
    }

    fn keys(&self) -> EnvironmentKeys {
        EnvironmentKeys::new(|purpose| self.plane.key(self.id, purpose))
    }

    async fn database<'a>(&'a self, namespace: &'a str) -> Result<Database<'a>, Reason> {
        Ok(Database {
            at: self.plane.databases.of(&self.state).await?,
            place: &self.place,
            namespace,
            password: self.plane.key(self.id, "database"),
            support: self.plane.support(),
        })
    }

    /// Remembers that a database will be on a server before it is, so that it is dropped whatever happens.
    async fn choose_database(&mut self, runtime: &Runtime) {
        let State { migrated_for, server_runtime, is_private, .. } = &mut self.state;
        let is_new = migrated_for.is_none() && server_runtime.is_none();
        let kind = self.plane.databases.kind;
        if is_new && kind != Kind::Files {
            *server_runtime = Some(runtime.version.to_string());
            *is_private = kind == Kind::Private;
            self.remember().await;
        }
    }

    /// Why the server of its database does not work, where that is the plane's own.
    pub(super) fn database_trouble(&self) -> Option<Reason> {
        self.state.is_private.then(|| self.plane.databases.cluster.trouble()).flatten()
    }

    /// Drops the database of an environment that is not wanted any more.
    pub(super) async fn drop_database(&self) -> Result<(), Reason> {
        let Some(version) = &self.state.server_runtime else { return Ok(()) };
        let database = self.database(&self.state.namespace).await?;
        let runtime = self.plane.runtimes.ensure(self.plane.ground().await?, version, |_| {}).await?;
        database.drop(&runtime).await
    }

    /// Whether the database has to be brought to another runtime first.
    fn must_migrate(&self, prepared: &Prepared) -> bool {
        let version = prepared.runtime.version.to_string();
        self.state.migrated_for.as_ref().is_some_and(|before| *before != version)
    }

    /// Lets running tasks end where everything has to stop for a while; tells whether to go on.
    pub(super) async fn make_way(&mut self, environment: &Environment, prepared: &Prepared) -> bool {
        !self.must_migrate(prepared) || self.drain_before("the runtime changes", environment).await
    }

    /// Brings the database to the runtime, with nobody using it.
    pub(super) async fn migrate(
        &mut self,
        environment: &Environment,
        prepared: &mut Prepared,
    ) -> Result<(), Trouble> {
        let Prepared { runtime, variables, programs, .. } = prepared;
        let version = runtime.version.to_string();
        let Some(before) = self.state.migrated_for.clone().filter(|before| *before != version) else {
            self.state.migrated_for = Some(version);
            self.remember().await;
            return Ok(());
        };
        let to = &runtime.version;
        let going = UserText::filled("going from Apache Airflow {} to {}", &[&Given::word(&before), to]);
        self.view.wait_for("database", going);
        // Only the newer of the two knows the way.
        let is_newer = before.parse().is_ok_and(|before: Version| before > runtime.version);
        let newer = if is_newer { self.runtime(&before).await? } else { runtime.clone() };
        self.stop_all(self.drain_grace(environment)).await;
        // Its network went with everything else, and the database may be at the other end of it.
        let network = self.ensure_network().await.map_err(|why| ("network", why))?;
        programs.retain(|program| !is_network(&program.name));
        programs.splice(..0, network);
        let arguments = migration(&newer, runtime);
        let migrated = run_within(&self.isolation, &arguments, variables, &self.place.user_home()).await;
        migrated
            .map_err(|error| ("database", Reason::new("the metadata database cannot be migrated", error)))?;
        self.state.migrated_for = Some(version);
        self.remember().await;
        Ok(())
    }

    /// Opens the web server's socket. One that is a web server's own ends with it: its port could be somebody else's by
    /// then, and what is sent there with it.
    async fn open_socket(&mut self) -> std::io::Result<()> {
        if self.socket.is_some() {
            return Ok(());
        }
        self.stop_web_servers().await;
        // Others may have been told of the port.
        let is_known = !self.kept.is_empty() || ports::are_for_us(self.state.web_port);
        let known = if is_known { self.state.web_port } else { 0 };
        let avoided = self.plane.options.task_ports.as_ref();
        let socket = Socket::open(ports::candidates(known, self.state.slot, avoided))?;
        self.state.web_port = socket.port()?;
        self.socket = Some(socket);
        Ok(())
    }
}

/// All components together: the scheduler, the web server, and a worker of each queue.
fn bounds(environment: &Environment) -> Bounds {
    let scheduler = match (environment.scheduler_size, environment.scheduler_au) {
        (Some(size), _) => options::scheduler(size),
        (None, Some(units)) => options::au(units),
        (None, None) => options::scheduler(SchedulerSize::Small),
    };
    let workers = environment.worker_queues.iter().filter_map(|queue| queue.machine);
    let sizes = workers.map(|machine| options::machine(machine).size).chain([scheduler]);
    sizes.fold(WEB_SERVER, |all, size| Bounds {
        millicores: all.millicores + size.cpu.thousandths(),
        memory: all.memory + size.memory.thousandths() * (1 << 30) / 1000,
        ..all
    })
}
