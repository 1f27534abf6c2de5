//! `/organizations/{organizationId}/deployments`

use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

fn path(app: &TestApp, id: impl std::fmt::Display) -> String {
    app.path(&format!("/deployments/{id}"))
}

on_both_engines! {
    async fn a_name_and_a_workspace_are_enough(app) {
        let workspace = app.workspace("Analytics").await;
        let owner = app.owner.clone();
        let body = json!({ "name": "Reports", "workspaceId": workspace });
        let made = app.post(&owner, &app.path("/deployments"), body).await;
        insta::assert_json_snapshot!(made.ok(), @"");
    }
}
