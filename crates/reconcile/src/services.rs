//! The services that the control plane provides to the local data plane: code, keys, time, and log storage.

use std::sync::Arc;

use podium_api::DeploymentId;
use podium_app::App;
use podium_app::secrets::Secrets;
use podium_dataplane::{Archive, Archives, Claims, Keys, LogLine, Logs, PlaneFuture, Secret, Services};
use podium_domain::Reason;
use podium_domain::events::{SpoolBatch, SpoolState};
use podium_store::{Steward, event_spools};

use crate::append_lines;

/// The purpose of signatures that serve as keys of environments.
const PURPOSE: &str = "environment";

/// Everything that the local plane needs.
pub fn services(app: &App, system: Steward) -> Services {
    let (secrets, clock) = (app.clone(), Arc::clone(&app.world));
    Services {
        archives: Arc::new(AppServices(app.clone(), system)),
        logs: Arc::new(AppServices(app.clone(), system)),
        claims: Arc::new(AppServices(app.clone(), system)),
        keys: Arc::new(move |id, purpose| key(&secrets.secrets, id, purpose)),
        clock: Arc::new(move || clock.now()),
    }
}

/// Derives the keys of environments from the secrets of an installation.
pub fn keys(secrets: Secrets) -> Keys {
    Arc::new(move |id, purpose| key(&secrets, id, purpose))
}

fn key(secrets: &Secrets, id: DeploymentId, purpose: &str) -> Secret {
    Secret::new(secrets.sign(PURPOSE, &format!("{id}\n{purpose}")))
}

struct AppServices(App, Steward);

impl Archives for AppServices {
    fn open<'a>(&'a self, deployment_id: DeploymentId, version: &'a str) -> PlaneFuture<'a, Option<Archive>> {
        Box::pin(async move {
            let opened = self.0.open_upload(deployment_id, version).await;
            opened.map_err(|error| Reason::new("the deployed archive cannot be read", error).into())
        })
    }
}

impl Logs for AppServices {
    fn append(&self, batch: Vec<LogLine>) -> PlaneFuture<'_, ()> {
        Box::pin(async move {
            // Nothing is lost: lines stay in their files until there is space for them.
            if let Some(why) = self.0.disk_is_full() {
                return Err(why.into());
            }
            let kept = append_lines(&self.0, self.1, batch).await;
            kept.map_err(|error| Reason::new("the log lines cannot be stored", error).into())
        })
    }
}

impl Claims for AppServices {
    fn state(&self, deployment_id: DeploymentId) -> PlaneFuture<'_, SpoolState> {
        let (now, system) = (self.0.world.now(), self.1);
        Box::pin(async move {
            let known = self
                .0
                .db(&system)
                .read(None, move |conn| event_spools::get(conn, &system, deployment_id))
                .await;
            let known = known.map_err(|error| Reason::new("the events cannot be read", error))?;
            Ok(known.unwrap_or_else(|| SpoolState::new(now)))
        })
    }

    fn record(&self, deployment_id: DeploymentId, batch: SpoolBatch) -> PlaneFuture<'_, Option<SpoolState>> {
        let (now, system) = (self.0.world.now(), self.1);
        Box::pin(async move {
            // Nothing is lost: it stays in the spool until there is space for it.
            if let Some(why) = self.0.disk_is_full() {
                return Err(why.into());
            }
            let write = move |tx: &podium_db::Tx| {
                event_spools::record(tx, &system, deployment_id, batch.clone(), now)
            };
            let written = self.0.db(&system).write(None, write).await;
            written.map_err(|error| Reason::new("the events cannot be stored", error).into())
        })
    }
}
