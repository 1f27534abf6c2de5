//! The data plane options of the server.

use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use podium_app::App;
use podium_dataplane::simulated::Simulated;
use podium_dataplane::{DataPlane, Planes, ports};
use podium_reconcile::log_sink;
use podium_store::System;

use crate::failure::Failure;

/// The data plane and its options.
#[derive(Args)]
pub(crate) struct Choice {
    /// What deployments run on.
    #[arg(long = "data-plane", env = "PODIUM_DATA_PLANE", value_enum, default_value = "local")]
    kind: Kind,
    /// Python interpreter for the local data plane; the default is the most suitable one on this machine.
    #[arg(long, env = "PODIUM_PYTHON")]
    python: Option<PathBuf>,
    /// Where the metadata databases of new local environments are created: `sqlite` (one file each), `private` (a
    /// PostgreSQL server that this installation runs) or the URL of a PostgreSQL server, as a user that may create
    /// databases and roles. The default is `private` if PostgreSQL is installed, otherwise `sqlite`.
    #[arg(long, env = "PODIUM_AIRFLOW_DATABASE", hide_env_values = true, value_name = "sqlite|private|URL")]
    airflow_database: Option<String>,
    /// Former name of `--airflow-database`, for a URL.
    #[arg(
        long,
        env = "PODIUM_AIRFLOW_DATABASE_URL",
        hide_env_values = true,
        hide = true,
        conflicts_with = "airflow_database"
    )]
    airflow_database_url: Option<String>,
    /// Broker for Celery workers on this machine; by default each environment with several queues gets its own
    /// redis-server, if that program is installed.
    #[arg(long, env = "PODIUM_BROKER_URL", hide_env_values = true)]
    broker_url: Option<String>,
    /// Days for which a runtime that no deployment uses is kept on this machine.
    #[arg(long, env = "PODIUM_RUNTIME_RETENTION_DAYS", default_value = "7", value_parser = clap::value_parser!(u32).range(1..))]
    runtime_retention_days: u32,
    /// Maximum number of processes and threads of a local environment; 0 for no limit.
    #[arg(long, env = "PODIUM_ENVIRONMENT_PROCESSES", default_value_t = 4096)]
    environment_processes: u64,
    /// Gibibytes of disk space that a local environment may use before it is stopped; 0 for no limit. The default is
    /// half of the data directory's file system.
    #[arg(long = "environment-disk-gib", env = "PODIUM_ENVIRONMENT_DISK_GIB", value_parser = clap::value_parser!(u64).range(..1 << 30))]
    environment_disk: Option<u64>,
    /// Ports that tasks on this machine may listen on, such as 20000-20099, in addition to the ephemeral ports that the
    /// kernel assigns; the default is none.
    #[arg(long, env = "PODIUM_TASK_PORTS", value_parser = ports)]
    task_ports: Option<RangeInclusive<u16>>,
    /// Network that environments on this machine use: one for each (`own`), this machine's (`shared`), or one for each
    /// if a test shows that it works (`auto`).
    #[arg(long, env = "PODIUM_ENVIRONMENT_NETWORK", value_enum, default_value = "auto")]
    environment_network: EnvironmentNetwork,
    /// Ports on this machine's loopback interface that environments with their own networks may connect to, such as
    /// 4318,9000; the default is none.
    #[arg(long, env = "PODIUM_LOOPBACK_PORTS", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..))]
    loopback_ports: Vec<u16>,
    /// Let the simulated data plane pretend that its environments run on this machine, for tests of several nodes.
    #[arg(long, env = "PODIUM_SIMULATED_IS_BOUND", hide = true, value_parser = clap::builder::BoolishValueParser::new())]
    simulated_is_bound: bool,
}

/// What deployments run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// Processes on this machine.
    Local,
    /// Nothing: every deployment is up immediately, for demonstrations and tests.
    Simulated,
    /// Kubernetes clusters (not available yet).
    Kubernetes,
}

/// Whose network environments use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum EnvironmentNetwork {
    /// One for each environment if that works, otherwise this machine's.
    Auto,
    /// One for each environment; without its own network, an environment does not run.
    Own,
    /// This machine's network.
    Shared,
}

impl Choice {
    /// Checks the options before anything is created.
    pub(crate) async fn check(&self) -> Result<(), Failure> {
        #[cfg(target_os = "linux")]
        self.database()?;
        match self.kind {
            #[cfg(target_os = "linux")]
            Kind::Local => match &self.python {
                Some(python) => Ok(podium_dataplane::local::check_python(python).await?),
                None => Ok(()),
            },
            #[cfg(not(target_os = "linux"))]
            Kind::Local => Ok(()),
            Kind::Simulated => Ok(()),
            Kind::Kubernetes => {
                Err("the data plane `kubernetes` is not available yet: use --data-plane local, which \
                                     runs deployments on this machine"
                    .into())
            }
        }
    }

    /// Opens the data planes; environments may not read the given file of the operator.
    pub(crate) async fn open(
        &self,
        app: &App,
        system: System,
        data_dir: &Path,
        protected: Option<PathBuf>,
    ) -> Result<Planes, Failure> {
        let own = match self.kind {
            Kind::Local => self.local(app, system, data_dir, protected).await,
            Kind::Simulated | Kind::Kubernetes => simulated(app, system, data_dir, self.simulated_is_bound),
        };
        Ok(Planes::only(own?))
    }

    #[cfg(target_os = "linux")]
    async fn local(
        &self,
        app: &App,
        system: System,
        data_dir: &Path,
        protected: Option<PathBuf>,
    ) -> Result<Arc<dyn DataPlane>, Failure> {
        use podium_dataplane::local::Local;

        let options = self.options(app, data_dir, protected)?;
        Ok(Arc::new(Local::open(options, podium_reconcile::services(app, system.steward())).await?))
    }

    /// Where metadata databases of new environments are made.
    #[cfg(target_os = "linux")]
    fn database(&self) -> Result<podium_dataplane::local::AirflowDatabase, Failure> {
        use podium_dataplane::local::AirflowDatabase;

        let asked = self.airflow_database.as_ref().or(self.airflow_database_url.as_ref());
        let database = asked.map_or(Ok(AirflowDatabase::Best), |asked| asked.parse());
        Ok(database.map_err(|why| format!("--airflow-database: {why}"))?)
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn options(
        &self,
        app: &App,
        data_dir: &Path,
        protected: Option<PathBuf>,
    ) -> Result<podium_dataplane::local::Options, Failure> {
        use podium_dataplane::Secret;
        use podium_dataplane::local::{Broker, NetworkChoice, Options, half_of_disk};

        let environment_disk = match self.environment_disk {
            Some(gibibytes) => Some(gibibytes << 30).filter(|most| *most > 0),
            None => half_of_disk(data_dir),
        };
        Ok(Options {
            directory: data_dir.join(crate::data_dir::LOCAL),
            public_url: app.config.public_url.clone(),
            python: self.python.clone(),
            database: self.database()?,
            broker: Broker::find(self.broker_url.clone().map(Secret::new)),
            launcher: std::env::current_exe().ok(),
            protected: [data_dir.to_owned(), app.config.files.clone()].into_iter().chain(protected).collect(),
            task_ports: self.task_ports.clone(),
            network: match self.environment_network {
                EnvironmentNetwork::Auto => NetworkChoice::Auto,
                EnvironmentNetwork::Own => NetworkChoice::Own,
                EnvironmentNetwork::Shared => NetworkChoice::Shared,
            },
            loopback_ports: self.loopback_ports.clone(),
            disk_reserve: app.config.reserve.bytes,
            runtime_retention_days: Some(self.runtime_retention_days),
            environment_processes: Some(self.environment_processes).filter(|most| *most > 0),
            environment_disk,
        })
    }

    #[cfg(not(target_os = "linux"))]
    #[expect(clippy::unused_async, reason = "where environments run it waits for disks")]
    async fn local(&self, _: &App, _: &Path, _: Option<PathBuf>) -> Result<Arc<dyn DataPlane>, Failure> {
        Err("running deployments on this machine needs Linux: use --data-plane simulated, which runs nothing"
            .into())
    }
}

fn simulated(
    app: &App,
    system: System,
    data_dir: &Path,
    is_bound: bool,
) -> Result<Arc<dyn DataPlane>, Failure> {
    let directory = data_dir.join(crate::data_dir::SIMULATED);
    let clock = Arc::clone(&app.world);
    let plane = Simulated::in_directory(&directory, Arc::new(move || clock.now())).map_err(|error| {
        format!("the simulated data plane in {} cannot be used: {error}", directory.display())
    })?;
    let plane = plane.logging_to(log_sink(app, system.steward()));
    Ok(Arc::new(if is_bound { plane.bound_to_machine() } else { plane }))
}
