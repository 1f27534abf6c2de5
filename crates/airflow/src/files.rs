//! Where the files of an environment are.

use std::path::PathBuf;

/// The folder in a project that its plugins are in.
pub const PLUGINS: &str = "plugins";

/// The absolute paths of an environment's files, as its own processes see them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The interpreter and the programs of its runtime.
    pub programs: PathBuf,
    /// The Python modules of [`support`](crate::support).
    pub support: PathBuf,
    /// The home directory of the user that it runs as, which it may write to.
    pub user_home: PathBuf,
    /// Airflow's home directory, with bundles at their mount paths.
    pub home: PathBuf,
    pub temporary: PathBuf,
    /// The versions of its DAGs: a folder for each below `versions`, and links `current` to the DAGs and `project` to the
    /// project that is live.
    pub dags: PathBuf,
    pub task_logs: PathBuf,
    pub parser_logs: PathBuf,
    /// The file whose presence asks the executor to accept no further tasks: see [`drain`](crate::drain).
    pub drain: PathBuf,
    /// The directory that its components say in how they are.
    pub status: PathBuf,
    /// The directory that its listener writes to: see [`spool`](crate::spool).
    pub spool: PathBuf,
}

impl Files {
    pub fn program(&self, name: &str) -> PathBuf {
        self.programs.join(name)
    }

    /// A Python module of [`support`](crate::support).
    pub fn module(&self, name: &str) -> PathBuf {
        self.support.join(name)
    }

    /// The DAGs that are live.
    pub fn current_dags(&self) -> PathBuf {
        self.dags.join("current")
    }

    /// The project that is live: a path that stays the same, for the Python path.
    pub fn project(&self) -> PathBuf {
        self.dags.join("project")
    }
}
