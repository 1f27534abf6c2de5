//! What deployments have outside the database: their logs, and the archives of their deploys.
//!
//! Both are stored by id, so an id is not enough to reach them. It takes the proof that a scope has looked the row up
//! ([`InScope`]), or the right of the system itself:
//!
//! ```
//! # use podium_api::DeploymentId;
//! fn read(app: &podium_app::App, found: podium_store::InScope<DeploymentId>) {
//!     let _ = app.logs_of(found);
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use podium_api::DeploymentId;
//! fn read(app: &podium_app::App, id: DeploymentId) {
//!     let _ = app.logs_of(id);
//! }
//! ```
//!
//! ```compile_fail,E0308
//! # use podium_api::{DeploymentId, WorkspaceId};
//! fn read(app: &podium_app::App, found: podium_store::InScope<WorkspaceId>) {
//!     let _ = app.logs_of(found);
//! }
//! ```
//!
//! ```compile_fail,E0061
//! fn read(app: &podium_app::App) {
//!     let _ = app.log_store();
//! }
//! ```
//!
//! ```compile_fail,E0061
//! fn read(app: &podium_app::App) {
//!     let _ = app.objects();
//! }
//! ```

use std::io;
use std::sync::Arc;

use podium_api::{DeployId, DeploymentId, SearchId, SubjectId, Timestamp};
use podium_logs::{
    Counts, Entry, Follow, Follower, Line, LogStore, NewLines, Origin, Page, Search, Snapshot,
};
use podium_objects::{Key, Listed, Uploads};
use podium_store::deploys::UploadRow;
use podium_store::{Housekeeper, InScope, Steward};

use crate::App;

/// The logs and archives of all deployments.
pub(crate) struct Outside {
    logs: Arc<LogStore>,
    objects: Uploads,
}

impl Outside {
    pub(crate) fn new(logs: LogStore, objects: Uploads) -> Self {
        Self { logs: Arc::new(logs), objects }
    }
}

impl App {
    pub fn logs_of(&self, deployment: InScope<DeploymentId>) -> LogsOf<'_> {
        LogsOf { logs: &self.outside.logs, deployment_id: *deployment.get() }
    }

    /// The logs of all deployments, for the loops.
    pub fn log_store(&self, _: &Steward) -> &Arc<LogStore> {
        &self.outside.logs
    }

    /// Deletes logs that are too old.
    pub(crate) async fn expire_logs(&self, _: &Housekeeper, now: Timestamp) -> io::Result<()> {
        self.outside.logs.expire(now).await
    }

    /// The archives of all deployments, for the loops and for signed uploads.
    pub fn objects(&self, _: &Steward) -> &Uploads {
        &self.outside.objects
    }

    /// The files of an archive; `None` if it is no longer stored.
    pub(crate) async fn files_of(
        &self,
        upload: &InScope<UploadRow>,
        most: usize,
        guard: impl Send + 'static,
    ) -> podium_objects::Result<Option<Listed>> {
        let Some(key) = Key::parse(&upload.get().object_key) else { return Ok(None) };
        self.outside.objects.files(key, most, guard).await
    }

    /// Removes the blocks of an archive of a deploy that were not assembled.
    pub(crate) async fn discard_staged(
        &self,
        deploy: InScope<(DeploymentId, DeployId)>,
    ) -> podium_objects::Result<()> {
        let (deployment_id, deploy_id) = *deploy.get();
        self.outside.objects.discard_all_of(deployment_id, deploy_id).await
    }
}

/// The logs of one deployment: whatever a search says, it stays there.
#[derive(Clone, Copy)]
pub struct LogsOf<'a> {
    logs: &'a LogStore,
    deployment_id: DeploymentId,
}

impl LogsOf<'_> {
    /// The snapshot of an earlier search of the subject, if it is still known.
    pub(crate) fn resume(
        &self,
        id: SearchId,
        subject_id: SubjectId,
        now: Timestamp,
    ) -> Option<Arc<Snapshot>> {
        self.logs.resume(id, subject_id, self.deployment_id, now)
    }

    pub(crate) fn snapshot(
        &self,
        id: SearchId,
        subject_id: SubjectId,
        search: Search,
        now: Timestamp,
    ) -> Arc<Snapshot> {
        self.logs.snapshot(id, subject_id, Search { deployment_id: self.deployment_id, ..search }, now)
    }

    pub(crate) async fn page(&self, snapshot: Arc<Snapshot>, page: Page) -> io::Result<Vec<Entry>> {
        self.logs.page(snapshot, page).await
    }

    /// How many lines there are, over time.
    pub(crate) async fn count(&self, search: Search, buckets: usize) -> io::Result<Counts> {
        self.logs.count(Search { deployment_id: self.deployment_id, ..search }, buckets).await
    }

    pub(crate) fn follow(&self, search: Follow, after: Option<u64>) -> Follower {
        self.logs.follow(Follow { deployment_id: self.deployment_id, ..search }, after)
    }

    pub(crate) async fn new_lines(&self, follower: &Follower) -> io::Result<NewLines> {
        self.logs.new_lines(follower).await
    }

    /// Adds a batch of an agent's lines, once; returns whether it is new.
    pub(crate) async fn append_once(
        &self,
        agent: &str,
        sequence: u64,
        mut lines: Vec<Line>,
    ) -> io::Result<bool> {
        lines.iter_mut().for_each(|line| line.deployment_id = self.deployment_id);
        self.logs.append_once(Origin::new(self.deployment_id, agent, sequence), lines).await
    }
}
