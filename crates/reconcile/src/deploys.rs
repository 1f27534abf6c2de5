//! Deploys that are never finalized: after a day they fail, and what was uploaded for them goes.

use podium_api::{DeployId, Id};
use podium_app::App;
use podium_store::deploys;

use crate::reconciler::{Done, Failure, Next, Reconciler, Stepping};

/// Looks after deploys.
pub(crate) struct Deploys {
    app: App,
}

impl Deploys {
    pub(crate) fn new(app: &App) -> Self {
        Self { app: app.clone() }
    }

    async fn look(&self, id: DeployId) -> Result<Done, Failure> {
        let waits = self.app.expire_deploy(id, self.app.world.now()).await;
        let waits = waits.map_err(|error| Failure(error.to_string()))?;
        Ok(match waits {
            Some(at) => {
                let next = Next::At { at, reason: "It has not been finalized yet.".into() };
                Done { next, ..Done::settled() }
            }
            None => Done::settled(),
        })
    }
}

impl Reconciler for Deploys {
    fn kind(&self) -> &'static str {
        deploys::KIND
    }

    fn step(&self, id: Id) -> Stepping<'_> {
        Box::pin(self.look(DeployId::from_raw(id)))
    }
}
