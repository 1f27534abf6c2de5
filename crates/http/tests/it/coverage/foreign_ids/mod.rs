//! An id of something that the caller may not know is like one that nobody has.
//!
//! Every id in a path, a query and a body of every operation is replaced by one of another organization, by one of a
//! workspace that the caller may not see, and by one that does not exist; the answers must be the same. Which ids there
//! are follows from the document. What the walk does not reach is in `unreached.txt`, which may only shrink.

mod bodies;
mod places;
mod sites;

use std::collections::BTreeSet;

use podium_api::{Access, Description, ENDPOINTS};
use podium_domain::On;
use podium_domain::plans::can_be_planned;
use podium_testkit::{Actor, Answer, TestApp, on_both_engines, role};
use serde_json::{Value, json};

use super::calls::{Prepared, fresh, owner, prepare};
use super::contract;
use bodies::{Shape, naming};
use places::Place;
use sites::{Part, Site, put, sites};

const UNREACHED: &str = include_str!("unreached.txt");
const MOST_UNREACHED: usize = 10;

/// What a member may not see of a workspace in which it holds nothing.
const UNSEEN: [&str; 12] = [
    "agentTokenId",
    "clusterId",
    "deployId",
    "deploymentId",
    "environmentObjectId",
    "nodePoolId",
    "operationId",
    "planId",
    "searchId",
    "tokenId",
    "workerQueueId",
    "workspaceId",
];

on_both_engines! {
    async fn ids_of_another_organization_are_like_ids_of_nothing(app) {
        let others = Place::closed(&app.elsewhere().await).await;
        let walk = Walk { app: &app, own: Place::open(&app).await, others, is_owner: true };
        walk.everywhere().await;
    }

    async fn ids_of_an_unseen_workspace_are_like_ids_of_nothing(app) {
        let others = Place::closed(&app).await.only(&UNSEEN);
        let walk = Walk { app: &app, own: Place::open(&app).await, others, is_owner: false };
        walk.everywhere().await;
    }
}

struct Walk<'a> {
    app: &'a TestApp,
    /// What the caller sees.
    own: Place,
    /// What the caller may not know of.
    others: Place,
    /// Whether an owner calls, or one who owns only workspaces.
    is_owner: bool,
}

/// A call that was prepared, and who makes it.
struct Ready {
    prepared: Prepared,
    caller: Actor,
    shapes: Vec<Shape>,
}

impl Walk<'_> {
    async fn everywhere(&self) {
        crate::events::settled(self.app).await;
        let (mut unreached, mut differences) = (BTreeSet::new(), Vec::new());
        for (id, operation) in contract::operations() {
            let endpoint = ENDPOINTS.iter().find(|endpoint| endpoint.id == id);
            for site in sites(operation, contract::schemas()) {
                let is_reached = match endpoint {
                    Some(endpoint) => self.at(endpoint, &site, operation, &mut differences).await,
                    None => false,
                };
                if !is_reached {
                    unreached.insert(format!("{id} {site}"));
                }
            }
        }
        if !self.is_owner {
            unreached = listed();
        }
        let differences = differences.join("\n");
        assert_eq!((unreached, &*differences), (listed(), ""), "places not reached, and ids told apart");
    }

    /// Replaces the id in one place; returns whether the walk knows how.
    async fn at(
        &self,
        endpoint: &'static Description,
        site: &Site,
        operation: &Value,
        differences: &mut Vec<String>,
    ) -> bool {
        let others = self.others.fitting(site);
        let mut ready = self.ready(endpoint, site, operation).await;
        if self.is_owner && site.part != Part::Path {
            if !self.takes_own(endpoint, &ready, site).await {
                return false;
            }
            if endpoint.method.as_str() != "GET" {
                ready = self.ready(endpoint, site, operation).await;
            }
        }
        for number in 0..ready.shapes.len() {
            for other in &others {
                let nothing = fresh(self.app);
                let mut told = Vec::new();
                for id in [*other, &nothing] {
                    let shape = ready.shapes[number].clone();
                    told.push(self.planned(endpoint, &ready, &shape, site, id).await);
                    let answer = self.send(endpoint, &ready, &shape, site, id).await;
                    let is_changed = answer.status.is_success() && endpoint.method.as_str() != "GET";
                    told.push(self.told(&answer, id, is_changed));
                    if is_changed {
                        ready = self.ready(endpoint, site, operation).await;
                    }
                }
                let shape = &ready.shapes[number];
                if told[..2] != told[2..] {
                    let asked = format!("{} {site}: {other} in {} {}", endpoint.id, shape.path, shape.body);
                    differences.push(format!("{asked}\n{:#?}\n{:#?}", &told[..2], &told[2..]));
                }
            }
        }
        !ready.shapes.is_empty()
    }

    /// Whether a call with an id of what the caller sees is taken: if not, another id proves nothing.
    async fn takes_own(&self, endpoint: &Description, ready: &Ready, site: &Site) -> bool {
        for shape in &ready.shapes {
            for id in self.own.fitting(site) {
                let answer = self.send(endpoint, ready, shape, site, id).await;
                if answer.status.is_success() {
                    return true;
                }
            }
        }
        false
    }

    /// Prepares the calls that have an id in this place.
    async fn ready(&self, endpoint: &'static Description, site: &Site, operation: &Value) -> Ready {
        let prepared = prepare(self.app, endpoint).await;
        let minimal = Shape { path: prepared.path.clone(), body: prepared.body.clone().unwrap_or_default() };
        let shapes = match site.part {
            Part::Path => vec![minimal],
            Part::Query => queries(&minimal, operation),
            Part::Body => naming(self.app, &self.own, endpoint.id, &prepared, &site.field).await,
        };
        let usual = if self.is_owner { owner(self.app).await } else { self.insider(&prepared).await };
        let caller = prepared.caller(&usual).clone();
        Ready { prepared, caller, shapes }
    }

    /// One who holds the most that one can hold who is no owner: at large, in its own place, and where the call needs it.
    async fn insider(&self, prepared: &Prepared) -> Actor {
        let mut places = BTreeSet::from([On::Workspace(self.own.workspace()), prepared.on.clone()]);
        places.extend(prepared.behind_gate.iter().map(|(_, on)| on.clone()));
        places.remove(&On::Organization);
        let mut held = vec![role(On::Organization, "ORGANIZATION_BILLING_ADMIN")];
        held.extend(places.into_iter().map(|on| match on {
            On::Workspace(_) => role(on, "WORKSPACE_OWNER"),
            on => role(on, "DEPLOYMENT_ADMIN"),
        }));
        self.app.user_with(&fresh(self.app), held).await
    }

    async fn send(
        &self,
        endpoint: &Description,
        ready: &Ready,
        shape: &Shape,
        site: &Site,
        id: &str,
    ) -> Answer {
        let (path, body) = with(endpoint, shape, site, id);
        let call =
            self.app.call(endpoint.method.as_str(), &path).by(&ready.caller).header("x-request-id", "same");
        let call = if ready.prepared.body.is_some() { call.json(&body) } else { call };
        ready.prepared.send(call).await
    }

    /// What is told of the same call in a plan.
    async fn planned(
        &self,
        endpoint: &Description,
        ready: &Ready,
        shape: &Shape,
        site: &Site,
        id: &str,
    ) -> Value {
        if !can_be_planned(endpoint) || endpoint.access == Access::Agent {
            return Value::Null;
        }
        let (path, body) = with(endpoint, shape, site, id);
        let body = if ready.prepared.body.is_some() { body } else { Value::Null };
        let plan = json!({ "calls": [{ "method": endpoint.method.as_str(), "path": path, "body": body }] });
        let call = self.app.call("POST", &self.app.path("/plans")).by(&ready.caller);
        let answer = call.header("x-request-id", "same").json(&plan).send().await;
        self.told(&answer, id, true)
    }

    /// What an answer tells apart from the id that was asked for. Where something was made, what is made up for it, and
    /// all ids are alike.
    fn told(&self, answer: &Answer, id: &str, is_made: bool) -> Value {
        let text = answer.text();
        let secrets = self.others.all().filter(|secret| *secret != id && text.contains(*secret));
        let secrets: Vec<&str> = secrets.collect();
        let own_headers = ["etag", "content-length", "podium-operation"];
        let headers: Vec<String> = answer
            .headers
            .iter()
            .filter(|(name, _)| !is_made || !own_headers.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}: {value:?}"))
            .collect();
        let body = text.replace(id, "{id}");
        let body = serde_json::from_str(&body).unwrap_or(Value::String(body));
        // A new search has a new id.
        let body = if is_made || body["searchId"].is_string() { without_chance(body) } else { body };
        json!([answer.code(), headers, body, secrets])
    }
}

/// The call with an id in the place.
fn with(endpoint: &Description, shape: &Shape, site: &Site, id: &str) -> (String, Value) {
    let (mut path, mut body) = (shape.path.clone(), shape.body.clone());
    match site.part {
        Part::Path => path = with_parameter(endpoint, &path, &site.field, id),
        Part::Query => {
            let joint = if path.contains('?') { '&' } else { '?' };
            path = format!("{path}{joint}{}={id}", site.field.trim_end_matches("[]"));
        }
        Part::Body => assert!(put(&mut body, &site.field, id), "{site} is in {body}"),
    }
    (path, body)
}

fn with_parameter(endpoint: &Description, path: &str, name: &str, id: &str) -> String {
    let (path, query) =
        path.split_once('?').map_or((path, String::new()), |(path, query)| (path, format!("?{query}")));
    let template = format!("{}{}", podium_api::openapi::PREFIX, endpoint.path);
    let wanted = format!("{{{name}}}");
    let parts = path.split('/').zip(template.split('/'));
    let parts: Vec<&str> = parts.map(|(part, named)| if named == wanted { id } else { part }).collect();
    parts.join("/") + &query
}

/// The call as it is, and with each other parameter of its query.
fn queries(minimal: &Shape, operation: &Value) -> Vec<Shape> {
    let mut shapes = vec![minimal.clone()];
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().expect("a parameter has a name");
        if parameter["in"] != "query" || minimal.path.contains(&format!("{name}=")) {
            continue;
        }
        let values: &[&str] = match parameter["schema"]["type"].as_str() {
            Some("boolean") => &["true"],
            Some("integer") => &["0", "1"],
            Some("string") if parameter["schema"]["format"] == "date-time" => &["2020-01-01T00:00:00Z"],
            Some("string") if !name.ends_with("Id") => &["etl"],
            _ => &[],
        };
        for value in values {
            let joint = if minimal.path.contains('?') { '&' } else { '?' };
            let path = format!("{}{joint}{name}={value}", minimal.path);
            shapes.push(Shape { path, body: Value::Null });
        }
    }
    shapes
}

/// Ids are all alike, and what is random is left out.
fn without_chance(value: Value) -> Value {
    const RANDOM: [&str; 8] =
        ["token", "shortToken", "secret", "url", "imageTag", "imageRepository", "namespace", "webServerUrl"];
    let is_random = |name: &str| RANDOM.contains(&name) || name.ends_with("Url");
    match value {
        // A change that a plan shows.
        Value::Object(members) if members.get("path").and_then(Value::as_str).is_some_and(is_random) => {
            members["path"].clone()
        }
        Value::Object(members) => members
            .into_iter()
            .filter(|(name, _)| !is_random(name))
            .map(|(name, value)| (name, without_chance(value)))
            .collect(),
        Value::Array(items) => items.into_iter().map(without_chance).collect(),
        Value::String(text) => Value::String(without_ids(&text)),
        other => other,
    }
}

fn without_ids(text: &str) -> String {
    let parts = text.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
    let shown = |part: &str| {
        let word = part.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
        let is_id = word.parse::<podium_api::Id>().is_ok();
        if is_id { part.replace(word, "ID") } else { part.to_owned() }
    };
    parts.map(shown).collect()
}

/// The places that the walk does not reach: operation, part, field; the rest of a line says why.
fn listed() -> BTreeSet<String> {
    let lines: Vec<&str> = UNREACHED.lines().filter(|line| !line.starts_with('#')).collect();
    assert!(lines.len() <= MOST_UNREACHED, "the list may only shrink");
    let place = |line: &&str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        assert!(words.len() > 3, "`{line}` does not say why");
        words[..3].join(" ")
    };
    lines.iter().map(place).collect()
}
