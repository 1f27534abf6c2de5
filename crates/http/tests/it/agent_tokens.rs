//! `/organizations/{organizationId}/deployments/{deploymentId}/agent-tokens`

use std::time::Duration;

use podium_api::Id;
use podium_testkit::{Actor, Answer, TestApp, on_both_engines};
use serde_json::{Value, json};

fn all(app: &TestApp, deployment: Id) -> String {
    app.path(&format!("/deployments/{deployment}/agent-tokens"))
}

/// A deployment whose tasks run elsewhere.
async fn remote(app: &TestApp, workspace: Id) -> Id {
    let id = app.deployment(workspace).await;
    let elsewhere = json!({ "allowedIpAddressRanges": [], "taskLogBucket": null, "taskLogUrlPattern": null });
    let spec = app.column("deployments", id, "spec").await;
    let changed = spec.replace("\"remoteExecution\":null", &format!("\"remoteExecution\":{elsewhere}"));
    assert_ne!(changed, spec);
    app.set_column("deployments", id, "spec", &format!("'{changed}'")).await;
    id
}

async fn create(app: &TestApp, deployment: Id, body: Value) -> Answer {
    app.post(&app.owner, &all(app, deployment), body).await
}

/// Who calls with a token that was just made.
fn bearer(answer: &Answer) -> Actor {
    let token = answer.ok()["token"].as_str().expect("the value is shown").to_owned();
    Actor { id: answer.id().parse().unwrap(), token }
}

on_both_engines! {
    async fn agent_tokens_are_made_where_tasks_run_elsewhere(app) {
        let workspace = app.workspace("Data").await;
        let here = app.deployment(workspace).await;
        assert_eq!(
            create(&app, here, json!({ "name": "agent" })).await.refused(400),
            "The deployment has no remote execution: enable `remoteExecution` first."
        );
        let elsewhere = remote(&app, workspace).await;
        assert_eq!(create(&app, elsewhere, json!({ "name": "agent" })).await.code(), 200);
        let nowhere = create(&app, app.world.id(), json!({ "name": "agent" })).await;
        assert_eq!(nowhere.refused(404), "There is no such deployment, or you may not see it.");
    }

    async fn an_agent_token_is_created_listed_read_and_deleted(app) {
        let workspace = app.workspace("Data").await;
        let (id, other) = (remote(&app, workspace).await, remote(&app, workspace).await);
        let made = create(&app, id, json!({ "name": " agent ", "tokenExpiryPeriodInDays": 30 })).await;
        let value = bearer(&made).token;
        let shown = made.ok();
        assert_eq!((&shown["name"], &shown["scope"]), (&json!("agent"), &json!("DEPLOYMENT")));
        assert_eq!(shown["shortToken"], json!(&value[value.len() - 6..]));
        assert_eq!(shown["endAt"], "2027-02-14T08:00:00.000Z");
        let at = format!("{}/{}", all(&app, id), made.id());
        let mut expected = shown;
        expected.as_object_mut().unwrap().remove("token");
        assert_eq!(app.get(&app.owner, &at).await.ok(), expected);
        let list = app.get(&app.owner, &all(&app, id)).await.ok();
        assert_eq!(list, json!({ "tokens": [expected], "limit": 20, "offset": 0, "totalCount": 1 }));
        assert_eq!(app.get(&app.owner, &all(&app, other)).await.ok()["totalCount"], 0);
        let below_another = format!("{}/{}", all(&app, other), made.id());
        assert_eq!(app.get(&app.owner, &below_another).await.code(), 404);
        assert_eq!(app.delete(&app.owner, &below_another).await.code(), 404);
        let taken = create(&app, id, json!({ "name": "AGENT" })).await.refused(409);
        assert_eq!(taken, "The deployment has an agent token named `AGENT` already: choose another name.");
        assert_eq!(app.delete(&app.owner, &at).await.code(), 204);
        assert_eq!(app.get(&app.owner, &at).await.code(), 404);
    }

    async fn an_agent_token_opens_nothing_else(app) {
        let id = remote(&app, app.workspace("Data").await).await;
        let made = create(&app, id, json!({ "name": "agent", "tokenExpiryPeriodInDays": 1 })).await;
        let agent = bearer(&made);
        let paths = [
            "/v1/users/self".to_owned(),
            "/v1/organizations".to_owned(),
            app.path(""),
            app.path("/workspaces"),
            app.path(&format!("/deployments/{id}")),
            all(&app, id),
        ];
        for path in &paths {
            assert_eq!(
                app.get(&agent, path).await.refused(403),
                "This is an agent token: it opens the agent endpoints of its deployment and nothing else.",
                "{path}"
            );
        }
        assert_eq!(app.get(&app.owner, &app.path("/tokens")).await.ok()["totalCount"], 0, "it is no API token");
        app.delete(&app.owner, &format!("{}/{}", all(&app, id), made.id())).await.ok();
        assert!(app.get(&agent, "/v1/users/self").await.refused(401).contains("revoked"));
        let lapsing = bearer(&create(&app, id, json!({ "name": "other", "tokenExpiryPeriodInDays": 1 })).await);
        app.advance(Duration::from_hours(24));
        assert!(app.get(&lapsing, "/v1/users/self").await.refused(401).contains("expired"));
    }
}
