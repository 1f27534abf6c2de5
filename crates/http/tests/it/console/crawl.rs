//! Every page that is offered to somebody can be read by them, whatever role they hold.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use podium_api::enums::{OrganizationRole, WorkspaceRoleName};
use podium_dataplane::Line;
use podium_domain::{On, Permission, PermissionSet};
use podium_testkit::{Actor, Engine, TestApp, block_on, on_both_engines, role};
use serde_json::json;

use super::dags::{dag, fly, run};
use super::deploys::deployed;
use super::{Person, deployment};
use crate::front_door::environment::Environment;
use crate::front_door::visit;

/// The links of a page that lead to pages of the console.
fn links(page: &str) -> Vec<String> {
    let targets = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    let pages = targets.filter(|to| to.starts_with("/console/") && !to.starts_with("/console/assets/"));
    pages.map(|to| to.replace("&#38;", "&").replace("&amp;", "&")).collect()
}

/// What links lead to.
#[derive(Default)]
pub(super) struct Crawled {
    pages: BTreeSet<String>,
    /// What each of them says.
    pub(super) texts: BTreeMap<String, String>,
    forms: BTreeSet<String>,
    /// Pages that a link leads to and that are then refused.
    refused: Vec<String>,
}

impl Crawled {
    /// Every link leads to a page that can be read.
    pub(super) fn assert_complete(&self) {
        assert!(self.refused.is_empty(), "{:?}", self.refused);
    }
}

/// Reads every page that links lead to.
pub(super) async fn crawl(app: &TestApp, person: &Person<'_>) -> Crawled {
    let mut waiting = VecDeque::from([person.home.clone()]);
    let mut crawled = Crawled::default();
    while let Some(path) = waiting.pop_front() {
        if !crawled.pages.insert(path.clone()) {
            continue;
        }
        let answer = visit(app, &path, &person.cookie).await;
        if answer.code() != 200 {
            crawled.refused.push(format!("{path}: {}", answer.code()));
            continue;
        }
        if ["/download", "/export"]
            .iter()
            .any(|end| path.split('?').next().is_some_and(|path| path.ends_with(end)))
        {
            assert!(answer.header("content-disposition").starts_with("attachment; "), "{path}");
            crawled.texts.insert(path, answer.text());
            continue;
        }
        assert!(answer.header("content-type").starts_with("text/html"), "{path}");
        let page = answer.text();
        assert!(!page.contains("<script>alert") && !page.contains("<img src=x"), "{path}: {page}");
        waiting.extend(links(&page));
        let posts = page.split("<form").skip(1).filter(|form| form.contains("method=\"post\""));
        crawled.forms.extend(
            posts.filter_map(|form| form.split("action=\"").nth(1)?.split('"').next()).map(str::to_owned),
        );
        crawled.texts.insert(path, page);
    }
    crawled
}

async fn something_of_everything(app: &TestApp) -> (podium_api::WorkspaceId, podium_api::DeploymentId) {
    let made = deployment(app, "nightly").await;
    let workspace_id = made["workspaceId"].as_str().unwrap().parse().unwrap();
    let id: podium_api::DeploymentId = made["id"].as_str().unwrap().parse().unwrap();
    let post = async |path: &str, body| app.post(&app.owner, &app.path(path), body).await.ok();
    post("/teams", json!({ "name": "data" })).await;
    post("/tokens", json!({ "name": "ci", "scope": "ORGANIZATION", "role": "ORGANIZATION_OWNER" })).await;
    post("/roles", json!({ "name": "reader", "scopeType": "DEPLOYMENT", "permissions": ["deployment.get"] }))
        .await;
    let object = json!({ "objectKey": "KEY", "objectType": "ENVIRONMENT_VARIABLE", "scope": "WORKSPACE",
        "scopeEntityId": workspace_id, "environmentVariable": { "value": "v", "isSecret": false } });
    post("/environment-objects", object).await;
    let hook = post("/webhooks", json!({ "name": "pager", "url": "https://127.0.0.1/hook" })).await;
    post("/alerts", json!({ "name": "broken", "kind": "DEPLOYMENT_UNHEALTHY", "webhookIds": [hook["id"]], "deploymentIds": [id] })).await;
    for version in ["1", "2"] {
        deployed(app, id, version).await;
    }
    app.set_column("deployments", id, "status", "'UNHEALTHY'").await;
    let environment = Environment::behind(app, id, Line::Three).await;
    let errors = json!([{ "filename": "orders.py", "stack_trace": "NameError" }]);
    fly(&environment, &json!([dag("load", &["etl"])]), &[run("load", "r1", "success")], &errors);
    environment.answer_at("/load/dagRuns", 200, &json!({}));
    environment.answer_at("/load", 200, &json!({}));
    (workspace_id, id)
}

on_both_engines! {
    async fn an_owner_reaches_every_kind_of_page(app) {
        something_of_everything(&app).await;
        let crawled = crawl(&app, &Person::new(&app, &app.owner).await).await;
        crawled.assert_complete();
        let Crawled { pages, forms, .. } = crawled;
        let kinds = ["deployments", "operations", "workspaces", "environment", "clusters", "users", "teams", "roles", "tokens",
            "address-ranges", "audit", "settings", "account", "webhooks", "alerts", "compare", "declared-sets", "logs", "variables", "access", "deploys", "dags", "new", "invite", "delete", "download", "export"];
        for kind in kinds {
            assert!(pages.iter().any(|path| path.split(['/', '?']).any(|part| part == kind)), "{kind}: {pages:?}");
        }
        assert!(forms.len() > 15, "{forms:?}");
    }
}

/// Reads every page that is offered to somebody, and sends every form; returns what was offered and then refused.
async fn refused_to(app: &TestApp, name: &str, actor: &Actor) -> Vec<String> {
    let person = Person::new(app, actor).await;
    let home = person.read("").await;
    if [403, 404].contains(&home.code()) {
        return Vec::new();
    }
    let Crawled { forms, mut refused, .. } = crawl(app, &person).await;
    for action in forms.iter().filter(|action| !action.contains("rotate") && !action.contains("/tokens/")) {
        let path = action.strip_prefix(&person.home).unwrap_or_else(|| panic!("{action}"));
        if person.send(path, "").await.code() == 403 {
            refused.push(format!("form {action}"));
        }
    }
    refused.into_iter().map(|what| format!("{name} at {what}")).collect()
}

// What is offered follows from rights, which other tests read on both engines: each of these crawls takes a thousand pages.

/// A member of the organization with one permission more, where that is usually held, is offered nothing that is then refused.
#[test]
fn a_member_with_one_permission_is_offered_what_it_allows() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let (workspace_id, id) = something_of_everything(&app).await;
        let mut refused = Vec::new();
        for permission in Permission::all() {
            let known = |name: &'static str| PermissionSet::EMPTY.with(Permission::known(name));
            let [mut organization, mut workspace, mut deployment] =
                [known("organization.get"), PermissionSet::EMPTY, known("deployment.get")];
            let held = match permission.name().split('.').next() {
                Some("organization") => &mut organization,
                Some("workspace") => &mut workspace,
                _ => &mut deployment,
            };
            *held = held.with(permission);
            let places = [On::Organization, On::Workspace(workspace_id), On::Deployment { id, workspace_id }];
            let held = [organization, workspace, deployment].into_iter().zip(places);
            let held = held.filter(|(permissions, _)| !permissions.is_empty()).collect();
            let name = permission.name().to_owned();
            let actor = app.holder_of_each(&name, held).await;
            refused.extend(refused_to(&app, &name, &actor).await);
        }
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    });
}

/// One who holds a single permission is offered nothing that is then refused.
#[test]
fn nothing_is_offered_that_is_then_refused() {
    block_on(async {
        let app = TestApp::start(Engine::Sqlite).await;
        let (workspace_id, id) = something_of_everything(&app).await;
        let mut people = Vec::new();
        for of in OrganizationRole::ALL {
            people.push((of.as_str().to_owned(), app.member_as(&format!("o{}", of.as_str()), *of).await));
        }
        for of in WorkspaceRoleName::ALL {
            let held = vec![role(On::Workspace(workspace_id), of.as_str())];
            people.push((of.as_str().to_owned(), app.user_with(&format!("w{}", of.as_str()), held).await));
        }
        for permission in Permission::all() {
            for on in [On::Organization, On::Workspace(workspace_id), On::Deployment { id, workspace_id }] {
                let name = format!("{permission} {}", people.len());
                people.push((name.clone(), app.holder_of(&name.replace(' ', "-"), permission, on).await));
            }
        }
        let mut refused = Vec::new();
        for (name, actor) in people {
            refused.extend(refused_to(&app, &name, &actor).await);
        }
        assert!(refused.is_empty(), "{}", refused.join("\n"));
    });
}
