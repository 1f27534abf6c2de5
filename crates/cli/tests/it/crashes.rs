//! What was acknowledged is there after a crash, and what is there is whole.

use std::collections::HashSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

use serde_json::{Value, json};

use crate::program::{Installation, Program, request};

const ROUNDS: usize = 3;
const WRITERS: usize = 8;
const ENOUGH: usize = 300;

/// Creates workspaces over one connection until it breaks.
fn create(stream: TcpStream, organization: &str, token: &str, prefix: &str, made: &dyn Fn(String)) {
    let Ok(answers) = stream.try_clone() else { return };
    let (mut stream, mut answers) = (stream, BufReader::new(answers));
    let head = format!("Authorization: Bearer {token}\r\n");
    for number in 0.. {
        let name = format!("{prefix} {number}");
        let request =
            request("POST", &format!("{organization}/workspaces"), &head, Some(&json!({ "name": name })));
        if stream.write_all(&request).is_err() || !is_acknowledged(&mut answers) {
            return;
        }
        made(name);
    }
}

/// Whether a whole answer came, and a good one.
fn is_acknowledged(answers: &mut BufReader<TcpStream>) -> bool {
    let (mut line, mut length, mut is_good) = (String::new(), 0, false);
    loop {
        line.clear();
        if !answers.read_line(&mut line).is_ok_and(|read| read > 0) {
            return false;
        }
        is_good |= line.starts_with("HTTP/1.1 200");
        if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
        if line == "\r\n" {
            return answers.read_exact(&mut vec![0; length]).is_ok() && is_good;
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
                let stream = program.connect();
                let (organization, token, made, count) = (&organization, &token, &made, &count);
                scope.spawn(move || {
                    create(stream, organization, token, &format!("{round} {writer}"), &|name| {
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
