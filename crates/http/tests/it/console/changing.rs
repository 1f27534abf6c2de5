//! What the forms of webhooks and environment objects do, and what is kept as a file.

use podium_domain::On;
use podium_testkit::{Receiver, on_both_engines, role};
use serde_json::json;

use super::{Person, deployment, field};
use crate::front_door::visit;

on_both_engines! {
    async fn a_webhook_is_made_changed_and_its_secret_shown_once(app) {
        let person = Person::new(&app, &app.owner).await;
        let receiver = Receiver::start().await;
        let address = receiver.url().replace(':', "%3A").replace('/', "%2F");
        let wrong = person.send("/webhooks", "name=pager&url=nowhere&eventTypes=").await;
        assert!(wrong.code() == 400 && wrong.text().contains("id=\"url-wrong\""), "{}", wrong.text());
        let made = person.send("/webhooks", &format!("name=pager&url={address}&eventTypes=podium.webhook.*&description=")).await;
        assert_eq!(made.code(), 200, "{}", made.text());
        let secret = |text: &str| text.split("id=\"secret\">").nth(1).and_then(|rest| rest.split('<').next()).unwrap().to_owned();
        let first = secret(&made.text());
        let id = app.get(&app.owner, &app.path("/webhooks")).await.ok()["webhooks"][0]["id"].as_str().unwrap().to_owned();
        let here = format!("/webhooks/{id}");
        let page = person.page(&here).await;
        assert!(!page.contains(&first) && page.contains("podium.webhook.*"), "{page}");
        let rotated = person.send(&format!("{here}/rotate"), "").await.text();
        assert_ne!(secret(&rotated), first);
        assert!(person.sent(&format!("{here}/test"), "").await.contains("Sent. The result is below."));
        app.settle().await;
        assert!(person.page(&here).await.contains("Delivered"));
        let again = person.page(&here).await;
        let again = again.split("action=\"").find_map(|rest| rest.split('"').next().filter(|to| to.ends_with("/redeliver"))).unwrap();
        person.sent(again.strip_prefix(&person.home).unwrap(), "").await;
        let version = field(&person.page(&here).await, "version").replace("&#34;", "%22");
        let change = format!("name=pages&url={address}&eventTypes=&description=new&version={version}");
        assert!(person.sent(&here, &change).await.contains("Saved."));
        assert_eq!(person.send(&here, &change).await.code(), 412, "somebody else was faster");
        let read = app.get(&app.owner, &app.path(&here)).await.ok();
        assert_eq!((&read["name"], &read["isEnabled"], &read["eventTypes"]), (&json!("pages"), &json!(false), &json!([])));
        assert!(person.sent(&format!("{here}/delete"), "").await.contains("Deleted."));
        assert_eq!(person.read(&here).await.code(), 404);
    }

    async fn an_environment_object_is_linked_to_other_deployments(app) {
        let person = Person::new(&app, &app.owner).await;
        let made = deployment(&app, "nightly").await;
        let (workspace, id) = (made["workspaceId"].as_str().unwrap(), made["id"].as_str().unwrap());
        let body = json!({ "objectKey": "KEY", "objectType": "ENVIRONMENT_VARIABLE", "scope": "WORKSPACE", "scopeEntityId": workspace,
            "environmentVariable": { "value": "kept", "isSecret": true } });
        let object = app.post(&app.owner, &app.path("/environment-objects"), body).await.ok();
        let here = format!("/environment/{}", object["id"].as_str().unwrap());
        let page = person.page(&here).await;
        assert!(page.contains("no deployments yet") && !page.contains("kept"), "{page}");
        assert!(person.sent(&here, &format!("description=shared&value=&links={id}")).await.contains("Saved."));
        let read = app.get(&app.owner, &app.path(&format!("/environment-objects/{}", object["id"].as_str().unwrap()))).await.ok();
        assert_eq!((&read["links"][0]["scopeEntityId"], &read["description"]), (&json!(id), &json!("shared")));
        assert!(person.page(&here).await.contains("value=\"") && person.page(&here).await.contains("checked>nightly"));
        assert!(person.sent(&here, "description=&value=new&autoLinkDeployments=on").await.contains("every deployment of its workspace"));
        let held = [(On::Organization, "ORGANIZATION_MEMBER"), (On::Workspace(workspace.parse().unwrap()), "WORKSPACE_AUTHOR")];
        let reader = app.user_with("reader", held.into_iter().map(|(on, name)| role(on, name)).collect()).await;
        let reader = Person::new(&app, &reader).await;
        let page = reader.page(&here).await;
        assert!(!page.contains("<form method=\"post\" action=\"/console/"), "who may not change it is not offered to: {page}");
        assert_eq!(reader.page("/environment").await.matches("Create object").count(), 0);
    }

    async fn lines_and_records_are_kept_as_files(app) {
        let person = Person::new(&app, &app.owner).await;
        let id = deployment(&app, "nightly").await["id"].as_str().unwrap().to_owned();
        app.settle().await;
        app.advance(std::time::Duration::from_secs(1));
        let page = person.page(&format!("/deployments/{id}/logs?q=orphaned&sources=scheduler")).await;
        assert!(page.contains(&format!("/deployments/{id}/logs/histogram?q=orphaned&#38;sources=scheduler\"")) && !page.contains("<svg class=\"histogram\""), "the page does not wait for the count: {page}");
        let part = person.page(&format!("/deployments/{id}/logs/histogram?q=orphaned&sources=scheduler")).await;
        assert!(part.contains("class=\"histogram\"") && part.contains("<p class=\"quiet\">1 line</p>") && !part.contains("<html"), "{part}");
        let waited = person.page(&format!("/deployments/{id}/logs?q=orphaned&now=1")).await;
        assert!(waited.contains("class=\"histogram\"") && !waited.contains("<late-part"), "{waited}");
        let none = person.page(&format!("/deployments/{id}/logs/histogram?q=nowhere")).await;
        assert!(!none.contains("<svg") && !none.contains("note"), "{none}");
        let href = |mark: &str| page.split("href=\"").find_map(|rest| rest.split('"').next().filter(|to| to.contains(mark))).unwrap().replace("&#38;", "&");
        let file = visit(&app, &href("/logs/download"), &person.cookie).await;
        assert_eq!((file.code(), file.header("content-disposition")), (200, "attachment; filename=\"lines.log\""));
        assert!(file.header("content-type").starts_with("text/plain") && file.header("x-content-type-options") == "nosniff");
        assert!(file.text().lines().count() == 1 && file.text().contains(" scheduler "), "{}", file.text());
        let line = href("#l");
        let (link, line) = line.split_once('#').unwrap();
        app.advance(std::time::Duration::from_secs(7200));
        let later = person.page(&format!("/deployments/{id}/logs{link}")).await;
        assert!(later.contains(&format!("id=\"{line}\"")), "a link to a line stays good: {later}");
        let export = visit(&app, &format!("{}/audit/export?startDate=2027-01-01T00:00:00Z", person.home), &person.cookie).await;
        assert_eq!((export.code(), export.header("content-disposition")), (200, "attachment; filename=\"audit.jsonl\""));
        assert!(export.text().lines().any(|line| line.contains("CreateDeployment")), "{}", export.text());
        let nobody = Person::new(&app, &app.member("nobody").await).await;
        assert_eq!(visit(&app, &format!("{}/audit/export", person.home), &nobody.cookie).await.code(), 403);
        assert!([403, 404].contains(&visit(&app, &format!("{}/deployments/{id}/logs/follow?sources=scheduler", person.home), &nobody.cookie).await.code()));
    }

    async fn several_deployments_are_changed_at_once_or_not_at_all(app) {
        let person = Person::new(&app, &app.owner).await;
        let workspace = app.workspace("Analytics").await;
        let mut ids = Vec::new();
        for name in ["one", "two", "three"] {
            let body = json!({ "name": name, "workspaceId": workspace, "isDevelopmentMode": name != "three" });
            ids.push(app.post(&app.owner, &app.path("/deployments"), body).await.ok()["id"].as_str().unwrap().to_owned());
        }
        app.settle().await;
        let page = person.page("/deployments").await;
        assert!(page.contains("form=\"bulk\"") && page.contains("aria-label=\"Choose one\""), "{page}");
        for (form, code) in [("action=hibernate", 400), ("action=explode&ids=a", 400), ("action=wake&ids=cm0000000000000000000000a", 404)] {
            assert_eq!(person.send("/deployments/bulk", form).await.code(), code, "{form}");
        }
        let refused = person.send("/deployments/bulk", &format!("action=hibernate&ids={}&ids={}", ids[0], ids[2])).await;
        assert!(refused.code() == 400 && refused.text().contains("three: "), "{}", refused.text());
        let plan = person.send("/deployments/bulk", &format!("action=hibernate&ids={}&ids={}", ids[0], ids[1])).await.text();
        assert!(plan.contains("Hibernate 2 deployments"), "{plan}");
        person.sent("/plans/apply", &format!("plan={}&then={}", field(&plan, "plan"), field(&plan, "then"))).await;
        app.settle().await;
        let status = async |id: &str| app.get(&app.owner, &app.path(&format!("/deployments/{id}"))).await.ok()["status"].clone();
        assert_eq!((status(&ids[0]).await, status(&ids[1]).await, status(&ids[2]).await), (json!("HIBERNATING"), json!("HIBERNATING"), json!("HEALTHY")));
        let plan = person.send("/deployments/bulk", &format!("action=delete&ids={}&ids={}", ids[0], ids[2])).await.text();
        assert!(plan.contains("Delete 2 deployments") && plan.contains("Type delete to continue"), "{plan}");
        assert_eq!(app.get(&app.owner, &app.path("/deployments")).await.ok()["totalCount"], 3, "nothing has happened yet");
        person.sent("/plans/apply", &format!("plan={}&then={}", field(&plan, "plan"), field(&plan, "then"))).await;
        assert_eq!(app.get(&app.owner, &app.path("/deployments")).await.ok()["totalCount"], 1);
    }

    async fn a_cluster_needs_a_name_and_a_region(app) {
        let person = Person::new(&app, &app.owner).await;
        assert!(person.page("/clusters/new").await.contains("value=\"GCP/us-central1\""));
        let wrong = person.send("/clusters", "name=east&region=MOON%2Fnorth&drRegion=").await;
        assert!(wrong.code() == 400 && wrong.text().contains("id=\"region-wrong\""), "{}", wrong.text());
        let made = person.sent("/clusters", "name=east&region=AWS%2Fus-east-1&drRegion=AWS%2Fus-west-2").await;
        assert!(made.contains("Created.") && made.contains("us-east-1"), "{made}");
        let other = person.sent("/clusters", "name=central&region=GCP%2Fus-central1&drRegion=&vpcSubnetRange=&dbInstanceType=").await;
        assert!(other.contains("us-central1"), "{other}");
    }
}
