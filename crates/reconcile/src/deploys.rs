//! Reconciles deploys that are never finalized: after a day they fail, and their uploads are deleted.

use podium_api::DeployId;
use podium_app::App;
use podium_store::deploys;

use crate::reconciler::{Failure, StepResult, reconciles};

/// The reconciler of deploys.
pub(crate) struct Deploys {
    app: App,
}

impl Deploys {
    pub(crate) fn new(app: &App) -> Self {
        Self { app: app.clone() }
    }

    async fn reconcile(&self, id: DeployId) -> Result<StepResult, Failure> {
        let waits = self.app.expire_deploy(id, self.app.world.now()).await;
        let waits = waits.map_err(|error| Failure(error.to_string()))?;
        Ok(match waits {
            Some(at) => StepResult::at(at, "It has not been finalized yet."),
            None => StepResult::settled(),
        })
    }
}

reconciles!(deploys::KIND, DeployId => Deploys);
