//! The web servers of environments on this machine: where they listen, and what they report.

use std::net::{Ipv4Addr, SocketAddr};

use podium_airflow::api::AirflowApi;
use podium_airflow::settings::{self, EnvironmentKeys};
use podium_api::DeploymentId;
use podium_domain::Reason;

use super::Local;
use super::state::State;
use crate::blocking::blocking;
use crate::{Fault, Line, RunningTasks, WebServer};

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
}
