//! Deployments from their creation to their deletion, despite failures.

mod failures;
mod races;
mod refusals;
mod steps;

use podium_api::DeploymentId;
use podium_api::enums::DeploymentStatus::{self, Healthy};
use podium_dataplane::simulated::{Call, Entry};
use podium_domain::deployments::Spec;
use podium_store::changes::{self, LoggedChange, Position};
use podium_testkit::{TestApp, on_both_engines};
use serde_json::json;

use crate::gated::Gated;

/// Moves the clock from one due time to the next until nothing is left that waits for something; bounded.
pub(crate) async fn come_to_rest(app: &TestApp, loops: &podium_reconcile::Loops) {
    for _ in 0..60 {
        loops.step_until_idle().await.expect("it comes to rest");
        let pending = app.pending_work().await;
        let Some(next) = pending.iter().find(|row| !row.reason.contains("hibernation event")) else { return };
        app.world.set(next.due_at.max(app.world.now()));
    }
    panic!("it does not come to rest: {:?}", app.pending_work().await);
}

/// The calls about a deployment since the journal was last read.
fn calls(app: &TestApp, id: DeploymentId) -> Vec<Call> {
    app.plane.script().journal().iter().filter(|entry| entry.id == id.id()).map(|entry| entry.call).collect()
}

/// The last change of a deployment in the log, as soon as it can be read there.
async fn logged(app: &TestApp, id: DeploymentId) -> LoggedChange {
    let system = app.system;
    loop {
        let all = app
            .app
            .db(&app.system)
            .scan(None, move |conn| changes::after(conn, &system, Position::default(), 10_000))
            .await;
        let all = all.unwrap_or_else(|error: podium_db::Error| panic!("{error}"));
        match all.into_iter().rfind(|change| change.id == id.to_string()) {
            Some(change) => return change,
            None => tokio::task::yield_now().await,
        }
    }
}

/// Other images, so that something has to be rolled out.
fn image(tag: &'static str) -> impl FnOnce(&mut Spec) {
    move |spec| spec.release.image_tag = tag.into()
}

async fn running_image(app: &TestApp, id: DeploymentId) -> Option<String> {
    app.stored_deployment(id).await.expect("there is one").observed.image_tag
}

fn well(status: DeploymentStatus) -> (DeploymentStatus, String) {
    (status, String::new())
}

on_both_engines! {
    async fn a_new_deployment_is_brought_up_and_recorded(app) {
        let workspace = app.workspace("Data").await;
        app.plane.script().keep_journal();
        let id = app.new_deployment(workspace).await;
        assert_eq!(app.status(id).await.0, DeploymentStatus::Creating);
        assert_eq!(app.settle().await, 1, "on a plane that is quick one step does it all");
        let row = app.stored_deployment(id).await.expect("there is one");
        assert_eq!((row.status, row.status_reason.as_str()), (Healthy, ""));
        assert_eq!((row.generation, row.observed_generation, row.stamp.version), (1, 1, 1));
        assert_eq!(row.observed.image_tag.as_deref(), Some("3.3.2"));
        assert_eq!(row.observed.runtime_version.as_deref(), Some("3.3.2"));
        assert_eq!(app.plane.environments(), [id]);
        assert_eq!(calls(&app, id), [Call::Observe, Call::Apply, Call::Observe]);
        assert_eq!(app.pending_work().await, []);
        assert_eq!(app.settle().await, 0);
        let change = logged(&app, id).await;
        assert_eq!((change.kind.as_str(), change.version), ("deployments", 1));
        assert_eq!(change.organization_id, Some(app.organization_id.to_string()));
        assert_eq!(change.workspace_id, Some(workspace.to_string()));
        assert_eq!(change.deployment_id, Some(id.to_string()));
    }

    async fn a_change_is_rolled_out_and_the_status_says_so(app) {
        let id = app.new_deployment(app.workspace("Data").await).await;
        app.settle().await;
        app.plane.script().lock().rollout = std::time::Duration::from_secs(90);
        app.change_deployment(id, image("deploy-1")).await;
        assert_eq!(app.status(id).await.0, DeploymentStatus::Deploying);
        app.settle().await;
        let (status, reason) = app.status(id).await;
        assert_eq!(status, DeploymentStatus::Deploying);
        assert!(reason.starts_with("Waiting for: apiserver (it is starting), dag-processor"), "{reason}");
        assert_eq!(running_image(&app, id).await.as_deref(), Some("3.3.2"));
        let pending = app.pending_work().await;
        assert_eq!(pending.len(), 1);
        assert_eq!(pending[0].due_at.millis() - app.world.now().millis(), 90_000, "it is not asked before");
        assert_eq!((pending[0].attempts, pending[0].reason.as_str()), (0, reason.as_str()));
        app.advance(std::time::Duration::from_secs(90));
        assert_eq!(app.settle().await, 1);
        assert_eq!(app.status(id).await, well(Healthy));
        assert_eq!(running_image(&app, id).await.as_deref(), Some("deploy-1"));
        assert_eq!(app.pending_work().await, []);
    }

    async fn a_deleted_deployment_leaves_nothing(app) {
        let workspace = app.workspace("Data").await;
        let (gone, stays) = (app.new_deployment(workspace).await, app.new_deployment(workspace).await);
        app.settle().await;
        app.plane.script().lock().removal = std::time::Duration::from_secs(5);
        app.delete_deployment(gone).await;
        app.settle().await;
        assert_eq!(app.plane.environments(), [gone, stays], "it takes its time");
        assert_eq!(app.pending_work().await[0].reason, "It is being removed.");
        app.advance(std::time::Duration::from_secs(5));
        app.settle().await;
        assert_eq!(app.plane.environments(), [stays]);
        assert_eq!(app.pending_work().await, []);
    }

    async fn only_the_plane_gets_decrypted_secrets(app) {
        let plane = Gated::new(&app);
        let loops = plane.loops(&app);
        let workspace = app.workspace("Data").await;
        let mut ids = Vec::new();
        for (name, secret) in [("Reports", "s3cret"), ("Other", "theirs")] {
            let variables = json!([
                { "key": "LEVEL", "value": "debug", "isSecret": false },
                { "key": "TOKEN", "value": secret, "isSecret": true },
            ]);
            let body = json!({ "name": name, "workspaceId": workspace, "environmentVariables": variables });
            let made = app.post(&app.owner, &app.path("/deployments"), body).await;
            ids.push(made.id().parse::<DeploymentId>().expect("an id"));
        }
        let (id, other) = (ids[0], ids[1]);
        come_to_rest(&app, &loops).await;
        assert_eq!(app.status(id).await, well(Healthy));
        let applied = plane.applied();
        let environment = applied.iter().find(|environment| environment.id == id).expect("it was applied");
        let shown: Vec<(&str, &str)> =
            environment.variables.iter().map(|one| (one.key.as_str(), one.value.reveal())).collect();
        assert_eq!(shown, [("LEVEL", "debug"), ("TOKEN", "s3cret")]);
        assert!(!format!("{environment:?}").contains("s3cret"));
        assert_eq!((environment.generation, environment.name.as_str()), (1, "Reports"));

        // A secret of another deployment cannot be smuggled in: it is bound to its own.
        let theirs = app.stored_deployment(other).await.expect("there is one").spec.environment_variables;
        app.change_deployment(id, move |spec| spec.environment_variables = theirs).await;
        loops.step_until_idle().await.expect("it comes to rest");
        let (status, reason) = app.status(id).await;
        assert_eq!(status, DeploymentStatus::Deploying);
        assert!(reason.starts_with("Rolling out the change failed and will be retried: "), "{reason}");
        assert!(!reason.contains("theirs"), "{reason}");
        assert_eq!(plane.applied(), []);
        app.change_deployment(id, |spec| spec.environment_variables.clear()).await;
        come_to_rest(&app, &loops).await;
        assert_eq!(app.status(id).await, well(Healthy));
    }

    async fn many_deployments_need_one_step_each(app) {
        let workspace = app.workspace("Data").await;
        let mut ids = Vec::new();
        for _ in 0..250 {
            ids.push(app.new_deployment(workspace).await);
        }
        assert_eq!(app.settle().await, 250);
        assert_eq!(app.plane.environments(), ids);
        for id in ids {
            assert_eq!(app.status(id).await, well(Healthy));
        }
    }
}

/// What was applied, by generation.
fn generations(journal: &[Entry]) -> Vec<i64> {
    journal.iter().filter_map(|entry| entry.generation).collect()
}
