//! The data plane that this installation runs its deployments on.

use std::path::Path;
use std::sync::Arc;

use podium_app::App;
use podium_dataplane::DataPlane;
use podium_dataplane::simulated::Simulated;
use podium_reconcile::log_sink;

/// The directory of the simulated data plane, below the data directory.
const SIMULATED: &str = "simulated";

/// What deployments run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    /// Processes on this machine (not available yet).
    Local,
    /// Nothing: every deployment is up at once, for demonstrations and tests.
    Simulated,
    /// Clusters of Kubernetes (not available yet).
    Kubernetes,
}

impl Kind {
    /// Refuses a data plane that is not there yet, before anything is made.
    pub(crate) fn check(self) -> Result<(), String> {
        let name = match self {
            Self::Simulated => return Ok(()),
            Self::Local => "local",
            Self::Kubernetes => "kubernetes",
        };
        Err(format!(
            "the data plane `{name}` is not available yet: use --data-plane simulated, which runs nothing"
        ))
    }

    /// Opens the data plane.
    pub(crate) fn open(self, app: &App, data_dir: &Path) -> Result<Arc<dyn DataPlane>, String> {
        self.check()?;
        let directory = data_dir.join(SIMULATED);
        let clock = Arc::clone(&app.world);
        let plane = Simulated::kept_in(&directory, Arc::new(move || clock.now())).map_err(|error| {
            format!("the simulated data plane in {} cannot be used: {error}", directory.display())
        })?;
        Ok(Arc::new(plane.logging_to(log_sink(app))))
    }
}
