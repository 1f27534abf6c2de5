//! What is served for long ends with the caller's rights.

use std::time::Duration;

use podium_api::enums::OrganizationRole;
use podium_domain::On;
use podium_testkit::{Actor, TestApp, on_both_engines, role};
use serde_json::json;

/// More than an export reads at once.
const RECORDS: usize = 1200;

async fn add_records(app: &TestApp) {
    let system = app.system;
    let ids: Vec<_> = (0..RECORDS).map(|_| app.world.id()).collect();
    let (organization_id, now) = (Some(app.organization_id), app.world.now());
    let added = app.app.db(&app.system).write(None, move |tx| {
        ids.iter()
            .try_for_each(|id| podium_store::audit::insert(tx, &system, organization_id, now, *id, "{}"))
    });
    added.await.unwrap_or_else(|error: podium_db::Error| panic!("{error}"));
}

async fn remove(app: &TestApp, actor: &Actor) {
    let path = app.path(&format!("/users/{}/roles", actor.id));
    app.post(&app.owner, &path, json!({ "organizationRole": null })).await.ok();
}

on_both_engines! {
    async fn an_export_of_the_audit_log_breaks_off(app) {
        add_records(&app).await;
        let auditor = app.member_as("auditor", OrganizationRole::Owner).await;
        let export = || app.call("GET", &app.path("/audit-logs")).by(&auditor);
        let mut whole = export().open().await;
        whole.next().await.expect("the first part");
        // What concerns others does not concern it.
        remove(&app, &app.member_as("other", OrganizationRole::Owner).await).await;
        assert!(!whole.is_aborted().await);
        let mut part = export().open().await;
        part.next().await.expect("the first part");
        remove(&app, &auditor).await;
        assert!(part.is_aborted().await);
    }

    async fn an_export_of_the_audit_log_ends_with_the_session(app) {
        let auditor = app.session_of(&app.member_as("auditor", OrganizationRole::Owner).await).await;
        let export = || app.call("GET", &app.path("/audit-logs")).by(&auditor);
        let (session, moment) = (app.app.config.session, Duration::from_millis(1));
        app.advance(session - moment);
        add_records(&app).await;
        let mut whole = export().open().await;
        whole.next().await.expect("the first part");
        assert!(!whole.is_aborted().await);
        let mut part = export().open().await;
        part.next().await.expect("the first part");
        app.advance(moment);
        assert!(part.is_aborted().await);
    }

    async fn a_stream_of_lines_ends_even_without_new_lines(app) {
        let workspace = app.workspace("Data").await;
        let id = app.deployment(workspace).await;
        let reader = app.user_with("reader", vec![
            role(On::Organization, "ORGANIZATION_MEMBER"),
            role(On::Workspace(workspace), "WORKSPACE_MEMBER"),
        ]).await;
        let path = app.path(&format!("/deployments/{id}/logs/follow?sources=worker"));
        let stream = app.call("GET", &path).by(&reader).open().await;
        let (ended, ()) = tokio::join!(stream.is_aborted(), remove(&app, &reader));
        assert!(!ended, "it ends in an orderly way");
    }
}
