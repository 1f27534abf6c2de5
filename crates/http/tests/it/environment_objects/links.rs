//! Links: whom an object of a workspace reaches, and that its changes reach them too.

use podium_api::{DeploymentId, Id};
use podium_testkit::{TestApp, on_both_engines};
use serde_json::{Value, json};

use super::{create, made, path, read, to, variable, variable_of, with};

fn link(deployment: DeploymentId, overrides: Value) -> Value {
    let mut link = to(deployment);
    link["overrides"] = overrides;
    link
}

async fn exclude(app: &TestApp, at: &str, deployment: DeploymentId) -> podium_testkit::Answer {
    app.post(&app.owner, &format!("{at}/exclude-linking"), to(deployment)).await
}

/// Which of these deployments something is being rolled out to; they are settled again.
async fn rolled_out(app: &TestApp, deployments: &[DeploymentId]) -> Vec<usize> {
    let mut rolled = Vec::new();
    for (index, id) in deployments.iter().enumerate() {
        let (scope, id) = (app.scope(), *id);
        let row = app
            .app
            .db(&app.system)
            .read(None, move |conn| podium_store::deployments::get(conn, &scope, id))
            .await;
        let row = row.expect("it reads").expect("it is there");
        if row.generation > 1 {
            assert_eq!(row.status.as_str(), "DEPLOYING");
            assert!(row.status_reason.as_str().contains("environment object `KEY`"), "{}", row.status_reason);
            rolled.push(index);
            app.set_column("deployments", id, "generation", "1").await;
        }
    }
    rolled
}

on_both_engines! {
    async fn links_name_deployments_of_the_same_workspace_once(app) {
        let workspace = app.workspace("Data").await;
        let (one, two) = (app.deployment(workspace).await, app.deployment(workspace).await);
        let elsewhere = app.deployment(app.workspace("Other").await).await;
        for (more, wrong) in [
            (json!({ "links": [to(elsewhere)] }), "links[0].scopeEntityId: unknown"),
            (json!({ "links": [to(one), to(app.world.id())] }), "links[1].scopeEntityId: unknown"),
            (json!({ "excludeLinks": [to(elsewhere)] }), "excludeLinks[0].scopeEntityId: unknown"),
            (json!({ "links": [to(one), to(one)] }), "links[1].scopeEntityId: duplicate"),
            (json!({ "links": [to(two)], "excludeLinks": [to(one), to(two)] }), "links[0].scopeEntityId: conflict"),
            (json!({ "links": [json!({ "scope": "WORKSPACE", "scopeEntityId": one })] }), "links[0].scope: enum"),
            (json!({ "links": [link(one, json!({ "connection": { "host": "h" } }))] }), "links[0].overrides.connection: excluded"),
        ] {
            let answer = create(&app, &app.owner, with(variable("KEY", workspace, "v"), more.clone())).await;
            assert_eq!(answer.wrong_fields(), [wrong], "{more}");
        }
        let at = made(&app, with(variable("KEY", workspace, "v"), json!({
            "autoLinkDeployments": true, "links": [to(one)], "excludeLinks": [to(two)],
        }))).await;
        let shown = read(&app, &at).await;
        assert_eq!(shown["autoLinkDeployments"], true);
        assert_eq!(shown["links"], json!([with(to(one), json!({ "setFields": [] }))]));
        assert_eq!(shown["excludeLinks"], json!([to(two)]));
    }

    async fn an_object_of_a_deployment_takes_no_links(app) {
        let workspace = app.workspace("Data").await;
        let (one, two) = (app.deployment(workspace).await, app.deployment(workspace).await);
        let links = json!({ "links": [to(two)], "excludeLinks": [to(two)], "autoLinkDeployments": true });
        let wrong = ["links: excluded", "excludeLinks: excluded", "autoLinkDeployments: excluded"];
        let answer = create(&app, &app.owner, with(variable_of(one, "KEY", "v"), links.clone())).await;
        assert_eq!(answer.wrong_fields(), wrong);
        let at = made(&app, with(variable_of(one, "KEY", "v"), json!({ "links": [], "autoLinkDeployments": false }))).await;
        assert_eq!(app.post(&app.owner, &at, links).await.wrong_fields(), wrong);
        let message = exclude(&app, &at, two).await.refused(405);
        assert_eq!(message, "An environment object of a deployment has no links, so nothing can be excluded.");
    }

    async fn overrides_are_set_kept_and_unset(app) {
        let workspace = app.workspace("Data").await;
        let one = app.deployment(workspace).await;
        let connection = json!({
            "objectKey": "KEY", "objectType": "CONNECTION", "scope": "WORKSPACE", "scopeEntityId": workspace,
            "connection": { "type": "http", "host": "base" },
            "links": [link(one, json!({ "connection": { "host": "own", "password": "p", "extra": { "a": "1", "b": "2" } } }))],
        });
        let at = made(&app, connection).await;
        let set = async |overrides: Value| {
            let answer = app.post(&app.owner, &at, json!({ "links": [link(one, overrides)] })).await;
            answer.ok()["links"][0]["setFields"].clone()
        };
        assert_eq!(set(json!({})).await, json!(["host", "password", "extra.a", "extra.b"]));
        assert_eq!(set(json!({ "unsetFields": ["host", "extra.a"] })).await, json!(["password", "extra.b"]));
        assert_eq!(set(json!({ "connection": { "port": 1, "password": "" } })).await, json!(["port", "password", "extra.b"]));
        for (overrides, wrong) in [
            (json!({ "connection": { "port": 2 }, "unsetFields": ["port"] }), "links[0].overrides.unsetFields[0]: conflict"),
            (json!({ "unsetFields": ["password", "color"] }), "links[0].overrides.unsetFields[1]: unknown"),
            (json!({ "unsetFields": vec!["host"; 101] }), "links[0].overrides.unsetFields: maxItems"),
        ] {
            let answer = app.post(&app.owner, &at, json!({ "links": [link(one, overrides)] })).await;
            assert_eq!(answer.wrong_fields(), [wrong]);
        }
        assert_eq!(set(json!({ "unsetFields": ["extra", "password", "port"] })).await, json!([]));
        assert_eq!(read(&app, &at).await["links"][0].get("connectionOverrides"), None);
    }

    async fn an_update_replaces_the_lists_that_it_gives_and_no_others(app) {
        let workspace = app.workspace("Data").await;
        let (one, two) = (app.deployment(workspace).await, app.deployment(workspace).await);
        let at = made(&app, with(variable("KEY", workspace, "v"), json!({
            "links": [link(one, json!({ "environmentVariable": { "value": "own" } }))], "excludeLinks": [to(two)],
        }))).await;
        let update = async |change: Value| app.post(&app.owner, &at, change).await;
        let before = update(json!({ "description": "d" })).await.ok();
        assert_eq!(before["links"][0]["environmentVariableOverrides"], json!({ "value": "own" }));
        assert_eq!(update(json!({ "links": [to(two)] })).await.wrong_fields(), ["links[0].scopeEntityId: conflict"]);
        assert_eq!(update(json!({ "excludeLinks": [to(one)] })).await.wrong_fields(), ["excludeLinks[0].scopeEntityId: conflict"]);
        let after = update(json!({ "links": [to(one), to(two)], "excludeLinks": [] })).await.ok();
        assert_eq!(after["links"][0]["environmentVariableOverrides"], json!({ "value": "own" }));
        assert_eq!(after["links"][1], with(to(two), json!({ "setFields": [] })));
        let after = update(json!({ "links": [] })).await.ok();
        assert_eq!((&after["links"], &after["excludeLinks"]), (&json!([]), &json!([])));
    }

    async fn excluding_is_idempotent_and_drops_a_link(app) {
        let workspace = app.workspace("Data").await;
        let one = app.deployment(workspace).await;
        let at = made(&app, with(variable("KEY", workspace, "v"), json!({ "links": [to(one)] }))).await;
        let version = async || app.get(&app.owner, &at).await.header("etag").split('-').next().unwrap().to_owned();
        let mut versions = vec![version().await];
        for _ in 0..2 {
            let answer = exclude(&app, &at, one).await;
            assert_eq!((answer.code(), answer.bytes.len()), (200, 0));
            versions.push(version().await);
        }
        assert_eq!(versions, ["\"1", "\"2", "\"2"]);
        let shown = read(&app, &at).await;
        assert_eq!((&shown["links"], &shown["excludeLinks"]), (&json!([]), &json!([to(one)])));
        let elsewhere = app.deployment(app.workspace("Other").await).await;
        assert_eq!(exclude(&app, &at, elsewhere).await.wrong_fields(), ["scopeEntityId: unknown"]);
        exclude(&app, &path(&app, app.world.id::<Id>().as_str()), one).await.refused(404);
    }

    async fn a_change_is_rolled_out_to_the_deployments_that_it_affects(app) {
        let workspace = app.workspace("Data").await;
        let all = [app.deployment(workspace).await, app.deployment(workspace).await, app.deployment(workspace).await];
        let [one, two, _] = all;
        let at = made(&app, variable("KEY", workspace, "v")).await;
        assert_eq!(rolled_out(&app, &all).await, [] as [usize; 0], "it reaches nobody yet");
        let steps = [
            (json!({ "links": [to(one)] }), &[0][..]),
            (json!({ "description": "for people" }), &[]),
            (json!({ "autoLinkDeployments": true, "excludeLinks": [to(two)] }), &[2]),
            (json!({ "environmentVariable": { "value": "w" } }), &[0, 2]),
            (json!({ "links": [link(one, json!({ "environmentVariable": { "value": "own" } }))] }), &[0]),
            (json!({ "environmentVariable": { "value": "x" } }), &[2]),
            (json!({ "excludeLinks": [] }), &[1]),
            (json!({ "links": [] }), &[0]),
        ];
        for (change, expected) in steps {
            app.post(&app.owner, &at, change.clone()).await.ok();
            assert_eq!(rolled_out(&app, &all).await, expected, "{change}");
        }
        exclude(&app, &at, two).await.ok();
        assert_eq!(rolled_out(&app, &all).await, [1]);
        assert_eq!(app.rows("work").await, 3, "and the loops are told");
        app.delete(&app.owner, &at).await.ok();
        assert_eq!(rolled_out(&app, &all).await, [0, 2]);
        let own = made(&app, variable_of(two, "KEY", "v")).await;
        assert_eq!(rolled_out(&app, &all).await, [1]);
        app.delete(&app.owner, &own).await.ok();
        assert_eq!(rolled_out(&app, &all).await, [1]);
    }

    async fn a_rollout_is_a_change_of_each_deployment_that_it_reaches(app) {
        let workspace = app.workspace("Data").await;
        let (one, two) = (app.deployment(workspace).await, app.deployment(workspace).await);
        app.deployment(workspace).await;
        let logged = async || app.changes_of("deployments").await;
        let of = |id: DeploymentId| format!("{id} {} {workspace} {id} 1", app.organization_id);
        let at = made(&app, with(variable("KEY", workspace, "v"), json!({ "links": [to(one)] }))).await;
        assert_eq!(logged().await, [of(one)]);
        app.post(&app.owner, &at, json!({ "description": "said better" })).await.ok();
        assert_eq!(logged().await, [of(one)], "nothing is rolled out");
        app.post(&app.owner, &at, json!({ "links": [to(one), to(two)] })).await.ok();
        assert_eq!(logged().await, [of(one), of(two)]);
        app.post(&app.owner, &at, json!({ "environmentVariable": { "value": "w" } })).await.ok();
        let mut all = logged().await;
        all[2..].sort();
        assert_eq!(all, [of(one), of(two), of(one), of(two)]);
    }
}
