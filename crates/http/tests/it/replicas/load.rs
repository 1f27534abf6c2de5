//! Ten thousand requests of all kinds, many at a time: no duplicate name, no lost update, totals that are counts.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};

use podium_api::Id;
use podium_testkit::{Actor, Answer, Engine, TestApp, block_on};
use serde_json::{Value, json};

use super::two_replicas;

const AT_ONCE: usize = 128;
const NAMES: usize = 40;

/// What the callers share.
struct Load {
    apps: [Arc<TestApp>; 2],
    counters: Vec<Id>,
    increments: Vec<AtomicI64>,
    people: Vec<Actor>,
    sent: AtomicUsize,
    requests: usize,
}

/// A caller: numbers of its own, so that every run does the same.
struct Caller {
    load: Arc<Load>,
    state: u64,
}

impl Caller {
    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.state =
            self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.state >> 33).unwrap() % end
    }

    /// Calls a replica; refuses answers that nobody should see.
    async fn call(&mut self, method: &str, rest: &str, body: Option<Value>, etag: &str) -> Answer {
        let replica = self.below(2);
        self.load.sent.fetch_add(1, Ordering::Relaxed);
        let app = &self.load.apps[replica];
        let mut call = app.call(method, &app.path(rest)).by(&app.owner);
        if !etag.is_empty() {
            call = call.header("if-match", etag);
        }
        let call = if let Some(body) = &body { call.json(body) } else { call };
        let answer = call.send().await;
        assert!([200, 204, 404, 409, 412].contains(&answer.code()), "{method} {rest}: {}", answer.text());
        answer
    }

    async fn step(&mut self) {
        let name = format!("{}{}", if self.below(2) == 0 { "name " } else { "NAME " }, self.below(NAMES));
        match self.below(10) {
            0 | 1 => {
                self.call("POST", "/workspaces", Some(json!({ "name": name })), "").await;
            }
            2 => {
                self.call("POST", "/teams", Some(json!({ "name": name })), "").await;
            }
            3 => {
                let body = json!({ "name": name, "scope": "ORGANIZATION", "role": "ORGANIZATION_MEMBER" });
                self.call("POST", "/tokens", Some(body), "").await;
            }
            4 => self.delete_one("workspaces").await,
            5 => {
                let kind = ["teams", "tokens"][self.below(2)];
                self.delete_one(kind).await;
            }
            6 | 7 => self.increment().await,
            8 => self.change_roles().await,
            _ => {
                let kind = ["workspaces", "teams", "tokens", "users"][self.below(4)];
                let list = self.call("GET", &format!("/{kind}?limit=1000"), None, "").await.ok();
                assert_eq!(
                    list["totalCount"],
                    list[kind].as_array().unwrap().len(),
                    "the total is the count"
                );
            }
        }
    }

    async fn delete_one(&mut self, kind: &str) {
        let list = self.call("GET", &format!("/{kind}?limit=1000"), None, "").await.ok();
        let all = list[kind].as_array().unwrap();
        let named = |item: &&Value| item["name"].as_str().unwrap().to_lowercase().starts_with("name ");
        let doomed: Vec<&Value> = all.iter().filter(named).collect();
        if !doomed.is_empty() {
            let id = doomed[self.below(doomed.len())]["id"].as_str().unwrap();
            self.call("DELETE", &format!("/{kind}/{id}"), None, "").await;
        }
    }

    /// Reads a number and writes the next one, unless somebody else was faster.
    async fn increment(&mut self) {
        let counter = self.below(self.load.counters.len());
        let at = format!("/workspaces/{}", self.load.counters[counter]);
        let read = self.call("GET", &at, None, "").await;
        let number: i64 = read.ok()["description"].as_str().unwrap().parse().unwrap();
        let body = json!({
            "name": format!("counter {counter}"),
            "description": (number + 1).to_string(),
            "cicdEnforcedDefault": false,
        });
        match self.call("POST", &at, Some(body), read.header("etag")).await.code() {
            200 => _ = self.load.increments[counter].fetch_add(1, Ordering::Relaxed),
            code => assert_eq!(code, 412),
        }
    }

    async fn change_roles(&mut self) {
        let load = Arc::clone(&self.load);
        let person = load.people[self.below(load.people.len())].id;
        let workspace = load.counters[self.below(load.counters.len())];
        let role = ["WORKSPACE_MEMBER", "WORKSPACE_AUTHOR", "WORKSPACE_OWNER"][self.below(3)];
        let body = json!({
            "organizationRole": "ORGANIZATION_MEMBER",
            "workspaceRoles": [{ "workspaceId": workspace, "role": role }],
        });
        let answer = self.call("POST", &format!("/users/{person}/roles"), Some(body.clone()), "").await;
        assert_eq!(answer.ok()["workspaceRoles"], body["workspaceRoles"]);
    }
}

async fn run(apps: [Arc<TestApp>; 2], requests: usize) {
    let app = Arc::clone(&apps[0]);
    let mut counters = Vec::new();
    for counter in 0..8 {
        let body = json!({ "name": format!("counter {counter}"), "description": "0" });
        counters.push(app.post(&app.owner, &app.path("/workspaces"), body).await.id().parse().unwrap());
    }
    let mut people = Vec::new();
    for person in 0..4 {
        people.push(app.member(&format!("person {person}")).await);
    }
    let increments = counters.iter().map(|_| AtomicI64::new(0)).collect();
    let load = Arc::new(Load { apps, counters, increments, people, sent: AtomicUsize::new(0), requests });
    let callers: Vec<_> = (0..AT_ONCE)
        .map(|caller| {
            let mut caller = Caller { load: Arc::clone(&load), state: caller as u64 };
            tokio::spawn(async move {
                while caller.load.sent.load(Ordering::Relaxed) < caller.load.requests {
                    caller.step().await;
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    assert!(load.sent.load(Ordering::Relaxed) >= requests);
    for app in &load.apps {
        check(&load, app).await;
    }
}

/// Nothing is there twice, nothing is lost, and everything counts itself rightly.
async fn check(load: &Load, app: &TestApp) {
    for (counter, id) in load.counters.iter().enumerate() {
        let read = app.get(&app.owner, &app.path(&format!("/workspaces/{id}"))).await;
        let increments = load.increments[counter].load(Ordering::Relaxed);
        assert!(increments > 0);
        assert_eq!(read.ok()["description"], increments.to_string(), "no update is lost");
        assert!(read.header("etag").starts_with(&format!("\"{}-", increments + 1)));
    }
    for (kind, table) in [("workspaces", "workspaces"), ("teams", "teams"), ("tokens", "api_tokens")] {
        let list = app.get(&app.owner, &app.path(&format!("/{kind}?limit=1000"))).await.ok();
        let items = list[kind].as_array().unwrap();
        let names: HashSet<String> =
            items.iter().map(|item| item["name"].as_str().unwrap().to_lowercase()).collect();
        assert_eq!(names.len(), items.len(), "no name is there twice");
        assert_eq!(list["totalCount"], items.len());
        assert_eq!(app.rows(table).await, items.len() as i64);
    }
    let users = app.get(&app.owner, &app.path("/users")).await.ok();
    let held: BTreeMap<&str, usize> = users["users"]
        .as_array()
        .unwrap()
        .iter()
        .map(|user| {
            (user["username"].as_str().unwrap(), user["workspaceRoles"].as_array().map_or(0, Vec::len))
        })
        .collect();
    assert!(held.iter().all(|(name, roles)| *roles == usize::from(name.starts_with("person"))), "{held:?}");
}

#[test]
fn ten_thousand_mixed_requests_on_two_replicas_lose_and_duplicate_nothing() {
    block_on(async { run(two_replicas().await, 10_000).await });
}

#[test]
fn mixed_requests_at_once_lose_and_duplicate_nothing_on_sqlite() {
    block_on(async {
        let app = Arc::new(TestApp::start(Engine::Sqlite).await);
        run([Arc::clone(&app), app], 4_000).await;
    });
}

#[test]
fn of_many_who_create_the_same_name_at_once_one_succeeds_on_sqlite() {
    block_on(async {
        let app = Arc::new(TestApp::start(Engine::Sqlite).await);
        let creates: Vec<_> = (0..200)
            .map(|n| {
                let app = Arc::clone(&app);
                let body = json!({ "name": format!("Workspace {}", n % 20) });
                tokio::spawn(async move { app.post(&app.owner, &app.path("/workspaces"), body).await.code() })
            })
            .collect();
        let mut codes = BTreeMap::new();
        for create in creates {
            *codes.entry(create.await.unwrap()).or_insert(0) += 1;
        }
        assert_eq!(codes, BTreeMap::from([(200, 20), (409, 180)]));
        assert_eq!(app.get(&app.owner, &app.path("/workspaces")).await.ok()["totalCount"], 21);
    });
}
