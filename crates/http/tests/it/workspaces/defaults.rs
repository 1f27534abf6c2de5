//! Where new deployments of a workspace go unless they say otherwise.

use podium_api::Id;
use podium_testkit::on_both_engines;
use serde_json::{Value, json};

use super::{path, update};

fn defaults(workspace: &Value) -> [Value; 3] {
    ["defaultClusterId", "defaultCloudProvider", "defaultRegion"].map(|field| workspace[field].clone())
}

on_both_engines! {
    async fn a_new_workspace_has_a_cluster_or_provider_and_region_or_neither(app) {
        let all = app.path("/workspaces");
        let (cluster, absent) = (app.cluster(&[]).await, app.world.id::<Id>());
        for (index, (body, wrong)) in [
            (json!({ "defaultCloudProvider": "AWS" }), vec!["defaultRegion: required"]),
            (json!({ "defaultRegion": "eu-west-1" }), vec!["defaultCloudProvider: required"]),
            (
                json!({ "defaultClusterId": cluster, "defaultCloudProvider": "AWS", "defaultRegion": "eu-west-1" }),
                vec!["defaultCloudProvider: excluded", "defaultRegion: excluded"],
            ),
            (json!({ "defaultClusterId": cluster, "defaultRegion": "x" }), vec!["defaultRegion: excluded"]),
            (json!({ "defaultClusterId": absent }), vec!["defaultClusterId: notFound"]),
            (json!({ "defaultClusterId": "no id" }), vec!["defaultClusterId: format"]),
            (json!({ "defaultCloudProvider": "aws", "defaultRegion": "x" }), vec!["defaultCloudProvider: enum"]),
            (json!({ "defaultCloudProvider": "AWS", "defaultRegion": "x".repeat(101) }), vec!["defaultRegion: maxLength"]),
            (json!({ "defaultClusterId": cluster }), vec![]),
            (json!({ "defaultCloudProvider": "AZURE", "defaultRegion": "westeurope" }), vec![]),
            (json!({ "defaultCloudProvider": "GCP", "defaultRegion": "europe-west4", "defaultClusterId": "" }), vec![]),
            (json!({ "defaultCloudProvider": "", "defaultRegion": "", "defaultClusterId": "" }), vec![]),
            (json!({ "defaultCloudProvider": null, "defaultRegion": null, "defaultClusterId": null }), vec![]),
        ].into_iter().enumerate() {
            let mut request = body.clone();
            request["name"] = format!("Workspace {index}").into();
            let answer = app.post(&app.owner, &all, request).await;
            if !wrong.is_empty() {
                assert_eq!(answer.wrong_fields(), wrong, "{body}");
                continue;
            }
            let given = defaults(&body).map(|value| if value == "" { Value::Null } else { value });
            assert_eq!(defaults(&answer.ok()), given, "{body}");
        }
    }

    async fn absent_keeps_and_null_or_empty_clears(app) {
        let at = path(&app, app.workspace("Data").await);
        let cluster = app.cluster(&[]).await;
        let none = [Value::Null, Value::Null, Value::Null];
        let west = [Value::Null, json!("AWS"), json!("us-west-2")];
        let own = [json!(cluster), Value::Null, Value::Null];
        for (change, after) in [
            (json!({ "defaultCloudProvider": "AWS", "defaultRegion": "us-west-2" }), Ok(&west)),
            (json!({}), Ok(&west)),
            (json!({ "defaultRegion": null }), Err(vec!["defaultRegion: required"])),
            (json!({ "defaultCloudProvider": "" }), Err(vec!["defaultCloudProvider: required"])),
            (
                json!({ "defaultClusterId": cluster }),
                Err(vec!["defaultCloudProvider: excluded", "defaultRegion: excluded"]),
            ),
            (
                json!({ "defaultClusterId": cluster, "defaultCloudProvider": "", "defaultRegion": "" }),
                Ok(&own),
            ),
            (json!({}), Ok(&own)),
            (json!({ "defaultClusterId": null }), Ok(&none)),
            (json!({ "defaultClusterId": cluster }), Ok(&own)),
            (json!({ "defaultClusterId": "" }), Ok(&none)),
            (json!({ "defaultCloudProvider": "AWS", "defaultRegion": "us-west-2" }), Ok(&west)),
            (json!({ "defaultCloudProvider": null, "defaultRegion": null }), Ok(&none)),
            (
                json!({ "defaultCloudProvider": "AWS", "defaultRegion": "x".repeat(101) }),
                Err(vec!["defaultRegion: maxLength"]),
            ),
        ] {
            let answer = app.post(&app.owner, &at, update("Data", change.clone())).await;
            match after {
                Ok(after) => {
                    assert_eq!(&defaults(&answer.ok()), after, "{change}");
                    assert_eq!(&defaults(&app.get(&app.owner, &at).await.ok()), after, "{change}");
                }
                Err(wrong) => assert_eq!(answer.wrong_fields(), wrong, "{change}"),
            }
        }
    }

    async fn the_default_cluster_exists_and_admits_the_workspace(app) {
        let (inside, outside) = (app.workspace("Inside").await, app.workspace("Outside").await);
        let cluster = app.cluster(&[inside]).await;
        let foreign = app.cluster(&[]).await;
        app.set_column("clusters", foreign, "organization_id", "'elsewhere'").await;
        for (workspace, cluster, wrong) in [
            (inside, cluster, vec![]),
            (outside, cluster, vec!["defaultClusterId: notFound"]),
            (inside, foreign, vec!["defaultClusterId: notFound"]),
        ] {
            let body = update(&format!("{workspace}"), json!({ "defaultClusterId": cluster }));
            let answer = app.post(&app.owner, &path(&app, workspace), body).await;
            if wrong.is_empty() {
                assert_eq!(answer.ok()["defaultClusterId"], json!(cluster));
            } else {
                assert_eq!(answer.wrong_fields(), wrong);
            }
        }
    }
}
