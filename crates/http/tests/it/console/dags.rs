//! The DAGs of a deployment, from an Airflow that answers what a test wants.

use podium_api::DeploymentId;
use podium_dataplane::Line;
use podium_domain::On;
use podium_testkit::{Engine, TestApp, block_on, on_one_engine, role};
use serde_json::{Value, json};

use super::{Person, deployment, field};
use crate::deployments::made;
use crate::front_door::environment::Environment;

const SCRIPT: &str = "<script>alert(1)</script>\"'><img src=x>";

/// A deployment with an Airflow behind it.
pub(super) struct Flying {
    pub(super) id: DeploymentId,
    pub(super) environment: Environment,
    on: On,
}

impl Flying {
    async fn new(app: &TestApp, line: Line) -> Self {
        let workspace_id = app.workspace("flying").await;
        let version =
            if line == Line::Two { json!({ "platformRuntimeVersion": "2.10.5" }) } else { json!({}) };
        let id = made(app, workspace_id, version).await;
        let flying = Self {
            id,
            environment: Environment::behind(app, id, line).await,
            on: On::Deployment { id, workspace_id },
        };
        flying.tell(
            &dag("load", &[]),
            &[run("load", "r1", "success"), run("load", "r2", "failed")],
            &json!([]),
        );
        flying
    }

    /// What Airflow answers from now on.
    fn tell(&self, dags: &Value, runs: &[Value], errors: &Value) {
        fly(&self.environment, dags, runs, errors);
    }

    /// The tab, asked to wait for Airflow.
    fn tab(&self) -> String {
        format!("/deployments/{}/dags?now=1", self.id)
    }

    fn at(&self, verb: &str) -> String {
        format!("/deployments/{}/dags/{verb}", self.id)
    }

    /// The requests that Airflow got: method and target below its own path.
    fn seen(&self) -> Vec<String> {
        let told = self.environment.seen();
        let text = |of: &Value| {
            format!(
                "{} {}",
                of["method"].as_str().unwrap(),
                of["target"].as_str().unwrap().split("/api/").nth(1).unwrap()
            )
        };
        told.iter().map(text).collect()
    }
}

/// Answers with these DAGs, runs and import errors.
pub(super) fn fly(environment: &Environment, dags: &Value, runs: &[Value], errors: &Value) {
    let dags = if dags.is_array() { dags.clone() } else { json!([dags]) };
    let count = |of: &Value| of.as_array().unwrap().len();
    environment.answer_at("/dags", 200, &json!({ "dags": dags, "total_entries": count(&dags) }));
    environment.answer_at("/dagRuns/list", 200, &json!({ "dag_runs": runs, "total_entries": runs.len() }));
    environment.answer_at(
        "/importErrors",
        200,
        &json!({ "import_errors": errors, "total_entries": count(errors) }),
    );
}

pub(super) fn dag(id: &str, tags: &[&str]) -> Value {
    let tags: Vec<Value> = tags.iter().map(|name| json!({ "name": name })).collect();
    json!({ "dag_id": id, "is_paused": false, "has_import_errors": false, "timetable_description": "At 02:00", "description": "Loads orders",
        "owners": ["ada"], "tags": tags, "next_dagrun_run_after": "2027-01-16T02:00:00Z", "next_dagrun_create_after": "2027-01-16T02:00:00Z" })
}

pub(super) fn run(dag: &str, id: &str, state: &str) -> Value {
    json!({ "dag_id": dag, "dag_run_id": id, "state": state, "run_after": "2027-01-15T02:00:00Z", "logical_date": "2027-01-15T02:00:00Z",
        "start_date": "2027-01-15T02:00:01Z", "end_date": "2027-01-15T02:03:01Z" })
}

on_one_engine! {
    async fn the_page_comes_at_once_and_the_dags_come_after(app) {
        let flying = Flying::new(&app, Line::Three).await;
        let person = Person::new(&app, &app.owner).await;
        let page = person.page(&format!("/deployments/{}/dags?q=lo", flying.id)).await;
        assert!(flying.seen().is_empty(), "the page itself asks nobody");
        assert!(page.contains("<late-part src=") && page.contains("/dags/part?q=lo\"") && page.contains("now=1"), "{page}");
        let part = person.page(&format!("/deployments/{}/dags/part?q=lo&state=ACTIVE", flying.id)).await;
        for text in ["load", "At 02:00", "Loads orders · ada", "Active", "aria-label=\"Last runs, the newest last\"", "Failed", "Trigger load", "Pause load"] {
            assert!(part.contains(text), "{text}: {part}");
        }
        assert!(!part.contains("<html"), "{part}");
        let seen = flying.seen();
        assert!(seen.contains(&"GET v2/dags?limit=50&offset=0&order_by=dag_id&paused=false&dag_id_pattern=lo".to_owned()), "{seen:?}");
        assert_eq!(seen.len(), 3, "one request each for DAGs, runs and import errors: {seen:?}");
    }

    async fn airflow_2_is_asked_in_its_own_way(app) {
        let flying = Flying::new(&app, Line::Two).await;
        let person = Person::new(&app, &app.owner).await;
        assert!(person.page(&flying.tab()).await.contains("/dags/load/grid"));
        let seen = flying.seen();
        assert!(seen.iter().all(|line| line.contains(" v1/")), "{seen:?}");
        person.sent(&format!("{}?dag=load", flying.at("trigger")), "at=now%3D1").await;
        let sent = flying.environment.seen();
        assert_eq!((&sent[0]["method"], &sent[0]["body"]), (&json!("POST"), &json!(r#"{"conf":{}}"#)));
    }

    async fn runs_are_started_and_dags_paused_with_a_record_of_it(app) {
        let flying = Flying::new(&app, Line::Three).await;
        let person = Person::new(&app, &app.owner).await;
        let page = person.page(&flying.tab()).await;
        assert!(page.contains(&format!("action=\"{}{}?dag=load\"", person.home, flying.at("trigger"))), "{page}");
        flying.environment.seen();
        let led = person.send(&format!("{}?dag=load", flying.at("trigger")), "at=q%3Dlo%26now%3D1").await;
        assert_eq!((led.code(), led.header("location")), (303, format!("{}/deployments/{}/dags?q=lo&now=1&done=triggered", person.home, flying.id).as_str()));
        let sent = flying.environment.seen();
        assert_eq!(sent[0]["body"], json!(r#"{"conf":{},"logical_date":null}"#));
        assert!(sent[0]["target"].as_str().unwrap().ends_with("/api/v2/dags/load/dagRuns"), "{sent:?}");
        assert!(person.sent(&format!("{}?dag=load", flying.at("pause")), "at=now%3D1").await.contains("The DAG is paused: no more runs begin."));
        let sent = flying.environment.seen();
        assert_eq!((&sent[0]["method"], &sent[0]["body"]), (&json!("PATCH"), &json!(r#"{"is_paused":true}"#)));
        assert!(sent[0]["target"].as_str().unwrap().ends_with("/dags/load?update_mask=is_paused"), "{sent:?}");
        assert_eq!(person.send(&flying.at("trigger"), "").await.code(), 400, "no DAG is named");
        let token = field(&page, "form-token");
        let forged = app.call("POST", &format!("{}{}?dag=load", person.home, flying.at("trigger"))).header("origin", "https://evil.test");
        assert_eq!(forged.header("cookie", &person.cookie).body(format!("form-token={token}")).send().await.code(), 403);
        let log = app.get(&app.owner, &app.path("/audit-logs?startDate=2027-01-01T00:00:00Z")).await.text();
        assert_eq!(log.lines().filter(|line| line.contains("AirflowRequest")).count(), 2, "{log}");
    }

    async fn nobody_sees_or_does_more_than_at_the_front_door(app) {
        let flying = Flying::new(&app, Line::Three).await;
        flying.tell(&json!([dag("load", &["mine"]), dag("other", &[])]), &[], &json!([{ "filename": "a.py", "stack_trace": "Boom" }]));
        let holds = async |name: &str, on: On, held: &str| {
            let grants = vec![role(On::Organization, "ORGANIZATION_MEMBER"), role(on, held)];
            app.user_with(name, grants).await
        };
        let On::Deployment { id: deployment_id, workspace_id } = flying.on else { unreachable!() };
        let tagged = holds("tagged", On::DagTag { deployment_id, workspace_id, tag: "mine".into() }, "DAG_AUTHOR").await;
        let tagged = Person::new(&app, &tagged).await;
        let page = tagged.page(&flying.tab()).await;
        let seen = flying.seen();
        assert!(seen[0].contains("&tags=mine"), "the list is narrowed to what the person may see: {seen:?}");
        assert_eq!(seen.len(), 1, "what the person may not ask for is not sent: {seen:?}");
        assert!(page.contains("Trigger load") && !page.contains("Trigger other") && !page.contains("a.py"), "{page}");
        let accessor = Person::new(&app, &holds("accessor", flying.on.clone(), "DEPLOYMENT_ACCESSOR").await).await;
        let home = accessor.page(&format!("/deployments/{}", flying.id)).await;
        assert!(!home.contains("/dags\""), "who may not see DAGs has no tab: {home}");
        let refused = accessor.page(&flying.tab()).await;
        assert!(refused.contains("You may not see the DAGs") && !refused.contains("load"), "{refused}");
        assert_eq!(accessor.send(&format!("{}?dag=load", flying.at("trigger")), "").await.code(), 403);
        assert!(flying.seen().is_empty());
        let nobody = Person::new(&app, &app.member("nobody").await).await;
        assert!([403, 404].contains(&nobody.read(&flying.tab()).await.code()));
        assert!([403, 404].contains(&nobody.read(&flying.at("part")).await.code()));
        assert!(flying.seen().is_empty());
    }

    async fn a_dag_that_runs_often_does_not_hide_the_runs_of_others(app) {
        let flying = Flying::new(&app, Line::Three).await;
        let busy: Vec<Value> = (0..100).map(|at| run("busy", &format!("r{at}"), "success")).collect();
        flying.tell(&json!([dag("busy", &[]), dag("rare", &[])]), &busy, &json!([]));
        flying.environment.answer_at("/dagRuns/list", 200, &json!({ "dag_runs": busy, "total_entries": 5000 }));
        let person = Person::new(&app, &app.owner).await;
        person.page(&flying.tab()).await;
        let asked: Vec<Value> = flying.environment.seen().iter()
            .filter(|told| told["target"].as_str().unwrap().ends_with("/list"))
            .map(|told| serde_json::from_str(told["body"].as_str().unwrap()).unwrap()).collect();
        assert_eq!((&asked[0]["dag_ids"], &asked[1]["dag_ids"]), (&json!(["busy", "rare"]), &json!(["rare"])));
        assert!(asked.len() <= 4, "{asked:?}");
    }

    async fn what_airflow_answers_stays_text_and_is_bounded(app) {
        let flying = Flying::new(&app, Line::Three).await;
        let mut hostile = dag(SCRIPT, &[SCRIPT]);
        hostile["description"] = SCRIPT.into();
        hostile["owners"] = json!([SCRIPT]);
        hostile["timetable_description"] = SCRIPT.into();
        let errors = json!([{ "filename": SCRIPT, "stack_trace": format!("{SCRIPT}\n{SCRIPT}") }]);
        flying.tell(&json!([hostile, dag("evil\u{202e}daol", &[]), dag(&"x".repeat(300), &[])]), &[run(SCRIPT, SCRIPT, SCRIPT)], &errors);
        let person = Person::new(&app, &app.owner).await;
        let page = person.page(&flying.tab()).await;
        assert!(!page.contains("<script>alert") && !page.contains("<img src=x") && page.contains("&#60;script&#62;"), "{page}");
        assert!(!page.contains('\u{202e}') && !page.contains("xxxxx"), "{page}");
        let many: Vec<Value> = (0..500).map(|at| dag(&format!("d{at}"), &["t"; 50])).collect();
        let errors: Vec<Value> = (0..500).map(|_| json!({ "filename": "a.py", "stack_trace": "x".repeat(2000) })).collect();
        flying.tell(&json!(many), &[], &json!(errors));
        let page = person.page(&flying.tab()).await;
        assert!(page.matches("Trigger d").count() <= 50 && page.len() < 300_000, "{}", page.len());
        for (status, body) in [(200, json!("x".repeat(3_000_000))), (200, json!({ "dags": "none" })), (500, json!({ "detail": SCRIPT })), (403, json!({})), (302, json!({}))] {
            flying.environment.answer_at("/dags", status, &body);
            let page = person.page(&flying.tab()).await;
            assert!(page.contains("Airflow is not available now") || page.contains("You may not see the DAGs"), "{status}: {page}");
            assert!(!page.contains("<script>alert") && page.len() < 30_000, "{status}: {page}");
        }
        flying.environment.answer_at("/dags", 200, &json!({ "dags": [dag("load", &[])], "total_entries": u64::MAX }));
        person.page(&format!("{}&offset=18446744073709551615", flying.tab())).await;
        flying.environment.answer_at("/load/dagRuns", 409, &json!({ "detail": SCRIPT }));
        let refused = person.send(&format!("{}?dag=load", flying.at("trigger")), "").await;
        assert!(refused.code() == 409 && !refused.text().contains("<script>alert"), "{}", refused.text());
        for wrong in ["..", "a%2Fb", "%00"] {
            flying.environment.seen();
            assert_eq!(person.send(&format!("{}?dag={wrong}", flying.at("trigger")), "").await.code(), 400, "{wrong}");
            assert!(flying.seen().is_empty());
        }
    }

    async fn a_page_beyond_the_last_leads_back_to_it(app) {
        let flying = Flying::new(&app, Line::Three).await;
        let person = Person::new(&app, &app.owner).await;
        flying.environment.answer_at("/dags", 200, &json!({ "dags": [], "total_entries": 120 }));
        let page = person.page(&format!("{}&offset=500", flying.tab())).await;
        let last = format!("/deployments/{}/dags?now=1&#38;offset=100\">Go to the last page", flying.id);
        assert!(page.contains(&last), "{page}");
        flying.environment.answer_at("/dags", 200, &json!({ "dags": [], "total_entries": 0 }));
        let page = person.page(&format!("{}&offset=500", flying.tab())).await;
        assert!(page.contains("Airflow has found no DAGs yet") && !page.contains("Go to the last page"), "{page}");
        for name in ["one", "two"] {
            app.workspace(name).await;
        }
        let page = person.page("/workspaces?offset=500").await;
        assert!(page.contains("<a rel=\"prev\" href=\"?\">Go to the last page"), "{page}");
    }

    async fn the_page_says_why_airflow_cannot_be_asked(app) {
        let flying = Flying::new(&app, Line::Three).await;
        let person = Person::new(&app, &app.owner).await;
        let other = deployment(&app, "other").await["id"].as_str().unwrap().to_owned();
        let page = person.page(&format!("/deployments/{other}/dags?now=1")).await;
        assert!(page.contains("Airflow is not available now") && page.contains("try again once it is HEALTHY"), "{page}");
        app.settle().await;
        let page = person.page(&format!("/deployments/{other}/dags?now=1")).await;
        assert!(page.contains("it may be starting or restarting"), "{page}");
        app.set_column("deployments", flying.id, "status", "'HIBERNATING'").await;
        let page = person.page(&flying.tab()).await;
        assert!(page.contains("The deployment is hibernating"), "{page}");
    }
}

#[test]
fn a_page_does_not_wait_for_airflow_for_ever() {
    block_on(async {
        let app = TestApp::start_with(Engine::Sqlite, |_, settings| {
            settings.console_airflow_timeout = std::time::Duration::ZERO;
        });
        let app = app.await;
        let flying = Flying::new(&app, Line::Three).await;
        let _never_ends = flying.environment.stream();
        let page = Person::new(&app, &app.owner).await.page(&flying.tab()).await;
        assert!(page.contains("Airflow did not answer in time"), "{page}");
    });
}
