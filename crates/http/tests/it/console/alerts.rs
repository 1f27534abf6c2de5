//! What the pages of alerts, and of the roles of tokens, do.

use podium_api::DeploymentId;
use podium_domain::{On, Permission};
use podium_testkit::on_one_engine;
use serde_json::{Value, json};

use super::{Person, deployment, field};

on_one_engine! {
    async fn an_alert_is_made_changed_switched_off_and_deleted(app) {
        let person = Person::new(&app, &app.owner).await;
        let id = deployment(&app, "nightly").await["id"].as_str().unwrap().to_owned();
        let hook = app.post(&app.owner, &app.path("/webhooks"), json!({ "name": "pager", "url": "https://127.0.0.1/hook" })).await.ok();
        let hook = hook["id"].as_str().unwrap();
        assert!(person.page("/alerts").await.contains("No alerts"));
        let form = person.page(&format!("/alerts/new?deploymentIds={id}")).await;
        assert!(form.contains(&format!("value=\"{id}\" checked")) && form.contains("A DAG run takes too long"), "{form}");
        let wrong = person.send("/alerts", &format!("name=slow&kind=DAG_RUN_TOO_SLOW&webhookIds={hook}&afterMinutes=soon")).await;
        assert!(wrong.code() == 400 && wrong.text().contains("id=\"afterMinutes-wrong\""), "{}", wrong.text());
        assert!(wrong.text().contains(&format!("value=\"{hook}\" checked")), "what was chosen is kept: {}", wrong.text());
        let made = person.sent("/alerts", &format!("name=slow&kind=DAG_RUN_TOO_SLOW&webhookIds={hook}&afterMinutes=60&dagId=load&deploymentIds={id}")).await;
        for text in ["Created.", "after 60 min, only load", "nightly", "pager", "No firings"] {
            assert!(made.contains(text), "{text}: {made}");
        }
        let stored = async || app.get(&app.owner, &app.path("/alerts")).await.ok()["alerts"][0].clone();
        let alert = stored().await["id"].as_str().unwrap().to_owned();
        let here = format!("/alerts/{alert}");
        let version = field(&person.page(&here).await, "version").replace("&#34;", "%22");
        let change = format!("name=slower&afterMinutes=90&dagId=&description=new&webhookIds={hook}&version={version}");
        assert!(person.sent(&here, &change).await.contains("Saved."));
        let read = stored().await;
        let shown = (&read["name"], &read["afterMinutes"], &read["dagId"], &read["isEnabled"], &read["deploymentIds"]);
        assert_eq!(shown, (&json!("slower"), &json!(90), &Value::Null, &json!(false), &json!([])));
        assert!(person.page("/alerts").await.contains("Off"));
        assert_eq!(person.send(&here, &change).await.code(), 412, "somebody else was faster");
        assert!(person.sent(&format!("{here}/delete"), "").await.contains("Deleted."));
        assert_eq!(person.read(&here).await.code(), 404);
    }

    async fn what_an_alert_has_found_is_shown(app) {
        let id: DeploymentId = deployment(&app, "nightly").await["id"].as_str().unwrap().parse().unwrap();
        app.settle().await;
        let hook = app.post(&app.owner, &app.path("/webhooks"), json!({ "name": "pager", "url": "https://127.0.0.1/hook" })).await.ok();
        let body = json!({ "name": "broken", "kind": "DEPLOYMENT_UNHEALTHY", "afterMinutes": 0, "webhookIds": [hook["id"]] });
        let alert = app.post(&app.owner, &app.path("/alerts"), body).await.ok()["id"].as_str().unwrap().to_owned();
        let down = podium_domain::deployments::plan::Health::Down("its heartbeat is old".into());
        app.plane.script().set_health(id, "scheduler", down);
        for _ in 0..3 {
            crate::webhooks::send(&app).await;
        }
        let person = Person::new(&app, &app.owner).await;
        let page = person.page(&format!("/alerts/{alert}")).await;
        assert!(page.contains("Firing") && page.contains(&format!("/deployments/{id}\">nightly")), "{page}");
        assert!(person.page(&format!("/alerts/{alert}?state=RESOLVED")).await.contains("No firings"));
        let reads = ["organization.get", "organization.alerts.get"];
        let reader = app.holder_of_all("reader", reads.into_iter().map(Permission::known).collect(), On::Organization).await;
        let reader = Person::new(&app, &reader).await;
        let page = reader.page(&format!("/alerts/{alert}")).await;
        assert!(page.contains("nightly") && !page.contains(&format!("/deployments/{id}")), "no link to what one may not see: {page}");
        assert!(!page.contains("<form method=\"post\""), "who may not change it is not offered to: {page}");
        let nobody = Person::new(&app, &app.member("nobody").await).await;
        assert_eq!(nobody.read("/alerts").await.code(), 403);
        assert!(!nobody.page("").await.contains("/alerts\""));
    }

    async fn the_roles_of_a_token_are_changed(app) {
        let person = Person::new(&app, &app.owner).await;
        let (one, two) = (app.workspace("One").await, app.workspace("Two").await);
        let body = json!({ "name": "ci", "scope": "ORGANIZATION", "role": "ORGANIZATION_OWNER" });
        let made = app.post(&app.owner, &app.path("/tokens"), body).await.ok();
        let here = format!("/tokens/{}", made["id"].as_str().unwrap());
        let page = person.page(&here).await;
        assert!(page.contains("The whole organization") && page.contains("Workspace owner on One"), "{page}");
        let version = field(&page, "version").replace("&#34;", "%22");
        let encoded = |kind: &str, id: &str, role: &str| {
            format!("roles=%7B%22entityType%22%3A%22{kind}%22%2C%22entityId%22%3A%22{id}%22%2C%22role%22%3A%22{role}%22%7D")
        };
        let organization = encoded("ORGANIZATION", app.organization_id.as_str(), "ORGANIZATION_MEMBER");
        let space = encoded("WORKSPACE", one.as_str(), "WORKSPACE_OPERATOR");
        let form = format!("version={version}&{organization}&{space}&roles=");
        assert!(person.sent(&format!("{here}/roles"), &form).await.contains("Saved."));
        assert_eq!(person.send(&format!("{here}/roles"), &form).await.code(), 412);
        let page = person.page(&here).await;
        assert!(page.contains("Workspace One") && page.contains("remove this role") && page.contains("on Two") && !page.contains("Workspace owner on One"), "{page}");
        let roles = app.get(&app.owner, &app.path(&here)).await.ok()["roles"].clone();
        assert_eq!(roles.as_array().unwrap().len(), 2, "{roles}");
        let nonsense = format!("roles=nonsense&{}", encoded("WORKSPACE", two.as_str(), "WORKSPACE_OWNER"));
        assert_eq!(person.send(&format!("{here}/roles"), &nonsense).await.code(), 400);
        let wrong = person.send(&format!("{here}/roles"), &encoded("WORKSPACE", two.as_str(), "NO_ROLE")).await;
        assert!(wrong.code() == 400 && wrong.text().contains("roles[0].role"), "{}", wrong.text());
    }
}
