//! Deploys beside each other: what differs between any two that ran.

use podium_api::DeploymentId;
use podium_api::deploy_reports::{ReportedChanges, RolloutReport};
use podium_testkit::{TestApp, archive, on_one_engine};
use serde_json::{Value, json};

use super::{Person, deployment};

/// Deploys something, and returns the deploy; it goes live when the loops run.
pub(super) async fn deployed(app: &TestApp, id: DeploymentId, description: &str) -> Value {
    let path = app.path(&format!("/deployments/{id}/deploys"));
    let made =
        app.post(&app.owner, &path, json!({ "type": "DAG_ONLY", "description": description })).await.ok();
    let target = made["dagsUploadUrl"].as_str().unwrap().strip_prefix("https://podium.test").unwrap();
    let uploaded =
        app.call("PUT", target).body(archive(&[("dags/a.py", description.as_bytes())])).send().await;
    assert_eq!(uploaded.code(), 201, "{}", uploaded.text());
    let body = json!({ "dagTarballVersion": uploaded.header("x-ms-version-id") });
    app.post(&app.owner, &format!("{path}/{}/finalize", made["id"].as_str().unwrap()), body).await.ok()
}

/// What a rollout found about files.
fn changed(added: &[&str], changed: &[&str], removed: &[&str]) -> RolloutReport {
    let names = |of: &[&str]| of.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let count = |of: &[&str]| u64::try_from(of.len()).unwrap();
    let changes = ReportedChanges {
        added: names(added),
        changed: names(changed),
        removed: names(removed),
        added_count: count(added),
        changed_count: count(changed),
        removed_count: count(removed),
    };
    RolloutReport { files: Some(changes.clone()), dags: Some(changes), ..RolloutReport::default() }
}

on_one_engine! {
    async fn any_two_deploys_are_compared(app) {
        let id: DeploymentId = deployment(&app, "nightly").await["id"].as_str().unwrap().parse().unwrap();
        app.settle().await;
        let first = RolloutReport { is_parsed: Some(false), ..changed(&["a.py", "b.py"], &[], &[]) };
        let reports = [first, changed(&["c.py"], &["a.py"], &[]), changed(&[], &[], &["b.py", "c.py"])];
        let mut ids = Vec::new();
        for (at, report) in reports.into_iter().enumerate() {
            let made = deployed(&app, id, &format!("number {at}")).await;
            ids.push(made["id"].as_str().unwrap().to_owned());
            app.report_rollout(id, ids[at].parse().unwrap(), report).await;
            app.settle().await;
            app.advance(std::time::Duration::from_secs(60));
        }
        let person = Person::new(&app, &app.owner).await;
        let list = person.page(&format!("/deployments/{id}/deploys")).await;
        assert!(list.contains(&format!("compare?from={}&#38;to={}", ids[1], ids[2])), "{list}");
        assert!(list.contains(&format!("<option value=\"{}\" selected>", ids[2])), "the newest two are chosen: {list}");
        let compare = async |from: &str, to: &str| {
            let page = person.page(&format!("/deployments/{id}/deploys/compare?from={from}&to={to}")).await;
            let squeezed: String = page.split_whitespace().collect::<Vec<_>>().join(" ");
            (["added", "changed", "removed"].map(|word| names(&page, word)), squeezed)
        };
        let (differs, page) = compare(&ids[0], &ids[2]).await;
        assert_eq!(differs, ["", "a.py", "b.py"], "{page}");
        assert!(page.contains("2 rollouts combined") && page.contains("number 0") && page.contains("number 2"), "{page}");
        assert_eq!(compare(&ids[2], &ids[0]).await.0, ["b.py", "a.py", ""], "backwards");
        assert_eq!(compare(&ids[1], &ids[2]).await.0, ["", "", "b.py c.py"]);
        assert!(compare(&ids[1], &ids[1]).await.1.contains("Both are the same deploy."));
        assert!(compare("nothing", &ids[1]).await.1.contains("Choose two deploys of this deployment."));
        let path = app.path(&format!("/deployments/{id}/deploys"));
        for _ in 0..205 {
            app.post(&app.owner, &path, json!({ "type": "DAG_ONLY" })).await.ok();
        }
        let (differs, page) = compare(&ids[0], &ids[2]).await;
        assert_eq!(differs, ["", "a.py", "b.py"], "those before the newest 200 are compared too: {page}");
        assert!(page.contains(&format!("<option value=\"{}\" selected>", ids[0])), "{page}");
        let newest = app.get(&app.owner, &format!("{path}?limit=1")).await.ok();
        let (_, page) = compare(&ids[0], newest["deploys"][0]["id"].as_str().unwrap()).await;
        assert!(page.contains("More than 40 deploys lie between these two"), "{page}");
        let waiting = deployed(&app, id, "not live yet").await;
        let (_, page) = compare(newest["deploys"][0]["id"].as_str().unwrap(), waiting["id"].as_str().unwrap()).await;
        assert!(page.contains("there is nothing to compare"), "{page}");
        let page = person.page(&format!("/deployments/{id}/deploys/{}", ids[0])).await;
        assert!(page.contains("Roll back to this deploy…"), "{page}");
        assert!(page.contains("Airflow had not read every file of this version in time"), "{page}");
        let page = person.page(&format!("/deployments/{id}/deploys/{}", ids[1])).await;
        assert!(!page.contains("Airflow had not read"), "{page}");
        let nobody = Person::new(&app, &app.member("nobody").await).await;
        let refused = nobody.read(&format!("/deployments/{id}/deploys/compare?from={}&to={}", ids[0], ids[1])).await;
        assert!([403, 404].contains(&refused.code()), "{}", refused.text());
    }
}

/// The files of a group of changes.
fn names(page: &str, word: &str) -> String {
    let files =
        page.split("<h3>Files</h3>").nth(1).and_then(|rest| rest.split("<h3>").next()).unwrap_or_default();
    let group =
        files.split(&format!("class=\"row {word}\"")).nth(1).and_then(|rest| rest.split("</details>").next());
    let group = group.unwrap_or_default().split("<code>").skip(1);
    group.filter_map(|rest| rest.split('<').next()).collect::<Vec<_>>().join(" ")
}
