//! Places with one of everything that a request can name.

use std::collections::BTreeMap;

use podium_api::{DeploymentId, WorkspaceId};
use podium_domain::On;
use podium_testkit::{TestApp, role};
use serde_json::{Value, json};

use super::super::calls::{connection, fresh, one_of_everything};
use crate::wire::{MANY, append_events};

use super::bodies::{hybrid, queue};
use super::sites::{Part, Site};

/// One of everything, by what a path calls it.
pub(super) struct Place {
    ids: BTreeMap<String, String>,
}

impl Place {
    /// One of everything in the application's organization, in a cluster that is open to all.
    pub(super) async fn open(app: &TestApp) -> Self {
        let workspace = app.workspace(&fresh(app)).await;
        Self::make(app, workspace, &[]).await
    }

    /// The same in a cluster for that workspace only, where more happened than one page of events looks through.
    pub(super) async fn closed(app: &TestApp) -> Self {
        let workspace = app.workspace(&fresh(app)).await;
        let place = Self::make(app, workspace, &[workspace]).await;
        append_events(app, workspace, place.of("deploymentId").parse().expect("an id"), MANY).await;
        place
    }

    /// What can be in a workspace is in the same one, with subjects who hold roles there.
    async fn make(app: &TestApp, workspace: WorkspaceId, admitted: &[WorkspaceId]) -> Self {
        let mut ids = one_of_everything(app).await;
        let mut add = |kind: &str, id: &Value| {
            ids.insert(kind.to_owned(), id.as_str().expect("an id").to_owned());
        };
        let (cluster, pool) = hybrid(app, admitted).await;
        let body = json!({
            "name": fresh(app), "workspaceId": workspace, "clusterId": cluster, "executor": "CELERY",
            "workerQueues": [queue(&json!({ "nodePoolId": pool }))],
        });
        let made = app.post(&app.owner, &app.path("/deployments"), body).await.ok();
        let id: DeploymentId = made["id"].as_str().expect("an id").parse().expect("an id");
        app.set_column("deployments", id, "status", "'HEALTHY'").await;
        let logs = app.path(&format!("/deployments/{id}/logs?sources=scheduler"));
        let token = app.token("ci", "WORKSPACE", workspace, "WORKSPACE_MEMBER").await;
        app.token("cd", "DEPLOYMENT", id, "DEPLOYMENT_ADMIN").await;
        let on = On::Deployment { id, workspace_id: workspace };
        let held = vec![role(On::Workspace(workspace), "WORKSPACE_MEMBER"), role(on, "DEPLOYMENT_ADMIN")];
        let user = app.user_with(&fresh(app), held.clone()).await;
        let team = app.team(&fresh(app), &[&user]).await;
        app.set_grants(podium_store::grants::Subject::Team, team, held).await;
        let objects = app.path("/environment-objects");
        let object = app.post(&app.owner, &objects, connection(&fresh(app), workspace)).await.id();
        add("environmentObjectId", &json!(object));
        add("workspaceId", &json!(workspace));
        add("deploymentId", &json!(id));
        add("clusterId", &json!(cluster));
        add("tokenId", &json!(token.id));
        add("userId", &json!(user.id));
        add("teamId", &json!(team));
        add("nodePoolId", &json!(pool));
        add("workerQueueId", &made["workerQueues"][0]["id"]);
        add("searchId", &app.get(&app.owner, &logs).await.ok()["searchId"]);
        Self { ids }
    }

    /// Only things of these kinds.
    pub(super) fn only(mut self, kinds: &[&str]) -> Self {
        self.ids.retain(|kind, _| kinds.contains(&kind.as_str()));
        assert_eq!(self.ids.len(), kinds.len(), "there is one of each");
        self
    }

    /// The thing of this kind.
    pub(super) fn of(&self, kind: &str) -> &str {
        &self.ids[kind]
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &str> {
        self.ids.values().map(String::as_str)
    }

    pub(super) fn workspace(&self) -> WorkspaceId {
        self.of("workspaceId").parse().expect("an id")
    }

    /// Everything that a field may mean: what its name says, or anything where it says nothing.
    pub(super) fn fitting(&self, site: &Site) -> Vec<&str> {
        if site.part == Part::Path {
            return self.ids.get(&site.field).map(String::as_str).into_iter().collect();
        }
        let named = site.field.trim_end_matches(".id").rsplit('.').next().unwrap_or_default().to_lowercase();
        let is_meant = |kind: &str| named.contains(kind.trim_end_matches("Id").to_lowercase().as_str());
        let meant = self.ids.iter().filter(|(kind, _)| is_meant(kind)).map(|(_, id)| id.as_str());
        let says_nothing = ["entityid", "scopeentityid", "targetids[]", "subjectid"].contains(&&*named);
        if says_nothing { self.all().collect() } else { meant.collect() }
    }
}
