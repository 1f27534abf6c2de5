//! Environments that another machine now runs: stopped here and moved to where no start finds them.
//!
//! Nothing is deleted, and a database on a server is left alone: the other machine may be using it.

use std::fs;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use podium_api::DeploymentId;
use podium_domain::Reason;

use super::Local;
use super::layout::rename;
use super::orphans::OrphanProcesses;
use super::process::Process;
use super::state::State;
use crate::Fault;
use crate::blocking::blocking;

/// How long a component may take to exit on SIGTERM.
const GRACE: Duration = Duration::from_secs(10);

impl Local {
    /// Stops the processes of an environment and moves its directory to `set-aside`.
    pub(super) async fn move_aside(&self, id: DeploymentId) -> Result<(), Fault> {
        // Its supervisor first, which would restart the processes.
        let handle = self.plane.supervisors().remove(&id);
        let place = self.plane.layout.environment(id);
        let path = place.state();
        let read = blocking(move || {
            drop(handle);
            State::read(&path)
        });
        let broken = |error| Reason::of_io("the environment cannot be set aside", &error);
        let Some(state) = read.await.map_err(broken)? else { return Ok(()) };
        for started in state.processes.values() {
            if let Ok(process) = Process::adopt(started.identity.clone()) {
                process.stop(GRACE).await;
            }
        }
        let user = match self.plane.host().await {
            Ok(host) => host.isolation.user_of(state.slot),
            Err(_) => None,
        };
        OrphanProcesses::of(id, user, &self.plane.cgroups).kill_in_directory(place.root.clone()).await;
        // If another plane on this machine now runs the environment, the control groups are that plane's.
        let plane = Arc::clone(&self.plane);
        let to = blocking(move || {
            let _ = plane.cgroups.forget(id);
            let aside = plane.layout.aside();
            fs::create_dir_all(&aside)?;
            let to = free_name(&aside, id)?;
            rename(&place.root, &to)?;
            Ok(to)
        });
        let to = to.await.map_err(broken)?;
        tracing::warn!(%id, kept_in = %to.display(), "stopped an environment that another node now runs");
        Ok(())
    }
}

/// A free name: the same environment may have been set aside before.
fn free_name(aside: &std::path::Path, id: DeploymentId) -> io::Result<std::path::PathBuf> {
    let names = (1..1000).map(|number| aside.join(format!("{id}.{number}")));
    names.into_iter().find(|path| !path.exists()).ok_or(ErrorKind::AlreadyExists.into())
}
