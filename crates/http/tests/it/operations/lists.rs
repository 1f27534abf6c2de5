//! Which operations are listed, to whom, and for how long.

use std::time::Duration;

use podium_domain::On;
use podium_testkit::{Actor, TestApp, on_both_engines, role};
use serde_json::{Value, json};

use super::{MINUTE, cancel, change, create, id_of, made, path, read, started};
use crate::deployments::{member_with, path as deployment_path};

const DAY: Duration = Duration::from_hours(24);

async fn listed(app: &TestApp, by: &Actor, query: &str) -> Vec<String> {
    let page = app.get(by, &app.path(&format!("/operations?{query}"))).await.ok();
    let id = |operation: &Value| operation["id"].as_str().unwrap().to_owned();
    let ids: Vec<String> = page["operations"].as_array().unwrap().iter().map(id).collect();
    if !query.contains("limit=") {
        assert_eq!(page["totalCount"], ids.len());
    }
    ids
}

on_both_engines! {
    async fn lists_are_filtered_and_paged(app) {
        let workspace = app.workspace("Data").await;
        let (one, first) = create(&app, workspace, json!({ "name": "One" })).await;
        app.advance(MINUTE);
        let (_, second) = create(&app, workspace, json!({ "name": "Two" })).await;
        app.settle().await;
        app.advance(MINUTE);
        let operator = member_with(&app, On::Workspace(workspace), "WORKSPACE_OPERATOR").await;
        let body = crate::deployments::update(&crate::deployments::read(&app, one).await, json!({ "description": "x" }));
        let third = started(&app.post(&operator, &deployment_path(&app, one), body).await);
        let all = [&third, &second, &first].map(Clone::clone);
        let owner = &app.owner;
        assert_eq!(listed(&app, owner, "").await, all);
        assert_eq!(listed(&app, owner, &format!("targetIds={one}")).await, [third.clone(), first.clone()]);
        assert_eq!(listed(&app, owner, "kinds=UPDATE").await, std::slice::from_ref(&third));
        assert_eq!(listed(&app, owner, "kinds=UPDATE&kinds=CREATE&states=SUCCEEDED").await, [second.clone(), first.clone()]);
        assert_eq!(listed(&app, owner, "states=PENDING").await, std::slice::from_ref(&third));
        assert_eq!(listed(&app, owner, &format!("subjectId={}", operator.id)).await, std::slice::from_ref(&third));
        assert_eq!(listed(&app, &operator, "subjectId=self").await, std::slice::from_ref(&third));
        assert_eq!(listed(&app, owner, "since=2027-01-15T08:01:00Z").await, [third.clone(), second.clone()]);
        assert_eq!(listed(&app, owner, &format!("since=2027-01-15T08:01:00Z&targetIds={one}")).await, std::slice::from_ref(&third));
        assert_eq!(listed(&app, owner, "sorts=createdAt:asc&limit=1&offset=1").await, std::slice::from_ref(&second));
        assert_eq!(listed(&app, owner, "targetIds=nothing").await, [""; 0]);
        let wrong = app.get(owner, &app.path("/operations?kinds=FLY&states=LOST&since=yesterday&sorts=name:asc")).await;
        assert_eq!(wrong.wrong_fields(), ["kinds[0]: enum", "states[0]: enum", "since: format", "sorts[0]: enum"]);
    }

    async fn operations_are_seen_by_those_who_see_their_target(app) {
        let (workspace, other) = (app.workspace("Data").await, app.workspace("Other").await);
        let (id, operation) = create(&app, workspace, json!({})).await;
        app.settle().await;
        let on_it = On::Deployment { id, workspace_id: workspace };
        let sees = [
            member_with(&app, On::Workspace(workspace), "WORKSPACE_MEMBER").await,
            member_with(&app, on_it, "DEPLOYMENT_ACCESSOR").await,
        ];
        let blind = [
            member_with(&app, On::Workspace(workspace), "WORKSPACE_ACCESSOR").await,
            app.user_with("elsewhere", vec![
                role(On::Organization, "ORGANIZATION_MEMBER"), role(On::Workspace(other), "WORKSPACE_OWNER"),
            ]).await,
        ];
        for actor in &sees {
            assert_eq!(listed(&app, actor, "").await, std::slice::from_ref(&operation));
            app.get(actor, &path(&app, &operation)).await.ok();
            assert_eq!(cancel(&app, actor, &operation).await.code(), 403, "seeing is not cancelling");
        }
        for actor in &blind {
            assert_eq!(listed(&app, actor, "").await, [""; 0]);
            let told = app.get(actor, &path(&app, &operation)).await.refused(404);
            assert_eq!(told, "There is no such operation, or you may not see it.");
            cancel(&app, actor, &operation).await.refused(404);
        }
        // After the deployment is deleted, those who see the deployments of its workspace still do.
        let deleted = started(&app.delete(&app.owner, &deployment_path(&app, id)).await);
        app.settle().await;
        assert_eq!(listed(&app, &sees[0], "sorts=createdAt:asc").await.len(), 2);
        app.get(&sees[0], &path(&app, &deleted)).await.ok();
        for actor in [&sees[1], &blind[0], &blind[1]] {
            assert_eq!(listed(&app, actor, "").await, [""; 0]);
            app.get(actor, &path(&app, &deleted)).await.refused(404);
        }
        let stranger = app.stranger().await;
        app.get(&stranger, &path(&app, &deleted)).await.refused(404);
    }

    async fn operations_move_with_their_deployment(app) {
        let (here, there) = (app.workspace("Here").await, app.workspace("There").await);
        let (id, operation) = create(&app, here, json!({})).await;
        app.settle().await;
        let before = member_with(&app, On::Workspace(here), "WORKSPACE_MEMBER").await;
        let after = app.user_with("after", vec![
            role(On::Organization, "ORGANIZATION_MEMBER"), role(On::Workspace(there), "WORKSPACE_MEMBER"),
        ]).await;
        let moved = change(&app, id, json!({ "workspaceId": there })).await;
        assert_eq!(listed(&app, &before, "").await, [""; 0]);
        assert_eq!(listed(&app, &after, "sorts=createdAt:asc").await.len(), 2);
        for operation in [&operation, &moved] {
            assert_eq!(read(&app, operation).await["target"]["workspaceId"], json!(there));
        }
    }

    async fn operations_of_clusters_are_seen_by_those_who_see_the_cluster(app) {
        let (workspace, other) = (app.workspace("Data").await, app.workspace("Other").await);
        let open = app.new_cluster("Open", json!({})).await;
        let closed = app.new_cluster("Closed", json!({ "workspaceIds": [workspace], "vpcSubnetRange": "172.21.0.0/20" })).await;
        app.settle().await;
        let inside = member_with(&app, On::Workspace(workspace), "WORKSPACE_ACCESSOR").await;
        let outside = app.user_with("outside", vec![
            role(On::Organization, "ORGANIZATION_MEMBER"), role(On::Workspace(other), "WORKSPACE_OWNER"),
        ]).await;
        let of = |id| format!("targetIds={id}");
        for (actor, sees_closed) in [(&inside, 1), (&outside, 0)] {
            assert_eq!(listed(&app, actor, &of(open)).await.len(), 1);
            assert_eq!(listed(&app, actor, &of(closed)).await.len(), sees_closed);
        }
        for id in [open, closed] {
            app.delete(&app.owner, &app.path(&format!("/clusters/{id}"))).await.ok();
        }
        for actor in [&inside, &outside] {
            assert_eq!(listed(&app, actor, "").await, [""; 0], "a deleted cluster is seen by nobody but owners");
        }
        assert_eq!(listed(&app, &app.owner, "").await.len(), 4);
    }

    async fn operations_are_kept_for_90_days_after_they_have_ended(app) {
        let workspace = app.workspace("Data").await;
        let (id, ended) = create(&app, workspace, json!({})).await;
        app.settle().await;
        app.plane.script().lock().rollout = 365 * DAY;
        let running = change(&app, id, json!({ "description": "x" })).await;
        app.settle().await;
        app.advance(90 * DAY);
        let tidy = async || podium_app::maintenance::once(&app.app).await.expect("it tidies");
        tidy().await;
        read(&app, &ended).await;
        app.advance(Duration::from_millis(1));
        tidy().await;
        app.get(&app.owner, &path(&app, &ended)).await.refused(404);
        read(&app, &running).await;
    }

    async fn what_is_needed_to_undo_an_operation_is_neither_shown_nor_kept(app) {
        let workspace = app.workspace("Data").await;
        let variables = json!([{ "key": "TOKEN", "value": "planted: s3cret", "isSecret": true }]);
        let id = made(&app, workspace, json!({ "environmentVariables": variables })).await;
        let operation = change(&app, id, json!({ "description": "x" })).await;
        let stored = app.column("operations", id_of(&operation), "undo IS NOT NULL").await;
        assert!(["1", "true"].contains(&stored.as_str()));
        assert!(!String::from_utf8_lossy(&app.stored().await).contains("planted: s3cret"));
        assert!(!read(&app, &operation).await.to_string().contains("TOKEN"));
        app.settle().await;
        assert_eq!(app.rows("operations WHERE undo IS NOT NULL").await, 0);
    }
}
