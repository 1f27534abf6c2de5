//! Deploys that nobody finalizes: they fail when their time is over, and what was uploaded for them is removed.

use podium_api::Id;
use podium_app::App;
use podium_store::deploys;

use crate::reconciler::{Done, Failure, Reconciler, Stepping};

/// Looks after deploys that wait.
pub(crate) struct Deploys {
    app: App,
}

impl Deploys {
    pub(crate) fn new(app: &App) -> Self {
        Self { app: app.clone() }
    }

    async fn look(&self, id: Id) -> Result<Done, Failure> {
        let again = self.app.expire_deploy(id, self.app.world.now()).await;
        Ok(match again.map_err(|error| Failure(error.to_string()))? {
            None => Done::settled(),
            Some(at) => Done::waiting("It waits to be finalized.", Some(at)),
        })
    }
}

impl Reconciler for Deploys {
    fn kind(&self) -> &'static str {
        deploys::KIND
    }

    fn step(&self, id: Id) -> Stepping<'_> {
        Box::pin(self.look(id))
    }
}
