//! What a plane does besides supervising: it finds where the web servers of environments on this machine listen and
//! asks what they report, and it sets environments aside that another machine now runs. These are stopped here and
//! moved to where no start finds them. Nothing is deleted, and a database on a server is left alone: the other machine
//! may be using it.

use std::fs;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use podium_airflow::api::AirflowApi;
use podium_airflow::settings::{self, EnvironmentKeys};
use podium_api::DeploymentId;
use podium_domain::Reason;

use super::Local;
use super::layout::rename;
use super::orphans::OrphanProcesses;
use super::process::Process;
use super::state::State;
use crate::blocking::blocking;
use crate::{Fault, Line, RunningTasks, WebServer};

/// How long a component may take to exit on SIGTERM.
const GRACE: Duration = Duration::from_secs(10);

impl Local {
    /// The web server of an environment, if it is up.
    pub(super) fn find_web_server(&self, id: DeploymentId) -> Option<WebServer> {
        let supervisors = self.plane.supervisors();
        let view = &supervisors.get(&id)?.view;
        let version = view.observed().running.runtime_version.unwrap_or_default();
        let keys = EnvironmentKeys::new(|purpose| self.plane.key(id, purpose));
        Some(WebServer {
            upstream: SocketAddr::from((Ipv4Addr::LOCALHOST, view.web_port()?)).into(),
            line: if version.starts_with("2.") { Line::Two } else { Line::Three },
            key: keys.token_signing,
        })
    }

    /// The task instances that an environment runs, as its web server reports them.
    pub(super) async fn find_running_tasks(&self, id: DeploymentId) -> Result<Option<RunningTasks>, Fault> {
        let Some(server) = self.find_web_server(id) else { return Ok(None) };
        let path = self.plane.layout.environment(id).state();
        let state = blocking(move || State::read(&path)).await;
        let state = state.map_err(|error| Reason::of_io("its state cannot be read", &error))?;
        let Some(State { namespace, .. }) = state else { return Ok(None) };
        let base = format!("http://{}{}", server.upstream, settings::base_path(&namespace));
        let api = AirflowApi {
            client: &self.plane.web_client,
            base: &base,
            line: server.line,
            key: &server.key,
            now: (self.plane.services.clock)(),
        };
        Ok(Some(api.running_tasks().await?))
    }

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
