//! Links of a project: environment objects of the workspace that its deployment is to be given.
//!
//! Links are only ever added. Who may deploy but not read the workspace's objects is asked for nothing, as long as the deployment is
//! given everything already.

use std::collections::BTreeSet;
use std::fmt;

use podium_api::enums::EnvironmentObjectType;
use podium_api::environment_objects as api;
use podium_api::path::{OfDeployment, OfEnvironmentObject};
use podium_client::Call;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::client::edit::pick;
use crate::client::ending::Outcome;
use crate::client::fields::given;
use crate::client::names::{MOST_NAMES, most_alike};
use crate::client::session::{Session, text};

/// `KEY`, or `TYPE/KEY` where objects of several types have the same key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Link {
    kind: Option<EnvironmentObjectType>,
    key: String,
}

/// A text that names no object.
#[derive(Debug)]
pub(super) struct NoKey;

impl fmt::Display for NoKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a link is the key of an environment object, or TYPE/KEY, such as CONNECTION/warehouse")
    }
}

impl TryFrom<String> for Link {
    type Error = NoKey;

    fn try_from(text: String) -> Result<Self, NoKey> {
        // Keys of connections may have slashes of their own.
        let typed = text.split_once('/').and_then(|(kind, key)| {
            let kind = kind.to_uppercase().parse().ok()?;
            Some(Self { kind: Some(kind), key: key.to_owned() })
        });
        let link = typed.unwrap_or(Self { kind: None, key: text });
        if link.key.is_empty() { Err(NoKey) } else { Ok(link) }
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            Some(kind) => write!(f, "{kind}/{}", self.key),
            None => f.write_str(&self.key),
        }
    }
}

impl Link {
    fn names(&self, kind: &str, key: &str) -> bool {
        self.key == key && self.kind.is_none_or(|wanted| wanted.as_str() == kind)
    }
}

/// An object that a deployment is to be given, and is not.
pub(super) struct Unlinked {
    path: OfEnvironmentObject,
    pub(super) name: String,
}

/// The objects that a deployment is not given yet; what cannot be found is added to the problems.
pub(super) async fn lacking(
    session: &Session,
    links: &[Link],
    deployment: &Value,
    problems: &mut Vec<String>,
) -> Outcome<Vec<Unlinked>> {
    let mut lacking: Vec<Unlinked> = Vec::new();
    if links.is_empty() {
        return Ok(lacking);
    }
    let organization = session.in_organization().await?;
    let list = |params: Value| Call::to::<api::List>(&organization).query_params(&given(params));
    let has = match deployment.get("id") {
        Some(id) => keys(session, list(json!({ "deploymentId": id, "resolveLinked": true }))?, None).await?,
        None => BTreeSet::new(),
    };
    let workspace = deployment.get("workspaceId");
    let mut known = None;
    for link in links {
        if has.iter().any(|(kind, key)| link.names(kind, key)) {
            continue;
        }
        let Some(workspace) = workspace else {
            problems.push(format!("links: {link} cannot be linked: the workspace does not exist yet"));
            continue;
        };
        let params = json!({ "workspaceId": workspace, "objectKey": link.key, "objectType": link.kind });
        let mut pages = session.client.pages(list(params)?, None);
        let mut found = Vec::new();
        while let Some(page) = pages.next().await? {
            found.extend(page.into_iter().filter(|object| object["scope"] == "WORKSPACE"));
        }
        match found.as_slice() {
            [only] => {
                if let Some(unlinked) = unlinked(session, link, only, deployment).await? {
                    lacking.push(unlinked);
                }
            }
            [] => {
                if known.is_none() {
                    let call = list(json!({ "workspaceId": workspace }))?;
                    known = Some(keys(session, call, Some(MOST_NAMES)).await?);
                }
                let names: Vec<String> = known.iter().flatten().map(|(_, key)| key.clone()).collect();
                problems.push(match most_alike(&names, &link.key) {
                    Some(name) => format!("links: no environment object has the key {link}: did you mean {name}?"),
                    None => format!(
                        "links: no environment object that you may see has the key {link}: create it with podium env create, or \
                         correct the key"
                    ),
                });
            }
            several => {
                let names =
                    several.iter().map(|object| format!("{}/{}", text(&object["objectType"]), link.key));
                let names = names.collect::<Vec<_>>().join(" or ");
                problems.push(format!("links: {link} is the key of several objects: write {names}"));
            }
        }
    }
    Ok(lacking)
}

/// An object of the workspace, unless it reaches the deployment already.
async fn unlinked(
    session: &Session,
    link: &Link,
    object: &Value,
    deployment: &Value,
) -> Outcome<Option<Unlinked>> {
    let is_here = |list: &str| {
        let ids = object[list].as_array().into_iter().flatten().map(|entry| entry.get("scopeEntityId"));
        deployment.get("id").is_some_and(|id| ids.into_iter().any(|known| known == Some(id)))
    };
    let is_for_all = object["autoLinkDeployments"] == json!(true) && !is_here("excludeLinks");
    if is_for_all || is_here("links") {
        return Ok(None);
    }
    let path = session.object(&json!({}), text(&object["id"])).await?;
    Ok(Some(Unlinked { path, name: link.to_string() }))
}

/// Types and keys of a list.
async fn keys(session: &Session, call: Call, most: Option<u64>) -> Outcome<BTreeSet<(String, String)>> {
    let mut pages = session.client.pages(call, most);
    let mut keys = BTreeSet::new();
    while let Some(page) = pages.next().await? {
        let pair = |item: &Value| (text(&item["objectType"]).to_owned(), text(&item["objectKey"]).to_owned());
        keys.extend(page.iter().map(pair));
    }
    Ok(keys)
}

/// Gives an object to a deployment.
pub(super) async fn add(session: &Session, object: &Unlinked, deployment: &OfDeployment) -> Outcome {
    let id = deployment.deployment_id.to_string();
    let edit = |current: &Value| Ok(with_link(current, &id));
    session.edit::<api::Get, api::Update>(&object.path, edit).await.map(drop)
}

/// The change that adds a link: the others stay, and a link that is sent without overrides keeps those that it has.
fn with_link(object: &Value, id: &str) -> Value {
    let own = json!({ "scope": "DEPLOYMENT", "scopeEntityId": id });
    let others = |list: &str| -> Vec<Value> {
        let entries = object[list].as_array().into_iter().flatten();
        let others = entries.filter(|entry| text(&entry["scopeEntityId"]) != id);
        others.map(|entry| Value::Object(pick(entry, &["scope", "scopeEntityId"]))).collect()
    };
    let mut links = others("links");
    links.push(own);
    let mut change = json!({ "links": links });
    let excluded = others("excludeLinks");
    if object["excludeLinks"].as_array().is_some_and(|all| all.len() > excluded.len()) {
        change["excludeLinks"] = excluded.into();
    }
    change
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_can_stand_before_the_key() {
        let table = [
            ("warehouse", None, "warehouse"),
            ("connection/warehouse", Some("CONNECTION"), "warehouse"),
            ("CONNECTION/db/main", Some("CONNECTION"), "db/main"),
            ("db/main", None, "db/main"),
        ];
        for (text, kind, key) in table {
            let link = Link::try_from(text.to_owned()).unwrap();
            assert_eq!((link.kind.map(EnvironmentObjectType::as_str), link.key.as_str()), (kind, key));
        }
        assert!(Link::try_from(String::new()).is_err());
        assert!(Link::try_from("CONNECTION/".to_owned()).is_err());
        let link = Link::try_from("connection/a".to_owned()).unwrap();
        assert_eq!(link.to_string(), "CONNECTION/a");
        assert!(link.names("CONNECTION", "a") && !link.names("AIRFLOW_VARIABLE", "a"));
    }

    #[test]
    fn a_link_is_added_next_to_the_others() {
        let entry = |id: &str| json!({ "scope": "DEPLOYMENT", "scopeEntityId": id });
        let other = json!({ "scope": "DEPLOYMENT", "scopeEntityId": "a", "setFields": ["host"], "connectionOverrides": { "host": "h" } });
        let object = json!({ "links": [other], "excludeLinks": [entry("b")] });
        assert_eq!(with_link(&object, "c"), json!({ "links": [entry("a"), entry("c")] }));
        assert_eq!(with_link(&object, "a"), json!({ "links": [entry("a")] }), "it is there already");
        let lifted = json!({ "links": [entry("a"), entry("b")], "excludeLinks": [] });
        assert_eq!(with_link(&object, "b"), lifted, "no deployment is both linked and excluded");
    }
}
