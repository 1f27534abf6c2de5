//! The program is killed at a random moment while many callers create, deploy to and delete deployments. Afterwards
//! every acknowledged deployment is HEALTHY or deleted as requested, the data plane has no orphan, no work is lost, and the
//! events tell exactly what happened.
//!
//! A few rounds here; `cargo xtask crash` runs many more, with more callers.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use podium_testkit::Engine;
use serde_json::{Value, json};

use super::events::Reader;
use crate::loops::{environments, pending, wait_until};
use crate::program::{Caller, Installation, Program};

const LONGEST_ROUND: Duration = Duration::from_secs(20);

/// What a caller knows of its deployment.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    /// It was created, and nothing was asked since.
    Created,
    /// A deploy of this image was finalized.
    Runs(String),
    /// Something was asked, and nobody knows whether it happened.
    Asked,
    /// Its deletion was asked, and nobody knows whether it happened.
    Leaving,
    Gone,
}

type Ledger = Mutex<BTreeMap<String, Known>>;

/// A number from the environment of the test, or else a small one.
fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

/// Creates, deploys to and deletes deployments over one connection until it breaks.
struct Client<'a> {
    caller: Caller,
    deployments: String,
    workspace: &'a str,
    ledger: &'a Ledger,
    acknowledged: &'a AtomicUsize,
}

impl Client<'_> {
    fn work(mut self, prefix: &str) {
        let mut before = None;
        for turn in 0.. {
            match self.turn(&format!("{prefix} {turn}"), turn, before.as_deref()) {
                Some(id) => before = Some(id),
                None => return,
            }
        }
    }

    /// Creates a deployment, deploys to the one before it, and deletes one of the two now and then.
    fn turn(&mut self, name: &str, turn: usize, before: Option<&str>) -> Option<String> {
        let body = json!({ "name": name, "workspaceId": self.workspace });
        let made = self.must("POST", &self.deployments.clone(), Some(&body))?;
        let id = made["id"].as_str().expect("an id").to_owned();
        self.note(&id, Known::Created);
        if turn % 3 == 2 {
            self.delete(&id)?;
        } else if let Some(before) = before.filter(|before| !self.is_gone(before)) {
            self.deploy(before)?;
            if turn.is_multiple_of(4) {
                self.delete(before)?;
            }
        }
        Some(id)
    }

    fn delete(&mut self, id: &str) -> Option<()> {
        self.note(id, Known::Leaving);
        self.must("DELETE", &format!("{}/{id}", self.deployments), None)?;
        self.note(id, Known::Gone);
        Some(())
    }

    /// Deploys an image.
    fn deploy(&mut self, id: &str) -> Option<()> {
        let path = format!("{}/{id}", self.deployments);
        let body = json!({ "type": "IMAGE_ONLY", "description": "made by a test" });
        let deploy = self.must("POST", &format!("{path}/deploys"), Some(&body))?;
        self.note(id, Known::Asked);
        let path = format!("{path}/deploys/{}/finalize", deploy["id"].as_str().expect("an id"));
        let done = self.must("POST", &path, Some(&json!({})))?;
        self.note(id, Known::Runs(done["imageTag"].as_str().expect("a tag").to_owned()));
        Some(())
    }

    fn is_gone(&self, id: &str) -> bool {
        self.ledger.lock().unwrap().get(id) == Some(&Known::Gone)
    }

    /// A call that succeeds if it is answered at all.
    fn must(&mut self, method: &str, path: &str, body: Option<&Value>) -> Option<Value> {
        let (status, body) = self.caller.call(method, path, body)?;
        assert!((200..300).contains(&status), "{method} {path}: {status} {}", String::from_utf8_lossy(&body));
        if method != "GET" {
            self.acknowledged.fetch_add(1, Ordering::SeqCst);
        }
        Some(serde_json::from_slice(&body).unwrap_or_default())
    }

    fn note(&self, id: &str, known: Known) {
        self.ledger.lock().unwrap().insert(id.to_owned(), known);
    }
}

/// All deployments, by id.
fn deployments(program: &Program, organization: &str, token: &str) -> BTreeMap<String, Value> {
    let mut all = BTreeMap::new();
    loop {
        let path = format!("{organization}/deployments?sorts=name:asc&limit=1000&offset={}", all.len());
        let page = program.get(&path, token).json();
        let items = page["deployments"].as_array().unwrap();
        if items.is_empty() {
            assert_eq!(page["totalCount"], all.len());
            return all;
        }
        all.extend(items.iter().map(|item| (item["id"].as_str().unwrap().to_owned(), item.clone())));
    }
}

/// The image that the simulated plane runs.
fn running_image(installation: &Installation, id: &str) -> Value {
    let kept = installation.read(&format!("simulated/environments/{id}.json"));
    serde_json::from_str::<Value>(&kept).unwrap()["after"]["imageTag"].clone()
}

/// Checks what must hold once the loops have come to rest.
fn check(installation: &Installation, program: &Program, token: &str, ledger: &Ledger) {
    let ask = || String::from_utf8(program.get("/metrics", "").body).unwrap();
    let is_done = |page: &String| !page.contains("podium_work_pending{kind=\"deployments\"}");
    wait_until("no work is left", ask, is_done);
    assert_eq!(pending(installation, &["--kind", "deployments"]), Vec::<Value>::new());
    let organization = program.organization(token);
    let all = deployments(program, &organization, token);
    let planned = environments(installation);
    let ids = all.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(ids, planned, "the data plane has exactly these");
    Reader { program, organization: &organization, token }.agree(&ids);
    for (id, deployment) in &all {
        assert_eq!(deployment["status"], "HEALTHY", "{deployment}");
        assert_eq!(deployment["imageTag"], running_image(installation, id), "{deployment}");
    }
    for (id, known) in ledger.lock().unwrap().iter() {
        match known {
            Known::Gone => assert!(!all.contains_key(id), "{id} was deleted"),
            Known::Leaving => {}
            Known::Created | Known::Asked => assert!(all.contains_key(id), "{id} was created"),
            Known::Runs(tag) => assert_eq!(all[id]["imageTag"], tag.as_str(), "{id}"),
        }
    }
}

/// Whether a deploy and a deletion were acknowledged.
fn shows_every_change(ledger: &BTreeMap<String, Known>) -> bool {
    let any = |is_so: fn(&Known) -> bool| ledger.values().any(is_so);
    any(|known| matches!(known, Known::Runs(_))) && any(|known| *known == Known::Gone)
}

fn crash_again_and_again(engine: Engine) {
    let (rounds, callers) = (number("PODIUM_CRASH_ROUNDS", 2), number("PODIUM_CRASH_CALLERS", 24));
    let installation = Installation::on(engine);
    let ledger = Ledger::default();
    let serve = || installation.serve(&["--log", "error", "--lease", "10"]);
    for round in 0..rounds {
        let mut program = serve();
        let token = installation.read("owner-token");
        check(&installation, &program, &token, &ledger);
        let organization = program.organization(&token);
        let list = program.get(&format!("{organization}/workspaces"), &token).json();
        let workspace = list["workspaces"][0]["id"].as_str().unwrap().to_owned();
        let acknowledged = AtomicUsize::new(0);
        let moment = RandomState::new().hash_one(round) as usize % (callers * 6) + callers * 2;
        std::thread::scope(|scope| {
            for number in 0..callers {
                let client = Client {
                    caller: Caller::new(&program, &token),
                    deployments: format!("{organization}/deployments"),
                    workspace: &workspace,
                    ledger: &ledger,
                    acknowledged: &acknowledged,
                };
                scope.spawn(move || client.work(&format!("{round} {number}")));
            }
            // The last round goes on until every kind of change was seen. A moment that never comes is no reason to
            // wait for ever.
            let must_show = round + 1 == rounds;
            let enough = || {
                acknowledged.load(Ordering::SeqCst) >= moment
                    && (!must_show || shows_every_change(&ledger.lock().unwrap()))
            };
            let started = Instant::now();
            while !enough() && started.elapsed() < LONGEST_ROUND {
                std::thread::yield_now();
            }
            program.crash();
        });
        let known = ledger.lock().unwrap();
        let changes = acknowledged.load(Ordering::SeqCst);
        eprintln!("{engine:?}, round {round}: killed after {changes} changes, {} known", known.len());
    }
    let program = serve();
    let token = installation.read("owner-token");
    check(&installation, &program, &token, &ledger);
    let known = ledger.lock().unwrap();
    assert!(shows_every_change(&known), "{known:?}");
    program.stop();
}

#[test]
fn a_crash_leaves_every_deployment_as_requested_on_sqlite() {
    crash_again_and_again(Engine::Sqlite);
}

#[test]
fn a_crash_leaves_every_deployment_as_requested_on_postgres() {
    crash_again_and_again(Engine::Postgres);
}
