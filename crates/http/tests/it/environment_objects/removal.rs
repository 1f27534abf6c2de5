//! What becomes of objects when what they belong to goes away or moves.

use podium_domain::Scope;
use podium_store::environment_objects;
use podium_testkit::on_both_engines;
use serde_json::json;

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
        let scope = Scope::for_server(app.organization_id);
        let removed = app.app.db.write(None, move |tx| environment_objects::delete_of_deployment(tx, &scope, gone));
        removed.await.expect("they can be removed");
        assert_eq!(keys(&app, &app.owner, "sorts=objectKey:asc").await, ["KEPT", "LINKED", "STAYS"]);
        assert_eq!(app.get(&app.owner, &app.path("/environment-objects?limit=0")).await.ok()["totalCount"], 3);
        let left = read(&app, &linked).await["links"].clone();
        assert_eq!(left, json!([with(to(stays), json!({ "setFields": [] }))]));
        assert_eq!(read(&app, &kept).await["excludeLinks"], json!([]));
    }

    async fn a_deployment_that_moves_leaves_the_links_of_its_workspace_behind(app) {
        let (old, new) = (app.workspace("Old").await, app.workspace("New").await);
        let moves = app.deployment(old).await;
        let linked = made(&app, with(variable("LINKED", old, "v"), json!({ "links": [to(moves)] }))).await;
        made(&app, with(variable("AUTO", new, "v"), json!({ "autoLinkDeployments": true }))).await;
        made(&app, variable_of(moves, "OWN", "v")).await;
        let done: podium_db::Result<()> =
            app.app.db.write(None, move |tx| environment_objects::leave_workspace(tx, moves)).await;
        done.expect("it can leave");
        app.set_column("deployments", moves, "workspace_id", &format!("'{new}'")).await;
        assert_eq!(read(&app, &linked).await["links"], json!([]));
        let resolved = format!("resolveLinked=true&deploymentId={moves}&sorts=objectKey:asc");
        assert_eq!(keys(&app, &app.owner, &resolved).await, ["AUTO", "OWN"]);
        assert_eq!(keys(&app, &app.owner, &format!("workspaceId={new}&deploymentId={moves}")).await, ["OWN"]);
    }
}
