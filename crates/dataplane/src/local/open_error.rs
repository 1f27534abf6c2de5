//! Why the plane cannot be opened. Nobody but the operator reads it, at the start.

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
    /// It was restored, and what it was copied from still runs here.
    #[error(
        "this installation was restored from a backup, and the installation that the backup was taken from still runs on this machine (process {pid} belongs to deployment {id}): stop its environments first, or start the restored installation on another machine"
    )]
    StillRuns {
        /// A process of it.
        pid: i32,
        /// The deployment that the process belongs to.
        id: DeploymentId,
    },
    /// A database server of the plane's own was asked for.
    #[error("--airflow-database private is not possible on this machine: {0}")]
    NoServer(Reason),
    /// Nothing can ask environments for their health.
    #[error("the client for health checks cannot be created: {0}")]
    NoProbes(#[from] reqwest::Error),
    /// The environments that were here before cannot be listed.
    #[error("environments cannot be taken over: {0}")]
    NotTakenOver(io::Error),
}

impl OpenError {
    pub(super) fn unusable(directory: &Path, error: io::Error) -> Self {
        Self::Unusable { directory: directory.to_owned(), error }
    }
}
