//! Every operation as nobody, with a broken token, as a stranger, as a member without the permission, and as
//! the holder of exactly that permission. Where the permission is a gate, the holder has the rights behind it too; one
//! who is let in and has every other right there is refused. What is different stands in `exceptions.txt`, which may
//! only shrink.

use std::collections::BTreeMap;

use podium_api::{Access, ENDPOINTS};
use podium_domain::{On, PermissionSet};
use podium_testkit::{Actor, Answer, TestApp, on_both_engines};

use super::calls::{Prepared, fresh, prepare};

const EXCEPTIONS: &str = include_str!("exceptions.txt");
const MOST_EXCEPTIONS: usize = 41;
const STEPS: [&str; 6] = ["nobody", "malformed", "stranger", "member", "let-in", "holder"];

on_both_engines! {
    async fn every_operation_admits_exactly_those_who_hold_its_permission(app) {
        let mut exceptions = exceptions();
        let stranger = app.stranger().await;
        for endpoint in ENDPOINTS {
            for step in STEPS {
                let prepared = prepare(&app, endpoint).await;
                if step == "let-in" && prepared.behind_gate.is_none() {
                    continue;
                }
                let answer = take(&app, &prepared, step, &stranger).await;
                let usual = usual(&prepared, step, &answer);
                match exceptions.remove(&(endpoint.id, step)) {
                    Some(status) => {
                        assert_eq!(answer.code(), status, "{} as {step}: {}", endpoint.id, answer.text());
                        assert!(!usual, "{} as {step} is no exception any more: strike it out", endpoint.id);
                    }
                    None => assert!(usual, "{} as {step}: {} {}", endpoint.id, answer.code(), answer.text()),
                }
            }
        }
        assert_eq!(exceptions, BTreeMap::new(), "these are exceptions to nothing");
    }

    async fn workspaces_and_deployments_are_unknown_to_members_who_hold_nothing_there(app) {
        let member = app.member("plain").await;
        let mut walked = 0;
        for endpoint in ENDPOINTS {
            let prepared = prepare(&app, endpoint).await;
            if prepared.on == On::Organization {
                continue;
            }
            let thing = if matches!(prepared.on, On::Workspace(_)) { "workspace" } else { "deployment" };
            let answer = prepared.send(prepared.call(&app).by(&member)).await;
            let message = answer.refused(404);
            assert_eq!(message, format!("There is no such {thing}, or you may not see it."), "{}", endpoint.id);
            walked += 1;
        }
        assert!(walked >= 23, "{walked}");
    }

    async fn a_caller_of_another_organization_cannot_tell_existing_from_missing_resources(app) {
        let stranger = app.stranger().await;
        for endpoint in ENDPOINTS.iter().filter(|endpoint| matches!(endpoint.access, Access::Member | Access::Permission(_))) {
            let real = prepare(&app, endpoint).await;
            let organization_id = app.organization_id.as_str();
            let path = real.path.replace(organization_id, &fresh(&app));
            let call = |path: &str| {
                app.call(endpoint.method.as_str(), path).by(&stranger).header("x-request-id", "same")
            };
            let (seen, unseen) = (call(&real.path).send().await, call(&path).send().await);
            assert_eq!((seen.code(), seen.json()), (404, unseen.json()), "{}", endpoint.id);
            assert_eq!(seen.headers, unseen.headers, "{}", endpoint.id);
        }
    }
}

async fn take(app: &TestApp, prepared: &Prepared, step: &str, stranger: &Actor) -> Answer {
    let call = prepared.call(app);
    let call = match step {
        "nobody" => call,
        "malformed" => call.header("authorization", "Bearer not.a.token"),
        "stranger" => call.by(&app.session_of(stranger).await),
        "member" => call.by(&app.session_of(&everything_but_it(app, prepared).await).await),
        "let-in" => call.by(&app.session_of(&nothing_behind_the_gate(app, prepared).await).await),
        _ => match prepared.endpoint.access {
            Access::Public => call,
            Access::Agent => call.by(prepared.caller(stranger)),
            Access::Token | Access::Member | Access::Permission(_) => {
                call.by(&app.session_of(&nothing_but_it(app, prepared).await).await)
            }
        },
    };
    prepared.send(call).await
}

async fn nothing_but_it(app: &TestApp, prepared: &Prepared) -> Actor {
    let permissions = prepared.permission().into_iter().collect();
    holder(app, prepared, permissions, prepared.behind_gate.clone()).await
}

async fn nothing_behind_the_gate(app: &TestApp, prepared: &Prepared) -> Actor {
    let gate = prepared.permission().into_iter().collect();
    let others = |(rights, on)| (PermissionSet::everything().without(rights), on);
    holder(app, prepared, gate, prepared.behind_gate.clone().map(others)).await
}

/// One who holds the permissions where the operation asks first, and others behind its gate.
async fn holder(
    app: &TestApp,
    prepared: &Prepared,
    first: PermissionSet,
    behind: Option<(PermissionSet, On)>,
) -> Actor {
    let held = match behind {
        Some((others, on)) if on == prepared.on => vec![(first.union(others), on)],
        Some(others) => vec![(first, prepared.on.clone()), others],
        None => vec![(first, prepared.on.clone())],
    };
    app.holder_of_each(&fresh(app), held).await
}

async fn everything_but_it(app: &TestApp, prepared: &Prepared) -> Actor {
    let permissions = PermissionSet::everything().without(prepared.permission().into_iter().collect());
    app.holder_of_all(&fresh(app), permissions, prepared.on.clone()).await
}

/// Whether the answer is what the step leads one to expect.
fn usual(prepared: &Prepared, step: &str, answer: &Answer) -> bool {
    let access = prepared.endpoint.access;
    let says = |word: &str| answer.code() == 401 && answer.refused(401).contains(word);
    match step {
        "nobody" => says("missing"),
        "malformed" => says("malformed"),
        // Whoever is no agent is told so, whatever the path names.
        "stranger" if access == Access::Agent => answer.code() == 403,
        "stranger" => answer.code() == 404,
        "let-in" => [403, 404].contains(&answer.code()),
        "member" | "holder" if prepared.is_makers_own() => answer.code() == 404,
        "member" if access != Access::Member => answer.code() == 403,
        // Every member is let in, and sees only what it holds rights on.
        "member" if prepared.behind_gate.is_some() => answer.code() == 404,
        _ => answer.status.is_success(),
    }
}

/// Statuses by operation and step; the rest of a line says why.
fn exceptions() -> BTreeMap<(&'static str, &'static str), u16> {
    let lines: Vec<&str> = EXCEPTIONS.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() <= MOST_EXCEPTIONS, "the list of exceptions may only shrink");
    let read = |line: &'static str| {
        let mut words = line.split_whitespace();
        let mut word = || words.next().expect("a line is: operation, step, status, why");
        let (operation, step, status) = (word(), word(), word().parse().expect("a status"));
        assert!(words.next().is_some(), "`{line}` does not say why");
        ((operation, step), status)
    };
    let read: BTreeMap<_, _> = lines.iter().copied().map(read).collect();
    assert_eq!(read.len(), lines.len(), "an exception is listed twice");
    read
}
