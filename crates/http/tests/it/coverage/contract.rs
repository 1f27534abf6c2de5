//! The document and the server say the same: every answer of every walk is one that the document describes.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use podium_api::openapi::Document;
use podium_api::{Access, Description, ENDPOINTS};
use podium_domain::Permission;
use podium_testkit::{Answer, on_both_engines};
use serde_json::{Map, Value};

use super::calls::{fresh, prepare};
use super::schema::violations;

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| Document::collect().to_json("https://podium.test/v1"));

/// Fails unless the document describes this answer of the operation: status, content type, headers and body.
#[track_caller]
pub(super) fn describes(endpoint: &Description, answer: &Answer) {
    let wrong = differences(endpoint, answer);
    assert!(wrong.is_empty(), "{} answered {}: {wrong:#?}\n{}", endpoint.id, answer.code(), answer.text());
}

fn differences(endpoint: &Description, answer: &Answer) -> Vec<String> {
    let response = &operation(endpoint)["responses"][answer.code().to_string()];
    if response.is_null() {
        return vec!["the document does not declare the status".into()];
    }
    let mut wrong = Vec::new();
    let mut require = |holds: bool, otherwise: &str| {
        if !holds {
            wrong.push(otherwise.to_owned());
        }
    };
    require(!answer.header("x-request-id").is_empty(), "there is no X-Request-Id");
    let has_etag = !answer.header("etag").is_empty();
    require(response["headers"]["ETag"].is_null() || has_etag, "there is no ETag");
    require((answer.code() == 401) == (answer.header("www-authenticate") == "Bearer"), "WWW-Authenticate");
    let content = response["content"].as_object().and_then(|content| content.iter().next());
    let Some((media, described)) = content else {
        require(answer.bytes.is_empty(), "there is a body");
        require(answer.header("content-type").is_empty(), "there is a content type");
        return wrong;
    };
    require(answer.header("content-type") == media, "the content type is another");
    if media == "application/json" {
        wrong.extend(violations(&described["schema"], schemas(), &answer.json()));
    }
    wrong
}

fn operation(endpoint: &Description) -> &'static Value {
    &DOCUMENT["paths"][endpoint.path][endpoint.method.as_str().to_lowercase()]
}

/// Every operation that the document describes, by its id.
pub(super) fn operations() -> impl Iterator<Item = (&'static str, &'static Value)> {
    let paths = DOCUMENT["paths"].as_object().expect("paths").values();
    let methods = paths.flat_map(|path| path.as_object().expect("methods").values());
    methods.map(|operation| (operation["operationId"].as_str().expect("an id"), operation))
}

/// The schemas that the document names.
pub(super) fn schemas() -> &'static Map<String, Value> {
    DOCUMENT["components"]["schemas"].as_object().expect("named schemas")
}

#[test]
fn every_operation_is_described_once_under_its_own_id() {
    let ids: BTreeSet<&str> = ENDPOINTS.iter().map(|endpoint| endpoint.id).collect();
    assert_eq!(ids.len(), ENDPOINTS.len());
    let places: BTreeSet<_> = ENDPOINTS.iter().map(|endpoint| (endpoint.path, endpoint.method)).collect();
    assert_eq!(places.len(), ENDPOINTS.len());
    for endpoint in ENDPOINTS {
        assert_eq!(operation(endpoint)["operationId"], endpoint.id);
        assert!(!endpoint.tag.is_empty() && !endpoint.summary.is_empty(), "{}", endpoint.id);
    }
    let described = DOCUMENT["paths"].as_object().expect("paths").values();
    let count: usize = described.map(|path| path.as_object().expect("methods").len()).sum();
    assert_eq!(count, ENDPOINTS.len() + 1, "uploads are described too, and are no operation");
}

#[test]
fn every_path_names_the_parameters_that_are_bound() {
    for endpoint in ENDPOINTS {
        let named: Vec<&str> =
            endpoint.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).collect();
        assert_eq!(named, endpoint.path_params, "{}", endpoint.id);
    }
}

#[test]
fn every_operation_inside_an_organization_is_for_its_members_or_takes_a_known_permission() {
    for endpoint in ENDPOINTS {
        let inside = endpoint.path.starts_with("/organizations/{organizationId}");
        match endpoint.access {
            Access::Permission(name) => {
                assert!(Permission::named(name).is_some(), "{name}");
                assert!(inside, "{} has no organization to hold a permission in", endpoint.id);
            }
            Access::Member => assert!(inside, "{} has no organization to be a member of", endpoint.id),
            Access::Agent => assert!(inside, "{} has no deployment to be an agent of", endpoint.id),
            Access::Token | Access::Public => assert!(!inside, "{} is open to strangers", endpoint.id),
        }
    }
}

#[test]
fn every_schema_that_is_referred_to_is_there() {
    let text = DOCUMENT.to_string();
    let names = text.split("#/components/schemas/").skip(1).filter_map(|rest| rest.split('"').next());
    let unknown: BTreeSet<&str> = names.filter(|name| !schemas().contains_key(*name)).collect();
    assert_eq!(unknown, BTreeSet::new());
}

on_both_engines! {
    /// Walks elsewhere see successes and refusals; here are the ways in which a request can be wrong.
    async fn every_error_response_is_as_documented(app) {
        for endpoint in ENDPOINTS {
            let prepared = prepare(&app, endpoint).await;
            let caller = prepared.caller(&app.owner);
            let right = || prepared.call(&app).by(caller);
            let bare = |path: &str| app.call(endpoint.method.as_str(), path).by(caller);
            let typed = || bare(&prepared.path).header("content-type", "application/json");
            let mut wrong = vec![(400, right().header("x-api-version", "0.9"))];
            if endpoint.takes_idempotency_key() {
                wrong.push((400, right().header("idempotency-key", &"k".repeat(256))));
            }
            if parameters(endpoint).contains(&"limit") {
                wrong.push((400, bare(&format!("{}?limit=-1", prepared.path))));
            }
            if parameters(endpoint).contains(&"offset") {
                wrong.push((400, bare(&format!("{}?offset=all&sorts=mood:asc", prepared.path))));
            }
            if prepared.body.is_some() {
                wrong.push((400, bare(&prepared.path)));
                wrong.push((400, typed().body("{")));
                wrong.push((400, typed().body("[]")));
                wrong.push((413, typed().body(vec![b' '; 1024 * 1024 + 1])));
                wrong.push((415, bare(&prepared.path).header("content-type", "text/plain").body("{}")));
            }
            if endpoint.path_params.len() > 1 && endpoint.path.ends_with('}') {
                let (above, _) = prepared.path.rsplit_once('/').expect("a path has parts");
                let nowhere = bare(&format!("{above}/{}", fresh(&app)));
                wrong.push((404, nowhere.json(prepared.body.as_ref().unwrap_or(&Value::Null))));
            }
            for (expected, call) in wrong {
                let answer = prepared.send(call).await;
                assert_eq!(answer.code(), expected, "{}: {}", endpoint.id, answer.text());
            }
        }
    }
}

/// The names of an operation's parameters.
pub(super) fn parameters(endpoint: &Description) -> Vec<&'static str> {
    let parameters = operation(endpoint)["parameters"].as_array().expect("parameters");
    parameters.iter().filter_map(|parameter| parameter["name"].as_str()).collect()
}

/// The schema of a parameter of an operation.
pub(super) fn parameter(endpoint: &Description, name: &str) -> Option<&'static Value> {
    let parameters = operation(endpoint)["parameters"].as_array().expect("parameters");
    parameters.iter().find(|parameter| parameter["name"] == name).map(|parameter| &parameter["schema"])
}
