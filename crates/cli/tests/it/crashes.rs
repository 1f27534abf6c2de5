//! Acknowledged writes survive a crash, and stored data is complete.

mod deployments;
mod events;

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use serde_json::{Value, json};

use crate::program::{Caller, Installation, Program};

const ROUNDS: usize = 3;
const WRITERS: usize = 8;
const ENOUGH: usize = 300;

/// Creates workspaces over one connection until it breaks.
fn create(mut caller: Caller, organization: &str, prefix: &str, made: &dyn Fn(String)) {
    for number in 0.. {
        let name = format!("{prefix} {number}");
        let body = json!({ "name": name });
        match caller.call("POST", &format!("{organization}/workspaces"), Some(&body)) {
            Some((200, _)) => made(name),
            _ => return,
        }
    }
}

fn workspaces(program: &Program, organization: &str, token: &str) -> HashSet<String> {
    let mut names = HashSet::new();
    loop {
        let path = format!("{organization}/workspaces?sorts=name:asc&limit=1000&offset={}", names.len());
        let page = program.get(&path, token).json();
        let items: Vec<Value> = page["workspaces"].as_array().unwrap().clone();
        if items.is_empty() {
            assert_eq!(page["totalCount"], names.len());
            return names;
        }
        names.extend(items.iter().map(|item| item["name"].as_str().unwrap().to_owned()));
    }
}

#[test]
fn a_crash_loses_nothing_that_was_acknowledged() {
    let installation = Installation::new();
    let made: Mutex<HashSet<String>> = Mutex::new(HashSet::from(["Default".into()]));
    for round in 0..ROUNDS {
        let mut program = installation.serve(&["--log", "warn"]);
        let token = installation.read("owner-token");
        let organization = program.organization(&token);
        let before = workspaces(&program, &organization, &token);
        assert!(made.lock().unwrap().is_subset(&before));
        let count = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let start = |writer: usize| {
                let caller = Caller::new(&program, &token);
                let (organization, made, count) = (&organization, &made, &count);
                scope.spawn(move || {
                    create(caller, organization, &format!("{round} {writer}"), &|name| {
                        made.lock().unwrap().insert(name);
                        count.fetch_add(1, Ordering::SeqCst);
                    });
                })
            };
            let writers: Vec<_> = (0..WRITERS).map(start).collect();
            while count.load(Ordering::SeqCst) < ENOUGH {
                assert!(!writers.iter().any(ScopedJoinHandle::is_finished), "a writer gave up");
                std::thread::yield_now();
            }
            program.crash();
        });
    }
    let program = installation.serve(&[]);
    let token = installation.read("owner-token");
    let after = workspaces(&program, &program.organization(&token), &token);
    let made = made.into_inner().unwrap();
    assert!(made.len() > ROUNDS * ENOUGH);
    let lost: Vec<&String> = made.difference(&after).collect();
    assert!(lost.is_empty(), "lost: {lost:?}");
    // One request of each writer may have been committed without being acknowledged.
    assert!(after.len() - made.len() <= ROUNDS * WRITERS);
    program.stop();
}
