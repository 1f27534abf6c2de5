//! A filter names an id. One that the caller may not see, of its own organization or of another, is answered like one
//! that nobody has: in status, items, totals, cursors and how much more there is.

use podium_api::enums::EventType;
use podium_api::{DeploymentId, Id, WorkspaceId};
use podium_domain::Target;
use podium_domain::events::{NewEvent, Resource};
use podium_store::events;
use podium_testkit::{Actor, TestApp, on_both_engines};
use serde_json::{Value, json};

/// More events than one page of a list or a stream looks through.
pub(crate) const MANY: usize = 5001;

pub(crate) async fn append_events(app: &TestApp, workspace_id: WorkspaceId, id: DeploymentId, count: usize) {
    let (scope, now) = (app.scope(), app.world.now());
    let about = Resource::new(id.id(), Target::Deployment { id, workspace_id });
    let event = NewEvent::new(EventType::DeploymentUpdated, app.organization_id, about, None);
    let added = app
        .app
        .db(&app.system)
        .write(None, move |tx| (0..count).try_for_each(|_| events::append(tx, &scope, now, &event)));
    added.await.unwrap_or_else(|error: podium_db::Error| panic!("{error}"));
    crate::events::settled(app).await;
}

async fn home(app: &TestApp, actor: &Actor) -> String {
    let all = app.get(actor, "/v1/organizations").await.ok();
    format!("/v1/organizations/{}", all["organizations"][0]["id"].as_str().unwrap())
}

/// What is told of a filter: everything but the id of the request and the id that was asked for.
async fn told(app: &TestApp, by: &Actor, path: &str, id: &str) -> (u16, String) {
    let answer = app.get(by, &path.replace("{id}", id)).await;
    let text = match serde_json::from_str::<Value>(&answer.text()) {
        Ok(mut body) => {
            if let Some(body) = body.as_object_mut() {
                body.remove("requestId");
            }
            body.to_string()
        }
        Err(_) => answer.text(),
    };
    (answer.code(), text.replace(id, "{id}"))
}

on_both_engines! {
    async fn an_unseen_id_in_a_filter_is_answered_like_an_unknown_one(app) {
        let workspace = app.workspace("Secret").await;
        let deployment = app.deployment(workspace).await;
        let body = json!({ "name": "ci", "scope": "WORKSPACE", "entityId": workspace, "role": "WORKSPACE_OWNER" });
        app.post(&app.owner, &app.path("/tokens"), body).await.ok();
        append_events(&app, workspace, deployment, MANY).await;
        let (stranger, plain) = (app.stranger().await, app.member("plain").await);
        let nowhere = app.world.id::<Id>().to_string();
        for by in [&stranger, &plain] {
            let home = home(&app, by).await;
            for (filter, unseen) in [
                ("events?workspaceId={id}", workspace.to_string()),
                ("events?deploymentId={id}", deployment.to_string()),
                ("events/follow?waitSeconds=0&since=2020-01-01T00:00:00Z&workspaceId={id}", workspace.to_string()),
                ("events/follow?waitSeconds=0&since=2020-01-01T00:00:00Z&deploymentId={id}", deployment.to_string()),
                ("operations?targetIds={id}", deployment.to_string()),
                ("operations?subjectId={id}", app.owner.id.to_string()),
                ("deployments?workspaceIds={id}", workspace.to_string()),
                ("deployments?deploymentIds={id}", deployment.to_string()),
                ("deployment-processes?workspaceIds={id}", workspace.to_string()),
                ("deployment-processes?deploymentIds={id}", deployment.to_string()),
                ("deployment-options?deploymentId={id}", deployment.to_string()),
                ("environment-objects?workspaceId={id}", workspace.to_string()),
                ("environment-objects?deploymentId={id}", deployment.to_string()),
                ("environment-objects?resolveLinked=true&deploymentId={id}", deployment.to_string()),
                ("teams?workspaceId={id}", workspace.to_string()),
                ("teams?deploymentId={id}", deployment.to_string()),
                ("tokens?workspaceId={id}", workspace.to_string()),
                ("tokens?deploymentId={id}", deployment.to_string()),
                ("users?workspaceId={id}", workspace.to_string()),
                ("users?deploymentId={id}", deployment.to_string()),
                ("workspaces?workspaceIds={id}", workspace.to_string()),
                ("deployments/{id}/logs?sources=worker", deployment.to_string()),
                ("deployments/{id}/logs/counts?sources=worker", deployment.to_string()),
                ("deployments/{id}/deploys", deployment.to_string()),
            ] {
                let path = format!("{home}/{filter}");
                let unknown = told(&app, by, &path, &nowhere).await;
                assert_eq!(told(&app, by, &path, &unseen).await, unknown, "{} {filter}", by.id);
            }
        }
    }

    async fn a_seen_id_in_a_filter_of_events_still_finds_them(app) {
        let workspace = app.workspace("Seen").await;
        let deployment = app.deployment(workspace).await;
        let member = podium_testkit::role(podium_domain::On::Organization, "ORGANIZATION_MEMBER");
        let roles = [
            podium_testkit::role(podium_domain::On::Workspace(workspace), "WORKSPACE_MEMBER"),
            podium_testkit::role(podium_domain::On::Deployment { id: deployment, workspace_id: workspace }, "DEPLOYMENT_ADMIN"),
        ];
        append_events(&app, workspace, deployment, 1).await;
        for (index, held) in roles.into_iter().enumerate() {
            let reader = app.user_with(&format!("reader{index}"), vec![member.clone(), held]).await;
            for filter in [format!("workspaceId={workspace}"), format!("deploymentId={deployment}")] {
                let page = app.get(&reader, &app.path(&format!("/events?{filter}"))).await.ok();
                assert!(!page["events"].as_array().unwrap().is_empty(), "{index} {filter}");
            }
        }
        // What is gone is still told of, to those who saw it in its workspace.
        let reader = app.user_with("later", vec![
            podium_testkit::role(podium_domain::On::Organization, "ORGANIZATION_MEMBER"),
            podium_testkit::role(podium_domain::On::Workspace(workspace), "WORKSPACE_MEMBER"),
        ]).await;
        app.delete(&app.owner, &app.path(&format!("/deployments/{deployment}"))).await;
        crate::events::settled(&app).await;
        let page = app.get(&reader, &app.path(&format!("/events?deploymentId={deployment}"))).await.ok();
        assert!(page["events"].to_string().contains("podium.deployment.deleted"), "{page}");
    }
}
