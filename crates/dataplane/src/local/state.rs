//! What the plane must remember of an environment to find it again: never what it can be told anew, never a secret.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

use podium_domain::deployments::Running;
use serde::{Deserialize, Serialize};

use super::identity::Identity;
use super::layout::write_whole;

/// What is remembered of an environment.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct State {
    /// Tells its user and its place among all environments.
    pub(super) slot: u32,
    pub(super) namespace: String,
    pub(super) generation: i64,
    pub(super) is_hibernating: bool,
    /// Whether it is to vanish.
    pub(super) is_removed: bool,
    /// The runtime that its database was last migrated for.
    pub(super) migrated_for: Option<String>,
    /// What was last brought up.
    pub(super) running: Running,
    /// Where its web server listens.
    pub(super) web_port: u16,
    /// Where its scheduler tells how it does.
    pub(super) health_port: u16,
    /// Where its broker listens, if it has one of its own.
    pub(super) broker_port: u16,
    /// What was started, by component.
    pub(super) processes: BTreeMap<String, Started>,
}

/// A process that was started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Started {
    pub(super) identity: Identity,
    /// What it was started with.
    pub(super) fingerprint: String,
}

impl State {
    /// Reads what was remembered; nothing where there is nothing.
    pub(super) fn read(path: &Path) -> io::Result<Option<Self>> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(io::Error::from),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Remembers it.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        write_whole(path, &serde_json::to_vec(self)?, 0o600)
    }
}
