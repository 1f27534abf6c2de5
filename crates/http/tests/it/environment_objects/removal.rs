//! What becomes of objects when what they belong to goes away or moves.

use podium_testkit::on_both_engines;
use serde_json::json;

use crate::deployments::update;

use super::{keys, made, read, to, variable, variable_of, with};

on_both_engines! {
    async fn a_workspace_takes_its_objects_with_it(app) {
        let (gone, stays) = (app.workspace("Gone").await, app.workspace("Stays").await);
        let at = made(&app, variable("GONE", gone, "v")).await;
        made(&app, variable("STAYS", stays, "v")).await;
        assert_eq!(app.delete(&app.owner, &app.path(&format!("/workspaces/{gone}"))).await.code(), 204);
        app.get(&app.owner, &at).await.refused(404);
        assert_eq!(keys(&app, &app.owner, "").await, ["STAYS"]);
        let page = app.get(&app.owner, &app.path("/environment-objects")).await.ok();
        assert_eq!(page["totalCount"], 1);
    }

    async fn a_deployment_takes_its_objects_and_links_with_it(app) {
        let workspace = app.workspace("Data").await;
        let (gone, stays) = (app.deployment(workspace).await, app.deployment(workspace).await);
        made(&app, variable_of(gone, "GONE", "v")).await;
        made(&app, variable_of(stays, "STAYS", "v")).await;
        let linked = made(&app, with(variable("LINKED", workspace, "v"), json!({ "links": [to(gone), to(stays)] }))).await;
        let kept = made(&app, with(variable("KEPT", workspace, "v"), json!({ "excludeLinks": [to(gone)] }))).await;
        app.delete(&app.owner, &app.path(&format!("/deployments/{gone}"))).await.ok();
        assert_eq!(keys(&app, &app.owner, "sorts=objectKey:asc").await, ["KEPT", "LINKED", "STAYS"]);
        assert_eq!(app.get(&app.owner, &app.path("/environment-objects?limit=0")).await.ok()["totalCount"], 3);
        let left = read(&app, &linked).await["links"].clone();
        assert_eq!(left, json!([with(to(stays), json!({ "setFields": [] }))]));
        assert_eq!(read(&app, &kept).await["excludeLinks"], json!([]));
    }

    async fn a_deployment_that_moves_leaves_the_links_of_its_workspace_behind(app) {
        let (old, new) = (app.workspace("Old").await, app.workspace("New").await);
        let (moves, stays) = (app.deployment(old).await, app.deployment(old).await);
        let both = json!({ "links": [to(moves), to(stays)] });
        let linked = made(&app, with(variable("LINKED", old, "v"), both)).await;
        let barred = made(&app, with(variable("BARRED", old, "v"), json!({ "excludeLinks": [to(moves)] }))).await;
        made(&app, with(variable("FOR_ALL_OF_OLD", old, "v"), json!({ "autoLinkDeployments": true }))).await;
        made(&app, with(variable("FOR_ALL_OF_NEW", new, "v"), json!({ "autoLinkDeployments": true }))).await;
        made(&app, variable_of(moves, "OWN", "v")).await;
        let resolved = format!("resolveLinked=true&deploymentId={moves}&sorts=objectKey:asc");
        assert_eq!(keys(&app, &app.owner, &resolved).await, ["FOR_ALL_OF_OLD", "LINKED", "OWN"]);
        let at = app.path(&format!("/deployments/{moves}"));
        let body = update(&read(&app, &at).await, json!({ "workspaceId": new }));
        app.post(&app.owner, &at, body).await.ok();
        assert_eq!(keys(&app, &app.owner, &resolved).await, ["FOR_ALL_OF_NEW", "OWN"]);
        assert_eq!(keys(&app, &app.owner, &format!("workspaceId={new}&deploymentId={moves}")).await, ["OWN"]);
        let left = read(&app, &linked).await["links"].clone();
        assert_eq!(left, json!([with(to(stays), json!({ "setFields": [] }))]));
        assert_eq!(read(&app, &barred).await["excludeLinks"], json!([]));
        let again = app.post(&app.owner, &linked, json!({ "links": [to(moves)] })).await;
        assert_eq!(again.wrong_fields(), ["links[0].scopeEntityId: unknown"], "it is elsewhere now");
    }
}
