//! The front door of environments, with an environment behind it that tells what it was sent.

mod dag_roles;
mod device;
mod encrypted;
pub(crate) mod environment;
mod hostile;
mod in_place;
mod other_host;
mod own_origin;
mod sessions;
mod sign_in;
mod sign_out;
mod streams;

use std::collections::HashMap;

use podium_api::{DeploymentId, Id, WorkspaceId};
use podium_dataplane::{Line, Secret, WebServer};
use podium_domain::{Grant, On};
use podium_testkit::{Actor, Answer, TestApp, role};
use serde_json::json;

use crate::deployments::{made, read};
use environment::Environment;

const KEY: &str = "what the environment believes";
pub(crate) const SESSION: &str = "__Host-podium_session";

/// A deployment with an environment behind it.
struct Behind {
    id: DeploymentId,
    workspace: WorkspaceId,
    namespace: String,
    environment: Environment,
}

impl Behind {
    /// One of Airflow 3.
    async fn new(app: &TestApp) -> Self {
        Self::of_line(app, Line::Three).await
    }

    async fn of_line(app: &TestApp, line: Line) -> Self {
        let workspace = app.workspace(app.world.id::<Id>().as_str()).await;
        let id = made(app, workspace, json!({})).await;
        let namespace = read(app, id).await["namespace"].as_str().unwrap().to_owned();
        let environment = Environment::start().await;
        let door = WebServer { upstream: environment.address.into(), line, key: Secret::new(KEY.into()) };
        app.plane.script().lock().web_servers.insert(id, door);
        Self { id, workspace, namespace, environment }
    }

    /// A path of the environment.
    fn at(&self, rest: &str) -> String {
        format!("/airflow/{}{rest}", self.namespace)
    }

    fn on(&self) -> On {
        On::Deployment { id: self.id, workspace_id: self.workspace }
    }

    fn on_dag(&self, dag_id: &str) -> On {
        On::Dag { deployment_id: self.id, workspace_id: self.workspace, dag_id: dag_id.into() }
    }

    fn on_tag(&self, tag: &str) -> On {
        On::DagTag { deployment_id: self.id, workspace_id: self.workspace, tag: tag.into() }
    }

    /// A member of the organization with these roles.
    async fn holder(&self, app: &TestApp, name: &str, roles: Vec<Grant>) -> Actor {
        let member = role(On::Organization, "ORGANIZATION_MEMBER");
        app.user_with(name, roles.into_iter().chain([member]).collect()).await
    }

    fn pass_name(&self) -> String {
        format!("__Host-podium_pass_{}", self.namespace)
    }

    /// Opens the environment as an actor: its port, and the path and query that the link leads to.
    async fn link(&self, app: &TestApp, actor: &Actor) -> (u16, String) {
        let path = app.path(&format!("/deployments/{}/open", self.id));
        let opened = app.post(actor, &path, json!({})).await.ok();
        port_and_target(opened["url"].as_str().unwrap())
    }

    /// Enters the environment as an actor's browser.
    async fn browser<'a>(&self, app: &'a TestApp, actor: &Actor) -> Browser<'a> {
        let (port, target) = self.link(app, actor).await;
        self.enter(app, port, &target).await
    }

    /// Signs in as an actor's browser, and enters the environment from the console.
    async fn browser_by_page<'a>(&self, app: &'a TestApp, actor: &Actor) -> Browser<'a> {
        let session = signed_in(app, actor).await;
        self.browser_with(app, &session).await
    }

    /// Enters the environment with a session at the console.
    async fn browser_with<'a>(&self, app: &'a TestApp, session: &str) -> Browser<'a> {
        let led = visit(app, &self.at("/"), session).await;
        assert_eq!(led.code(), 303, "{}", led.text());
        let (port, target) = port_and_target(led.header("location"));
        self.enter(app, port, &target).await
    }

    async fn enter<'a>(&self, app: &'a TestApp, port: u16, target: &str) -> Browser<'a> {
        let entered = app.call("GET", target).on_port(port).send().await;
        assert_eq!(entered.code(), 303, "{}", entered.text());
        let pass = cookies(&entered)[&self.pass_name()].clone();
        Browser { app, port, cookie: format!("{}={pass}", self.pass_name()) }
    }
}

/// Signs in as an actor's browser: its cookie.
pub(crate) async fn signed_in(app: &TestApp, actor: &Actor) -> String {
    let form = app.call("POST", "/sign-in").header("origin", "https://podium.test");
    let answer = form.body(format!("token={}", actor.token)).send().await;
    assert_eq!(answer.code(), 303, "{}", answer.text());
    format!("{SESSION}={}", cookies(&answer)[SESSION])
}

/// Goes to a page of the console.
pub(crate) async fn visit(app: &TestApp, path: &str, cookie: &str) -> Answer {
    app.call("GET", path).header("accept", "text/html").header("cookie", cookie).send().await
}

/// A browser that holds a pass.
struct Browser<'a> {
    app: &'a TestApp,
    port: u16,
    cookie: String,
}

impl Browser<'_> {
    fn origin(&self) -> String {
        format!("https://podium.test:{}", self.port)
    }

    fn call(&self, method: &str, path: &str) -> podium_testkit::Call<'_> {
        self.app.call(method, path).on_port(self.port).header("cookie", &self.cookie)
    }

    async fn get(&self, path: &str) -> Answer {
        self.call("GET", path).send().await
    }

    /// Sends something that changes something, from a page of the environment.
    async fn post(&self, path: &str) -> Answer {
        self.call("POST", path).header("origin", &self.origin()).json(&json!({})).send().await
    }
}

/// The port of an own origin, and what follows it.
fn port_and_target(url: &str) -> (u16, String) {
    let rest = url.strip_prefix("https://podium.test:").unwrap_or_else(|| panic!("{url}"));
    let (port, target) = rest.split_once('/').unwrap();
    (port.parse().unwrap(), format!("/{target}"))
}

/// The cookies that an answer sets.
pub(crate) fn cookies(answer: &Answer) -> HashMap<String, String> {
    let all = answer.headers.get_all("set-cookie").iter().map(|value| value.to_str().unwrap());
    all.map(|cookie| cookie.split(';').next().unwrap().split_once('=').unwrap())
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}
