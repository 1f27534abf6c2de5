//! Deployments for tests of the loops, and the loops driven by hand.

use std::sync::PoisonError;

use podium_api::deploy_reports::RolloutReport;
use podium_api::enums::DeploymentStatus;
use podium_api::{DeployId, DeploymentId, WorkspaceId};
use podium_dataplane::LogLine;
use podium_domain::deployments::Spec;
use podium_domain::deployments::rollout::{RolloutProgress, RolloutStep};
use podium_store::deployments::{self, DeploymentRow};
use podium_store::work::{self, Pending};
use podium_store::{Stamp, subjects};

use crate::app::TestApp;
use crate::resources::bare;

impl TestApp {
    /// Runs the loops until nothing is due; returns the number of steps.
    pub async fn settle(&self) -> usize {
        podium_app::webhooks::enqueue_behind(&self.app, None).await.expect("webhooks can be enqueued");
        let steps = self.loops.step_until_idle().await.expect("the loops come to rest");
        let said = std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        self.keep_lines(said).await;
        steps
    }

    /// Says that the rollout of a deployment waits for a task.
    pub async fn wait_for_task(&self, id: DeploymentId, task: &str) {
        self.reach(id, RolloutStep::Drain, vec![task.to_owned()]).await;
    }

    /// Says that the rollout of a deployment is in a step, and which tasks it waits for.
    pub async fn reach(&self, id: DeploymentId, step: RolloutStep, waits_for: Vec<String>) {
        let progress = RolloutProgress { step, done: None, message: None, waits_for };
        self.plane.script().set_progress(id, Some(progress));
        self.settle().await;
    }

    /// Writes lines to the log store.
    pub async fn keep_lines(&self, lines: Vec<LogLine>) {
        podium_reconcile::append_lines(&self.app, self.system.steward(), lines)
            .await
            .expect("lines can be kept");
    }

    /// Writes what the rollout of a deploy will have found, before it ends.
    pub async fn report_rollout(&self, id: DeploymentId, deploy_id: DeployId, report: RolloutReport) {
        let (system, of, now) = (self.system, (self.organization_id, id, deploy_id), self.world.now());
        let write =
            move |tx: &podium_db::Tx| podium_store::deploy_reports::insert(tx, &system, of, &report, now);
        self.db().write(None, write).await.expect("it is written");
    }

    pub async fn new_deployment(&self, workspace_id: WorkspaceId) -> DeploymentId {
        self.new_deployment_with(workspace_id, |_| {}).await
    }

    /// A deployment that was just created, with other settings.
    pub async fn new_deployment_with(
        &self,
        workspace_id: WorkspaceId,
        change: impl FnOnce(&mut Spec),
    ) -> DeploymentId {
        let (system, scope) = (self.system, self.scope());
        let (id, now, owner_id) = (self.world.id(), self.world.now(), self.owner.id);
        let owner = self.db().read(None, move |conn| subjects::get(conn, &system, owner_id)).await;
        let owner = owner.expect("it reads").expect("the owner is a subject");
        let mut row = bare(id, self.organization_id, workspace_id, Stamp::new(owner, now));
        row.status = DeploymentStatus::Creating;
        row.observed_generation = 0;
        change(&mut row.spec);
        let added = self.db().write(None, move |tx| deployments::insert(tx, &scope, &row, &row.name)).await;
        added.expect("a deployment can be stored");
        id
    }

    pub async fn change_deployment(&self, id: DeploymentId, change: impl FnOnce(&mut Spec)) {
        let scope = self.scope();
        let mut row = self.stored_deployment(id).await.expect("there is one");
        let by = row.stamp.updated_by.clone();
        row.stamp = row.stamp.changed(by, self.world.now());
        row.generation += 1;
        if row.status != DeploymentStatus::Creating {
            row.status = DeploymentStatus::Deploying;
        }
        change(&mut row.spec);
        let changed = self.db().write(None, move |tx| deployments::update(tx, &scope, &row, &row.name)).await;
        changed.expect("a deployment can be changed");
    }

    pub async fn delete_deployment(&self, id: DeploymentId) {
        let row = self.stored_deployment(id).await.expect("there is one");
        let (scope, now) = (self.scope(), self.world.now());
        let unit = move |tx: &podium_db::Tx| {
            deployments::delete(tx, &scope, &row.location(), row.workspace_id, row.stamp.version, now)
        };
        self.db().write(None, unit).await.expect("a deployment can be deleted");
    }

    pub async fn stored_deployment(&self, id: DeploymentId) -> Option<DeploymentRow> {
        let system = self.system;
        self.db().read(None, move |conn| deployments::state(conn, &system, id)).await.expect("it reads")
    }

    pub async fn status(&self, id: DeploymentId) -> (DeploymentStatus, String) {
        let row = self.stored_deployment(id).await.expect("there is one");
        (row.status, row.status_reason.to_string())
    }

    /// Deletes all pending work.
    pub async fn forget_work(&self) {
        self.execute("DELETE FROM work").await;
    }

    /// Deletes all placements, as if there had never been nodes.
    pub async fn forget_placements(&self) {
        self.execute("DELETE FROM placements").await;
        self.execute("UPDATE work SET node_id = ''").await;
    }

    pub async fn pending_work(&self) -> Vec<Pending> {
        let system = self.system;
        self.db().scan(None, move |conn| work::pending(conn, &system, None, 1000)).await.expect("it reads")
    }
}
