//! What this machine has to run environments with: interpreters, and what keeps environments isolation.

use std::path::PathBuf;

use podium_domain::Reason;

use super::isolation::{FileAccess, HostIsolation, Mode};
use super::layout::Layout;
use super::network::{self, Network};
use super::options::Options;
use super::python::{Python, find};
use crate::blocking::blocking;

/// What environments stand on.
#[derive(Debug)]
pub(super) struct Host {
    /// The interpreter of all runtimes.
    pub(super) python: Python,
    /// Every interpreter that there is: any of them can fetch the installer.
    pub(super) pythons: Vec<Python>,
    /// What every environment reads: runtimes, what Airflow needs to know of this plane, and the interpreter's library.
    pub(super) read: Vec<PathBuf>,
    /// How environments are kept isolation.
    pub(super) isolation: HostIsolation,
    /// Whose network they use.
    pub(super) network: Network,
}

impl Host {
    /// What to tell the operator at the start.
    pub(super) fn describe(&self) -> String {
        let network = match &self.network {
            Network::Own(_) => "each has a network of its own".to_owned(),
            Network::Filtered(_, why) => format!(
                "they share this machine's network, and a filter keeps them from each other on its loopback: {why}"
            ),
            Network::Shared(None) => "they share this machine's network".to_owned(),
            Network::Shared(Some(why)) => format!(
                "they share this machine's network, so each can connect to whatever listens on its loopback: {why}"
            ),
        };
        format!("{}. As for networks: {network}", self.isolation.describe())
    }

    /// Looks for it; an error says what to install.
    pub(super) async fn find(options: &Options, layout: &Layout) -> Result<Self, Reason> {
        let pythons = find(options.python.as_deref()).await?;
        let read = |python: &Python| vec![layout.runtimes(), layout.support(), python.home.clone()];
        let isolation = |python: &Python| {
            let access = FileAccess { read: read(python), ..FileAccess::default() };
            let (path, options, first) = (python.path.clone(), options.clone(), layout.first_user());
            blocking(move || HostIsolation::detect(&path, &access, &options, first))
        };
        // The first that keeps environments apart best.
        let mut best = None;
        for python in &pythons {
            let isolation = isolation(python).await.map_err(|error| {
                Reason::new("it could not be tried how environments are kept apart", error)
            })?;
            let is_best = matches!(isolation.mode, Mode::Users { .. });
            if is_best || best.is_none() {
                best = Some((python.clone(), isolation));
            }
            if is_best {
                break;
            }
        }
        let (python, isolation) = best.ok_or(Reason::from("no Python was found"))?;
        let read = read(&python);
        let network = network::find(options, layout, &isolation, &python.path, &read)
            .await
            .map_err(|error| Reason::new("the network of environments cannot be made ready", error))?;
        Ok(Self { isolation, network, read, pythons, python })
    }
}
