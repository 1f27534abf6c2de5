//! Why the plane cannot be opened, for the operator at start-up.

use std::io;
use std::path::{Path, PathBuf};

use podium_api::DeploymentId;
use podium_domain::Reason;

/// Why the plane cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its directory cannot be used.
    #[error("the local data plane in {} cannot be used: {error}", .directory.display())]
    Unusable {
        /// The directory.
        directory: PathBuf,
        /// What went wrong.
        error: io::Error,
    },
    /// It was restored, and the original still runs on this machine.
    #[error(
        "this installation was restored from a backup, and the installation that the backup was taken from still runs on this machine (process {pid} belongs to deployment {id}): stop its environments first, with `podium stop --data-dir` and its data directory, or start the restored installation on another machine"
    )]
    StillRuns {
        /// A process of it.
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
