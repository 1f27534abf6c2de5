//! Links of a project: environment objects of the workspace that its deployment is to be given.
//!
//! Links are only ever added. Who may deploy but not read the workspace's objects is asked for nothing, as long as the deployment is
//! given everything already.

use std::fmt;

use podium_api::deployments::DeploymentEnvironmentVariableRequest as Variable;
use podium_api::enums::{EnvironmentObjectScope, EnvironmentObjectType, LinkScope};
use podium_api::environment_objects::links::{
    ExcludeLinkEnvironmentObjectRequest as To, UpdateEnvironmentObjectLinkRequest,
};
use podium_api::environment_objects::{self as api, ListEnvironmentObjects, UpdateEnvironmentObjectRequest};
use podium_api::path::{OfDeployment, OfEnvironmentObject};
use podium_api::{ClusterId, DeploymentId, EnvironmentObjectId, WorkspaceId};
use serde::Deserialize;
use serde_json::Value;

use crate::client::answer::{Answer, Word};
use crate::client::ending::Outcome;
use crate::client::names::most_alike;
use crate::client::session::Session;

/// `KEY`, or `TYPE/KEY` where objects of several types have the same key.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) struct Link {
    kind: Option<EnvironmentObjectType>,
    key: String,
}

const NO_KEY: &str = "a link is the key of an environment object, or TYPE/KEY, such as CONNECTION/warehouse";

impl TryFrom<String> for Link {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        // Keys of connections may have slashes of their own.
        let typed = text.split_once('/').and_then(|(kind, key)| {
            let kind = kind.to_uppercase().parse().ok()?;
            Some(Self { kind: Some(kind), key: key.to_owned() })
        });
        let link = typed.unwrap_or(Self { kind: None, key: text });
        if link.key.is_empty() { Err(NO_KEY) } else { Ok(link) }
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
    fn names(&self, object: &Object) -> bool {
        self.key == object.object_key && self.kind.is_none_or(|wanted| object.object_type.is(wanted))
    }
}

/// What the file is compared with: a deployment, or one that is to be made.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Current {
    pub(super) id: Option<DeploymentId>,
    pub(super) workspace_id: Option<WorkspaceId>,
    pub(super) name: String,
    pub(super) cluster_id: Option<ClusterId>,
    pub(super) platform_runtime_version: String,
    pub(super) worker_queues: Value,
    pub(super) environment_variables: Vec<Variable>,
}

/// An object that a deployment is to be given, and is not.
pub(super) struct Unlinked {
    path: OfEnvironmentObject,
    pub(super) name: String,
}

/// An object, as lists show it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Object {
    id: Option<EnvironmentObjectId>,
    object_key: String,
    object_type: Word<EnvironmentObjectType>,
    scope: Word<EnvironmentObjectScope>,
    #[serde(default)]
    auto_link_deployments: bool,
    #[serde(default)]
    links: Vec<To>,
    #[serde(default)]
    exclude_links: Vec<To>,
}

/// The objects that a deployment is not given yet; what cannot be found is added to the problems.
pub(super) async fn lacking(
    session: &Session,
    links: &[Link],
    deployment: &Current,
    problems: &mut Vec<String>,
) -> Outcome<Vec<Unlinked>> {
    let mut lacking: Vec<Unlinked> = Vec::new();
    if links.is_empty() {
        return Ok(lacking);
    }
    let organization = session.in_organization().await?;
    let of_deployment = ListEnvironmentObjects {
        deployment_id: deployment.id.map(Into::into),
        resolve_linked: Some(true),
        ..Default::default()
    };
    let has: Vec<Object> = match deployment.id {
        Some(_) => session.all::<api::List, _>(&organization, &of_deployment, None).await?,
        None => Vec::new(),
    };
    let mut known = None;
    for link in links {
        if has.iter().any(|object| link.names(object)) {
            continue;
        }
        let Some(workspace) = deployment.workspace_id else {
            problems.push(format!("links: {link} cannot be linked: the workspace does not exist yet"));
            continue;
        };
        let of_workspace =
            || ListEnvironmentObjects { workspace_id: Some(workspace.into()), ..Default::default() };
        let (object_key, object_type) = (Some(link.key.clone()), link.kind);
        let query = ListEnvironmentObjects { object_key, object_type, ..of_workspace() };
        let mut found: Vec<Object> = session.all::<api::List, _>(&organization, &query, None).await?;
        found.retain(|object| object.scope.is(EnvironmentObjectScope::Workspace));
        match found.as_slice() {
            [only] => {
                let reaches = |list: &[To]| list.iter().any(|to| Some(to.scope_entity_id) == deployment.id);
                let is_for_all = only.auto_link_deployments && !reaches(&only.exclude_links);
                if let (false, Some(id)) = (is_for_all || reaches(&only.links), only.id) {
                    let organization_id = organization.organization_id;
                    let path = OfEnvironmentObject { organization_id, environment_object_id: id };
                    lacking.push(Unlinked { path, name: link.to_string() });
                }
            }
            [] => {
                if known.is_none() {
                    known = Some(session.names_of::<api::Get>(&organization, &of_workspace()).await?);
                }
                problems.push(match most_alike(known.as_deref().unwrap_or_default(), &link.key) {
                    Some(name) => format!("links: no environment object has the key {link}: did you mean {name}?"),
                    None => format!(
                        "links: no environment object that you may see has the key {link}: create it with podium env create, or \
                         correct the key"
                    ),
                });
            }
            several => {
                let names = several.iter().map(|object| format!("{}/{}", object.object_type, link.key));
                let names = names.collect::<Vec<_>>().join(" or ");
                problems.push(format!("links: {link} is the key of several objects: write {names}"));
            }
        }
    }
    Ok(lacking)
}

pub(super) async fn add(session: &Session, object: &Unlinked, deployment: &OfDeployment) -> Outcome {
    let id = deployment.deployment_id;
    let edit = |now: &Answer<api::EnvironmentObject>| Ok(with_link(now.part()?, id));
    session.edit_part::<api::Get, api::Update, _>(&object.path, edit).await.map(drop)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Links {
    links: Vec<To>,
    exclude_links: Vec<To>,
}

/// The change that adds a link: the others stay, and a link that is sent without overrides keeps those that it has.
fn with_link(Links { mut links, exclude_links }: Links, id: DeploymentId) -> UpdateEnvironmentObjectRequest {
    links.retain(|to| to.scope_entity_id != id);
    links.push(To { scope: LinkScope::Deployment, scope_entity_id: id });
    let all = links.into_iter().map(|To { scope, scope_entity_id }| UpdateEnvironmentObjectLinkRequest {
        scope,
        scope_entity_id,
        overrides: None,
    });
    let is_excluded = exclude_links.iter().any(|to| to.scope_entity_id == id);
    let others = exclude_links.into_iter().filter(|to| to.scope_entity_id != id);
    UpdateEnvironmentObjectRequest {
        links: Some(all.collect()),
        exclude_links: is_excluded.then(|| others.collect()),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::client::answer::read;

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
        let object = |kind| Object {
            id: None,
            object_key: "a".into(),
            object_type: Word::Known(kind),
            scope: Word::Known(EnvironmentObjectScope::Workspace),
            auto_link_deployments: false,
            links: Vec::new(),
            exclude_links: Vec::new(),
        };
        assert!(link.names(&object(EnvironmentObjectType::Connection)));
        assert!(!link.names(&object(EnvironmentObjectType::AirflowVariable)));
    }

    #[test]
    fn a_link_is_added_next_to_the_others() {
        let id = |letter: char| format!("c00000000000000000000000{letter}");
        let entry = |letter: char| json!({ "scope": "DEPLOYMENT", "scopeEntityId": id(letter) });
        let mut other = entry('a');
        other["setFields"] = json!(["host"]);
        other["connectionOverrides"] = json!({ "host": "h" });
        let with_link = |object: &Value, letter| {
            let id: DeploymentId = id(letter).parse().unwrap();
            json!(super::with_link(read(object).unwrap(), id))
        };
        let object = json!({ "links": [other], "excludeLinks": [entry('b')] });
        assert_eq!(with_link(&object, 'c'), json!({ "links": [entry('a'), entry('c')] }));
        assert_eq!(with_link(&object, 'a'), json!({ "links": [entry('a')] }), "it is there already");
        let lifted = json!({ "links": [entry('a'), entry('b')], "excludeLinks": [] });
        assert_eq!(with_link(&object, 'b'), lifted, "no deployment is both linked and excluded");
    }
}
