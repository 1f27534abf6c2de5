//! Options of the local plane, and why it cannot be opened with them.

use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use podium_airflow::database_url::{self, BadUrl};
use podium_api::DeploymentId;
use podium_domain::Reason;

use super::command::searched;
use crate::Secret;

#[derive(Clone, Debug, Default)]
pub struct Options {
    pub directory: PathBuf,
    /// The URL under which people reach the control plane.
    pub public_url: String,
    /// The interpreter to use; by default one is searched for.
    pub python: Option<PathBuf>,
    /// Where the metadata databases of new environments are created.
    pub database: AirflowDatabase,
    pub broker: Broker,
    /// How many bytes to keep free on the disk; no installation may leave less.
    pub disk_reserve: u64,
    /// The maximum number of processes and threads of an environment; `None` for no limit.
    pub environment_processes: Option<u64>,
    /// The disk quota of an environment in bytes; `None` for no limit.
    pub environment_disk: Option<u64>,
    /// For how many days an unused runtime is kept; `None` for ever.
    pub runtime_retention_days: Option<u32>,
    /// This program, which can confine itself before it executes another.
    pub launcher: Option<PathBuf>,
    /// Paths that no environment may read: the data directory, and files with the operator's secrets.
    pub protected: Vec<PathBuf>,
    /// The ports that tasks may listen on, in addition to ephemeral ones.
    pub task_ports: Option<RangeInclusive<u16>>,
    pub network: NetworkChoice,
    /// The loopback ports of this machine that environments with their own networks can reach.
    pub loopback_ports: Vec<u16>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkChoice {
    #[default]
    Shared,
    /// One for each environment if a test shows that it works, otherwise this machine's.
    Auto,
    /// One for each environment, or they do not run.
    Own,
}

/// Where the metadata databases of new environments are created. Existing ones stay where they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AirflowDatabase {
    /// In one SQLite file each.
    #[default]
    Sqlite,
    /// On the plane's own PostgreSQL server.
    Private,
    /// The same if this machine can run one, otherwise in files.
    Best,
    /// On the PostgreSQL server whose administrator this URL names.
    Server(Secret),
}

/// Why a value for `--airflow-database` is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDatabase {
    #[error("expected `sqlite`, `private` or a URL such as postgres://admin@db.example.com/postgres")]
    Unknown,
    /// A URL that cannot be used for environments.
    #[error(transparent)]
    Url(#[from] BadUrl),
}

impl std::str::FromStr for AirflowDatabase {
    type Err = BadDatabase;

    fn from_str(text: &str) -> Result<Self, BadDatabase> {
        match text {
            "sqlite" => Ok(Self::Sqlite),
            "private" => Ok(Self::Private),
            url if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                database_url::check(url)?;
                Ok(Self::Server(Secret::new(url.to_owned())))
            }
            _ => Err(BadDatabase::Unknown),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Broker {
    Given(Secret),
    /// One for each environment, run with this program.
    Own(PathBuf),
    /// None: all tasks run with Airflow's local executor.
    #[default]
    None,
}

impl Broker {
    /// The given broker, or otherwise the one that this machine can run.
    pub fn find(url: Option<Secret>) -> Self {
        if let Some(url) = url {
            return Self::Given(url);
        }
        let mut found = searched().map(|place| place.join("redis-server"));
        found.find(|program| program.is_file()).map_or(Self::None, Self::Own)
    }
}

/// Why the plane cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its directory cannot be used.
    #[error("the local data plane in {} cannot be used: {error}", .directory.display())]
    Unusable {
        directory: PathBuf,
        /// What went wrong.
        error: io::Error,
    },
    /// It was restored, and the original still runs on this machine.
    #[error(
        "this installation was restored from a backup, and the installation that the backup was taken from still runs on this machine (process {pid} belongs to deployment {id}): stop its environments first, with `podium stop --data-dir` and its data directory, or start the restored installation on another machine"
    )]
    StillRuns {
        pid: i32,
        /// The deployment that the process belongs to.
        id: DeploymentId,
    },
    /// The plane's own database server was requested, but is not possible.
    #[error("--airflow-database private is not possible on this machine: {0}")]
    NoServer(Reason),
    /// The client for health checks cannot be created.
    #[error("the client for health checks cannot be created: {0}")]
    NoProbes(#[from] reqwest::Error),
    /// Existing environments cannot be listed.
    #[error("environments cannot be taken over: {0}")]
    NotTakenOver(io::Error),
}

impl OpenError {
    pub(super) fn unusable(directory: &Path, error: io::Error) -> Self {
        Self::Unusable { directory: directory.to_owned(), error }
    }
}
