//! The relay to the plane's own database server, if the environment's database is there.

use std::sync::Arc;

use podium_domain::Reason;

use super::Supervisor;
use crate::blocking::blocking;
use crate::local::database::Kind;
use crate::local::host::Host;
use crate::local::network::RELAY;
use crate::local::program::Program;
use crate::local::relay::Relay;

/// The text for users if there is none; operators see the reason.
const UNMADE: &str = "its way to the database server cannot be opened";

impl Supervisor {
    /// The relay of the environment, if it has one.
    pub(super) async fn relay(&self, host: &Host) -> Result<Option<Relay>, Reason> {
        if self.plane.databases.kind_of(&self.state) != Kind::Private {
            return Ok(None);
        }
        let own = rustix::process::geteuid().as_raw();
        let client = host.isolation.user_of(self.state.slot).unwrap_or(own);
        let (plane, place) = (Arc::clone(&self.plane), self.place.clone());
        let found = blocking(move || {
            Relay::of(&plane.databases.cluster, &place, plane.options.launcher.as_deref(), client)
        });
        found.await.map_err(|error| Reason::of_io(UNMADE, &error))
    }

    /// Starts the relay unless it is running. Returns its program.
    pub(super) async fn ensure_relay(&mut self) -> Result<Option<Program>, Reason> {
        let plane = Arc::clone(&self.plane);
        let Some(relay) = self.relay(plane.host().await?).await? else { return Ok(None) };
        let program = relay.program(self.id, &self.place);
        if !self.processes.contains_key(RELAY) {
            self.start_program(&program).await.map_err(|error| Reason::of_io(UNMADE, &error))?;
        }
        self.until(&program, || relay.is_up().then_some(())).await?;
        Ok(Some(program))
    }

    /// Removes what the relay of a removed environment has left.
    pub(super) async fn forget_relay(&self) {
        let Ok(host) = self.plane.host().await else { return };
        if let Ok(Some(relay)) = self.relay(host).await {
            blocking(move || relay.forget()).await;
        }
    }
}
