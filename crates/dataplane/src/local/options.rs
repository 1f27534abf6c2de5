//! How the plane runs environments.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::server_url::{self, BadUrl};
use crate::Secret;

/// How the plane runs environments.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Everything is kept below it.
    pub directory: PathBuf,
    /// The URL under which people reach the control plane.
    pub public_url: String,
    /// The interpreter to use, where it is not to be looked for.
    pub python: Option<PathBuf>,
    /// Where the metadata databases of new environments are made.
    pub database: AirflowDatabase,
    /// What feeds Celery workers.
    pub broker: Broker,
    /// How many bytes stay free on the disk; nothing is installed that would leave less.
    pub disk_reserve: u64,
    /// How many processes and threads an environment may have; as many as it likes where nobody says.
    pub environment_processes: Option<u64>,
    /// How many bytes an environment may have on disk; as many as there are where nobody says.
    pub environment_disk: Option<u64>,
    /// For how many days a runtime is kept that no environment uses; for ever where nobody says.
    pub runtime_retention_days: Option<u32>,
    /// This program, which can confine itself before it becomes another.
    pub launcher: Option<PathBuf>,
    /// What no environment may read, wherever it is: the data directory, and files with secrets of the operator's.
    pub kept: Vec<PathBuf>,
    /// The ports that tasks may listen on, in addition to ephemeral ones.
    pub task_ports: Option<RangeInclusive<u16>>,
    /// Whose network environments use.
    pub network: NetworkChoice,
    /// The ports of this machine's loopback that environments reach although they have networks of their own.
    pub loopback_ports: Vec<u16>,
}

/// Whose network environments use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkChoice {
    /// This machine's.
    #[default]
    Shared,
    /// One for each environment if a test shows that it works, otherwise this machine's.
    Auto,
    /// One for each environment, or they do not run.
    Own,
}

/// Where metadata databases of new environments are made. Those that are there stay where they are.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AirflowDatabase {
    /// In a SQLite file each.
    #[default]
    Sqlite,
    /// On a PostgreSQL server of the plane's own.
    Private,
    /// The same where this machine can have one, else in files.
    Best,
    /// On the PostgreSQL server whose administrator this URL names.
    Server(Secret),
}

/// Why metadata databases cannot be made where somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadDatabase {
    /// Nothing that there is.
    #[error("expected `sqlite`, `private` or a URL such as postgres://admin@db.example.com/postgres")]
    Unknown,
    /// A URL that environments could not keep to.
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
                server_url::check(url)?;
                Ok(Self::Server(Secret::new(url.to_owned())))
            }
            _ => Err(BadDatabase::Unknown),
        }
    }
}

/// What feeds Celery workers.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Broker {
    /// A broker that runs already.
    Given(Secret),
    /// One of its own for each environment, run by this program.
    Own(PathBuf),
    /// Nothing: all tasks run with Airflow's local executor.
    #[default]
    None,
}

impl Broker {
    /// The one that is given, or else the one that this machine can run.
    pub fn find(url: Option<Secret>) -> Self {
        if let Some(url) = url {
            return Self::Given(url);
        }
        let search = std::env::var_os("PATH").unwrap_or_default();
        let mut found = std::env::split_paths(&search).map(|place| place.join("redis-server"));
        found.find(|program| program.is_file()).map_or(Self::None, Self::Own)
    }
}
