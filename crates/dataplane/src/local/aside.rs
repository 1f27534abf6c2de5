//! Environments that another machine runs by now: ended here, and put where no start finds them.
//!
//! Nothing is deleted, and a database on a server is not touched: the other machine may use it.

use std::fs;
use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

use podium_api::DeploymentId;
use podium_domain::Reason;

use super::Local;
use super::layout::rename;
use super::process::Process;
use super::state::State;
use super::strays::Strays;
use crate::Fault;
use crate::blocking::blocking;

/// How long a component may take to end by itself.
const GRACE: Duration = Duration::from_secs(10);

impl Local {
    /// Ends what runs of an environment, and moves its directory to `set-aside`.
    pub(super) async fn put_aside(&self, id: DeploymentId) -> Result<(), Fault> {
        // Its keeper first, which would start again what ends.
        let handle = self.plane.keepers().remove(&id);
        let place = self.plane.layout.environment(id);
        let path = place.state();
        let read = blocking(move || {
            drop(handle);
            State::read(&path)
        });
        let broken = |error| Reason::of_io("it cannot be set aside", &error);
        let Some(state) = read.await.map_err(broken)? else { return Ok(()) };
        for started in state.processes.values() {
            if let Ok(process) = Process::adopt(started.identity.clone()) {
                process.stop(GRACE).await;
            }
        }
        let user = match self.plane.ground().await {
            Ok(ground) => ground.apart.user_of(state.slot),
            Err(_) => None,
        };
        Strays::of(id, user, &self.plane.cgroups).end_within(place.root.clone()).await;
        // Where another plane of this machine runs the environment by now they are that one's.
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
        tracing::warn!(%id, kept_in = %to.display(), "an environment that another node runs was ended here");
        Ok(())
    }
}

/// A name that nothing has: the same environment may have been put aside before.
fn free_name(aside: &std::path::Path, id: DeploymentId) -> io::Result<std::path::PathBuf> {
    let names = (1..1000).map(|number| aside.join(format!("{id}.{number}")));
    names.into_iter().find(|path| !path.exists()).ok_or(ErrorKind::AlreadyExists.into())
}
