//! The DAGs of a deployment, from an Airflow that answers what a test wants.

use podium_api::{DeploymentId, Timestamp};
use podium_dataplane::Line;
use serde_json::{Value, json};

use super::Site;
use super::environment::Environment;

const ERROR: &str = "Traceback (most recent call last):\n  File \"/dags/returns.py\", line 4, in <module>\n    from warehouse import Returns\nImportError: cannot import name 'Returns' from 'warehouse'";

impl Site {
    /// Puts an Airflow with some DAGs behind a deployment.
    pub(super) fn airflow(&self, id: DeploymentId) -> Environment {
        let environment = self.wait(Environment::behind(&self.app, id, Line::Three));
        let now = self.app.world.now().millis();
        let at = |minutes: i64| Timestamp::from_millis(now + minutes * 60_000).to_string();
        let dag = |id: &str, about: &str, schedule: &str, next: Option<i64>, tags: &[&str]| {
            let tags: Vec<Value> = tags.iter().map(|name| json!({ "name": name })).collect();
            json!({ "dag_id": id, "description": about, "timetable_description": schedule, "is_paused": next.is_none(), "has_import_errors": false,
                "next_dagrun_run_after": next.map(at), "owners": ["data platform"], "tags": tags })
        };
        let mut dags = vec![
            dag("orders", "Orders of the day, by region", "At 02:00", Some(611), &["orders", "daily"]),
            dag(
                "orders_backfill",
                "Loads what was missed",
                "Never, external triggers only",
                None,
                &["orders"],
            ),
            dag("returns", "What came back", "At 03:30", Some(700), &["orders", "daily"]),
            dag("sales", "Sales of every shop", "Every hour", Some(22), &["sales", "hourly", "finance"]),
            dag("stock", "Stock levels of the warehouses", "Every 15 minutes", Some(7), &["stock"]),
        ];
        dags[2]["has_import_errors"] = json!(true);
        let mut runs = Vec::new();
        for (dag, every, count) in
            [("orders", 1440, 9), ("sales", 60, 12), ("stock", 15, 12), ("returns", 1440, 3)]
        {
            for number in 0..count {
                let began = -every * number - 11;
                let state = match (dag, number) {
                    ("stock", 0) => "running",
                    ("orders", 3) | ("sales", 5 | 6) | ("returns", 0) => "failed",
                    _ => "success",
                };
                let end = (state != "running").then(|| at(began + 4));
                runs.push(json!({ "dag_id": dag, "dag_run_id": format!("{dag}-{number}"), "state": state, "run_after": at(began), "start_date": at(began), "end_date": end }));
            }
        }
        let errors = json!([{ "filename": "returns.py", "stack_trace": ERROR, "timestamp": at(-44) }]);
        environment.answer_at("/dags", 200, &json!({ "dags": dags, "total_entries": dags.len() }));
        environment.answer_at(
            "/dagRuns/list",
            200,
            &json!({ "dag_runs": runs, "total_entries": runs.len() }),
        );
        environment.answer_at("/importErrors", 200, &json!({ "import_errors": errors, "total_entries": 1 }));
        environment.answer_at("/sales/dagRuns", 200, &json!({ "dag_run_id": "manual" }));
        environment.answer_at("/sales", 200, &json!({ "dag_id": "sales" }));
        environment
    }
}

#[test]
#[ignore = "takes a browser: cargo xtask console"]
fn dags_come_in_after_the_page_and_are_started_and_paused() {
    let site = Site::start();
    let workspace = site.wait(site.app.workspace("Analytics"));
    let made = site.make("/deployments", json!({ "name": "nightly", "workspaceId": workspace }));
    let id: DeploymentId = super::id_of(&made).parse().expect("an id");
    site.settle();
    let browser = site.browser();
    browser.open(&site.page(&format!("/deployments/{id}/dags")));
    browser.wait_for_text("Airflow is not available now");

    let environment = site.airflow(id);
    browser.open(&site.page(&format!("/deployments/{id}/dags?state=ACTIVE")));
    browser.wait_for_text("Sales of every shop");
    assert_eq!(browser.count("//tr[.//a[.='sales']]//ol/li"), 12);
    browser.click("//summary[contains(., 'returns.py')]");
    browser.wait_for_text("Traceback (most recent call last)");
    environment.seen();
    browser.click("//button[@aria-label='Trigger sales']");
    browser.wait_for_text("A run was queued.");
    assert!(browser.url().contains("state=ACTIVE"), "one comes back to where one was");
    let sent = environment.seen();
    let is_start =
        |told: &&Value| told["target"].as_str().is_some_and(|to| to.ends_with("/dags/sales/dagRuns"));
    assert_eq!(sent.iter().filter(is_start).count(), 1, "{sent:?}");

    browser.wait_for_text("Sales of every shop");
    let paused = json!({ "dag_id": "sales", "is_paused": true, "description": "<b>asleep</b>" });
    environment.answer_at("/dags", 200, &json!({ "dags": [paused], "total_entries": 1 }));
    browser.click("//button[@aria-label='Pause sales']");
    browser.wait_for_text("The DAG is paused: no more runs begin.");
    browser.wait_for_text("<b>asleep</b>");
    assert_eq!(browser.count("//button[@aria-label='Unpause sales']"), 1);

    let woken = json!({ "dag_id": "sales", "is_paused": false });
    environment.answer_at("/dags", 200, &json!({ "dags": [woken], "total_entries": 1 }));
    browser.run("window.isSamePage = true");
    site.deploy(id, "something new", &[("dags/sales.py", b"1")]);
    site.settle();
    browser
        .wait("Airflow is asked again", |browser| browser.count("//button[@aria-label='Pause sales']") == 1);
    assert_eq!(browser.run("return window.isSamePage"), true, "the page was not loaded again");
}
