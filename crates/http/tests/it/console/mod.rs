//! `/console`: the pages, as a browser without scripts sees them.

mod account;
mod alerts;
mod attacks;
mod changing;
mod crawl;
mod dag_viewers;
mod dags;
mod deploys;
mod processes;

use podium_testkit::{Actor, Answer, TestApp, on_both_engines};
use serde_json::{Value, json};

use super::events::settled;
use super::front_door::{signed_in, visit};

const ORIGIN: &str = "https://podium.test";

/// A browser of somebody who is signed in.
pub(crate) struct Person<'a> {
    app: &'a TestApp,
    cookie: String,
    home: String,
}

impl<'a> Person<'a> {
    async fn new(app: &'a TestApp, actor: &Actor) -> Self {
        let home = format!("/console/{}", app.organization_id);
        Self { app, cookie: signed_in(app, actor).await, home }
    }

    /// A page of the organization.
    async fn read(&self, path: &str) -> Answer {
        visit(self.app, &format!("{}{path}", self.home), &self.cookie).await
    }

    async fn page(&self, path: &str) -> String {
        let answer = self.read(path).await;
        assert_eq!(answer.code(), 200, "{path}: {}", answer.text());
        answer.text()
    }

    /// The token of the forms of this session.
    async fn form_token(&self) -> String {
        field(&self.page("/workspaces/new").await, "form-token")
    }

    /// Sends a form as a page of the console does.
    async fn send(&self, path: &str, form: &str) -> Answer {
        let body = format!("form-token={}&{form}", self.form_token().await);
        let call = self.app.call("POST", &format!("{}{path}", self.home)).header("origin", ORIGIN);
        call.header("cookie", &self.cookie).header("accept", "text/html").body(body).send().await
    }

    /// Sends a form, and reads the page that it leads to.
    async fn sent(&self, path: &str, form: &str) -> String {
        let answer = self.send(path, form).await;
        assert_eq!(answer.code(), 303, "{path}: {}", answer.text());
        let to = answer.header("location").to_owned();
        visit(self.app, &to, &self.cookie).await.text()
    }
}

/// The value of a hidden field of a page.
fn field(page: &str, name: &str) -> String {
    let after = page.split(&format!("name=\"{name}\" value=\"")).nth(1);
    after.and_then(|rest| rest.split('"').next()).unwrap_or_else(|| panic!("no {name} in {page}")).to_owned()
}

async fn deployment(app: &TestApp, name: &str) -> Value {
    let workspace = app.workspace(&format!("space {}", name.len())).await;
    let body = json!({ "name": name, "workspaceId": workspace });
    app.post(&app.owner, &app.path("/deployments"), body).await.ok()
}

on_both_engines! {
    async fn a_stranger_is_led_to_the_sign_in_and_back(app) {
        let home = format!("/console/{}", app.organization_id);
        for path in ["/console".to_owned(), home.clone(), format!("{home}/deployments?a=b")] {
            let answer = app.call("GET", &path).header("accept", "text/html").header("sec-fetch-site", "none").send().await;
            assert_eq!((answer.code(), answer.header("location")), (303, format!("/sign-in?to={path}").as_str()));
        }
        let person = Person::new(&app, &app.owner).await;
        let answer = visit(&app, "/console", &person.cookie).await;
        assert_eq!((answer.code(), answer.header("location")), (303, home.as_str()));
    }

    async fn the_overview_shows_what_needs_attention(app) {
        let person = Person::new(&app, &app.owner).await;
        assert!(person.page("").await.contains("Three steps to a running DAG"));
        let id = deployment(&app, "nightly").await["id"].as_str().unwrap().to_owned();
        app.set_column("deployments", id.parse::<podium_api::DeploymentId>().unwrap(), "status", "'UNHEALTHY'").await;
        app.set_column("deployments", id.parse::<podium_api::DeploymentId>().unwrap(), "status_reason", "'The scheduler exits.'").await;
        let page = person.page("").await;
        for text in ["Needs attention", "The scheduler exits.", "Unhealthy", &format!("/deployments/{id}/logs\"")] {
            assert!(page.contains(text), "{text}: {page}");
        }
    }

    async fn the_overview_forgets_a_failure_once_the_same_has_succeeded_or_is_gone(app) {
        let person = Person::new(&app, &app.owner).await;
        deployment(&app, "nightly").await;
        app.plane.script().lock().no_clusters = Some("There are no clusters here.".into());
        let id = app.new_cluster("East", json!({})).await;
        app.settle().await;
        let page = person.page("").await;
        assert!(page.contains("There are no clusters here."), "{page}");
        app.advance(std::time::Duration::from_secs(1));
        app.delete(&app.owner, &app.path(&format!("/clusters/{id}"))).await;
        app.settle().await;
        let page = person.page("").await;
        assert!(!page.contains("There are no clusters here."), "{page}");
    }

    async fn a_page_names_the_event_after_which_it_follows(app) {
        app.workspace("Before").await;
        settled(&app).await;
        let page = Person::new(&app, &app.owner).await.page("/workspaces").await;
        let seen = page.split("data-seen=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("it names one");
        app.workspace("After").await;
        let last = settled(&app).await.pop().unwrap();
        let after = app.get(&app.owner, &app.path(&format!("/events?cursor={seen}"))).await.ok();
        assert_eq!(after["events"], json!([last]));
    }

    async fn a_form_creates_and_shows_what_is_wrong_at_its_field(app) {
        let person = Person::new(&app, &app.owner).await;
        let page = person.sent("/workspaces", "name=Reports&description=All+of+them").await;
        assert!(page.contains("Created.") && page.contains("Reports") && page.contains("All of them"), "{page}");
        let wrong = person.send("/workspaces", "name=&description=kept").await;
        assert_eq!(wrong.code(), 400);
        for text in ["id=\"name-wrong\"", "aria-invalid=\"true\"", "value=\"kept\""] {
            assert!(wrong.text().contains(text), "{text}: {}", wrong.text());
        }
        let taken = person.send("/workspaces", "name=reports").await;
        assert_eq!(taken.code(), 409, "{}", taken.text());
    }

    async fn settings_show_their_plan_before_they_change_anything(app) {
        let person = Person::new(&app, &app.owner).await;
        let made = deployment(&app, "nightly").await;
        let id = made["id"].as_str().unwrap();
        let page = person.page(&format!("/deployments/{id}/settings")).await;
        assert!(page.contains("value=\"nightly\""), "{page}");
        let form = "name=daily&description=&executor=CELERY&schedulerSize=MEDIUM&drainGraceSeconds=&contactEmails=";
        let plan = person.send(&format!("/deployments/{id}/settings"), form).await;
        assert_eq!(plan.code(), 200, "{}", plan.text());
        let shown = plan.text();
        for text in ["<del>nightly</del>", "<ins>daily</ins>", "<del>SMALL</del>", "<ins>MEDIUM</ins>"] {
            assert!(shown.contains(text), "{text}: {shown}");
        }
        let read = async || app.get(&app.owner, &app.path(&format!("/deployments/{id}"))).await.ok();
        assert_eq!(read().await["name"], "nightly");
        let apply = format!("plan={}&then={}", field(&shown, "plan"), field(&shown, "then"));
        assert!(person.sent("/plans/apply", &apply).await.contains("The change was applied."));
        assert_eq!((&read().await["name"], &read().await["schedulerSize"]), (&json!("daily"), &json!("MEDIUM")));
        let wrong = person.send(&format!("/deployments/{id}/settings"), "name=&executor=CELERY&schedulerSize=SMALL").await;
        assert_eq!(wrong.code(), 400);
        assert!(wrong.text().contains("id=\"name-wrong\""), "{}", wrong.text());
    }

    async fn a_token_is_shown_once(app) {
        let person = Person::new(&app, &app.owner).await;
        let made = person.send("/tokens", "name=ci&entityId=&role=ORGANIZATION_OWNER&tokenExpiryPeriodInDays=30").await;
        assert_eq!(made.code(), 200, "{}", made.text());
        let text = made.text();
        let value = text.split("id=\"token\">").nth(1).and_then(|rest| rest.split('<').next()).unwrap();
        let actor = Actor { token: value.to_owned(), ..app.owner.clone() };
        app.get(&actor, &app.path("")).await.ok();
        let id = app.get(&app.owner, &app.path("/tokens")).await.ok()["tokens"][0]["id"].as_str().unwrap().to_owned();
        for path in ["/tokens".to_owned(), format!("/tokens/{id}")] {
            assert!(!person.page(&path).await.contains(value), "{path}");
        }
        let rotated = person.send(&format!("/tokens/{id}/rotate"), "").await;
        assert!(rotated.code() == 200 && rotated.text().contains("Token rotated"), "{}", rotated.text());
        app.get(&actor, &app.path("")).await.refused(401);
    }

    async fn a_deployment_is_deleted_only_by_its_name(app) {
        let person = Person::new(&app, &app.owner).await;
        let made = deployment(&app, "nightly").await;
        let path = format!("/deployments/{}/delete", made["id"].as_str().unwrap());
        assert!(person.page(&path).await.contains("Type nightly to delete it"));
        assert_eq!(person.send(&path, "name=other").await.code(), 400);
        assert!(person.sent(&path, "name=nightly").await.contains("Deleted."));
        assert_eq!(app.get(&app.owner, &app.path("/deployments")).await.ok()["totalCount"], 0);
    }

    async fn a_change_to_what_somebody_else_changed_is_refused(app) {
        let person = Person::new(&app, &app.owner).await;
        let id = app.workspace("Analytics").await;
        let version = field(&person.page(&format!("/workspaces/{id}")).await, "version").replace("&#34;", "%22");
        let rename = |name: &str| format!("name={name}&description=&version={version}");
        person.sent(&format!("/workspaces/{id}"), &rename("One")).await;
        let late = person.send(&format!("/workspaces/{id}"), &rename("Two")).await;
        assert_eq!(late.code(), 412, "{}", late.text());
        assert!(late.text().contains("value=\"Two\""), "what was typed is kept: {}", late.text());
    }
}
