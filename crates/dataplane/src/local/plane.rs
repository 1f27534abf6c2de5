//! What all keepers share.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use podium_api::Id;
use tokio::sync::{Mutex as AsyncMutex, OnceCell};

use super::cgroups::Cgroups;
use super::database::Databases;
use super::ground::Ground;
use super::health::Probes;
use super::isolation::Mode;
use super::keeper::Handle;
use super::layout::Layout;
use super::options::Options;
use super::pace::Pace;
use super::runtimes::Runtimes;
use super::services::Services;
use crate::{Changed, Hidden, News};

/// What all keepers share.
pub(super) struct Plane {
    pub(super) options: Options,
    pub(super) pace: Pace,
    pub(super) services: Services,
    pub(super) layout: Layout,
    support: PathBuf,
    pub(super) runtimes: Runtimes,
    pub(super) databases: Databases,
    ground: OnceCell<Ground>,
    pub(super) cgroups: Cgroups,
    pub(super) probes: Probes,
    pub(super) news: News,
    keepers: Mutex<HashMap<Id, Handle>>,
    /// Whose turn it is to begin with an environment.
    pub(super) turn: AsyncMutex<()>,
}

impl Plane {
    pub(super) fn new(
        options: Options,
        services: Services,
        pace: Pace,
        layout: Layout,
        probes: Probes,
    ) -> Arc<Self> {
        let databases = options.database_url.clone().map_or(Databases::Files, Databases::Server);
        let support = layout.support();
        let runtimes = Runtimes::new(layout.clone(), options.disk_reserve);
        Arc::new(Self {
            options,
            services,
            pace,
            runtimes,
            layout,
            support,
            databases,
            ground: OnceCell::new(),
            cgroups: Cgroups::find(),
            probes,
            news: News::default(),
            keepers: Mutex::default(),
            turn: AsyncMutex::default(),
        })
    }

    /// What environments stand on. Where it is missing it is looked for again each time: somebody may install it.
    pub(super) async fn ground(&self) -> Result<&Ground, String> {
        let find = || async {
            let found = Ground::find(&self.options, self.layout.first_user()).await?;
            let described = found.mode.describe();
            if matches!(found.mode, Mode::Trusted(_)) {
                tracing::warn!("{described}");
            } else {
                tracing::info!(python = %found.python.path.display(), "{described}");
            }
            Ok(found)
        };
        self.ground.get_or_try_init(find).await
    }

    /// A key of an environment.
    pub(super) fn key(&self, id: Id, purpose: &str) -> Hidden {
        (self.services.keys)(id, purpose)
    }

    pub(super) fn support(&self) -> &Path {
        &self.support
    }

    /// Who keeps what.
    pub(super) fn keepers(&self) -> MutexGuard<'_, HashMap<Id, Handle>> {
        self.keepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An environment is gone.
    pub(super) fn forget(&self, id: Id) {
        self.keepers().remove(&id);
        self.news.tell(Changed::Environment(id));
    }
}
