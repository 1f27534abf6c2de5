//! Deploys that are not finalized fail after a day: the loops process them when the day is over.

use podium_api::enums::DeployStatus;
use podium_api::{DeployId, DeploymentId, Timestamp};
use podium_db::{Change, Tx};
use podium_domain::deploys as rules;
use podium_objects::{Key, Reader};
use podium_store::{Steward, changes, deployments, deploys};

use crate::App;
use crate::error::{Error, Result};

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

/// The result of checking a deploy for expiry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryOutcome {
    /// It is deleted or finalized: there is nothing more to do.
    Settled,
    /// It still waits to be finalized; look again then.
    Waits(Timestamp),
    /// It has failed, now or before; its uploads can be removed.
    Failed { deployment_id: DeploymentId },
}

/// Makes a deploy fail whose time is over.
pub fn expire(tx: &Tx, system: &Steward, id: DeployId, now: Timestamp) -> Result<ExpiryOutcome> {
    let Some(row) = deploys::lock(tx, system, id)? else { return Ok(ExpiryOutcome::Settled) };
    let created_at = row.stamp.created_at;
    match rules::status(row.status, created_at, now) {
        DeployStatus::Initialized => return Ok(ExpiryOutcome::Waits(rules::expires_at(created_at))),
        DeployStatus::Deployed => return Ok(ExpiryOutcome::Settled),
        DeployStatus::Failed => {}
    }
    if deploys::fail(tx, system, id)? {
        let deployment_id = Some(row.deployment_id.to_string());
        let change = Change { deployment_id, ..Change::new(deploys::KIND, &id, row.stamp.version) };
        let scope = system.scope(row.organization_id);
        changes::append(tx, &scope, now, change)?;
        if let Some(workspace_id) = deployments::workspace_of(tx, &scope, row.deployment_id)? {
            deploys::append_failed(tx, &scope, id, (row.deployment_id, workspace_id), now)?;
        }
    }
    Ok(ExpiryOutcome::Failed { deployment_id: row.deployment_id })
}

impl App {
    /// Fails a deploy that has expired; returns when to check again, if at all.
    pub async fn expire_deploy(&self, id: DeployId, now: Timestamp) -> Result<Option<Timestamp>> {
        let system = system(self);
        let fate = db(self).write(None, move |tx| expire(tx, &system, id, now)).await?;
        match fate {
            ExpiryOutcome::Settled => Ok(None),
            ExpiryOutcome::Waits(until) => Ok(Some(until)),
            ExpiryOutcome::Failed { deployment_id } => {
                self.remove_files(Key::of_deploy(deployment_id, id)).await?;
                Ok(None)
            }
        }
    }

    /// Opens an upload of a deployment by version; `None` if there is no such version.
    pub async fn open_upload(&self, deployment_id: DeploymentId, version: &str) -> Result<Option<Reader>> {
        let (system, wanted) = (system(self), version.to_owned());
        let row =
            db(self).read(None, move |conn| deploys::upload(conn, &system, deployment_id, &wanted)).await?;
        let Some(key) = row.and_then(|row| Key::parse(&row.object_key)) else { return Ok(None) };
        self.objects(&system).open(key).await.map_err(|error| Error::Internal(error.to_string()))
    }

    /// Removes every file of a deployment that is gone.
    pub async fn remove_files_of_deployment(&self, id: DeploymentId) -> Result<()> {
        self.remove_files(Key::of_deployment(id)).await
    }

    async fn remove_files(&self, below: Key) -> Result<()> {
        self.objects(&system(self))
            .delete_under(below)
            .await
            .map_err(|error| Error::Internal(error.to_string()))
    }
}
