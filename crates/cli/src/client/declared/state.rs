//! What is there: the resources of an organization, in the form of the files.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use podium_api::{
    Nothing, clusters, deployments, environment_objects, roles, teams, tokens, users, workspaces,
};
use podium_client::Call;
use serde::Deserialize;
use serde_json::{Value, json};

use super::keys::{Key, Kind, label};
use super::kinds;
use super::references::{Exporting, Variables};
use crate::client::answer::read;
use crate::client::ending::{Failed, Outcome};
use crate::client::fields::merged;
use crate::client::names::Called;
use crate::client::session::{Session, text};

/// A resource that is there.
pub(crate) struct Existing {
    pub(crate) id: String,
    pub(crate) name: String,
    /// As the API shows it.
    pub(crate) wire: Value,
    /// In the form of the files.
    pub(crate) form: Value,
}

/// What is read of a resource to call it by its name.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Known {
    id: String,
    #[serde(alias = "username", alias = "objectKey")]
    name: String,
    #[serde(default)]
    workspace_id: String,
    #[serde(default)]
    node_pools: Vec<Called>,
}

/// Names by id.
#[derive(Default)]
pub(crate) struct Names {
    names: HashMap<String, String>,
    workspaces: HashMap<String, String>,
}

impl Names {
    fn read(wires: &[(Kind, Known, Value)]) -> Self {
        let mut all = Self::default();
        for (kind, known, _) in wires {
            all.names.insert(known.id.clone(), known.name.clone());
            if *kind == Kind::Deployment {
                all.workspaces.insert(known.id.clone(), known.workspace_id.clone());
            }
            all.names.extend(known.node_pools.iter().map(|pool| (pool.id.to_string(), pool.name.clone())));
        }
        all
    }

    /// The name of what has this id; the id itself if it is not known.
    pub(super) fn of(&self, id: &Value) -> Value {
        let Some(id) = id.as_str() else { return Value::Null };
        self.names.get(id).map_or(id, String::as_str).into()
    }

    /// The names of a list of ids, in order.
    pub(super) fn all(&self, ids: &Value) -> Value {
        let mut names: Vec<Value> = ids.as_array().into_iter().flatten().map(|id| self.of(id)).collect();
        names.sort_by(|one, other| text(one).cmp(text(other)));
        Value::Array(names)
    }

    /// The name of a deployment's workspace.
    pub(super) fn workspace_of(&self, deployment_id: &Value) -> Value {
        match self.workspaces.get(text(deployment_id)) {
            Some(workspace) => self.of(&json!(workspace)),
            None => Value::Null,
        }
    }
}

/// What is there.
pub(crate) struct State {
    existing: BTreeMap<Key, Existing>,
    ids: HashMap<String, Key>,
    names: Names,
}

impl State {
    /// Reads the resources of some kinds; roles and teams in full where that is asked for.
    pub(crate) async fn read(
        session: &Session,
        which: &BTreeSet<Kind>,
        in_full: &dyn Fn(Kind, &str) -> bool,
    ) -> Outcome<Self> {
        let mut wires = Vec::new();
        for kind in which {
            let mut pages = session.client.pages(list(session, *kind).await?, None);
            while let Some(page) = pages.next().await? {
                for wire in page {
                    let known: Known = read(&wire)?;
                    let is_full = in_full(*kind, &known.name);
                    let wire = if is_full { complete(session, *kind, &known.id, wire).await? } else { wire };
                    wires.push((*kind, known, wire));
                }
            }
        }
        let names = Names::read(&wires);
        let (mut existing, mut ids) = (BTreeMap::new(), HashMap::new());
        for (kind, Known { id, name, .. }, wire) in wires {
            let fields = kinds::form(kind, &names, &wire);
            let key = Key::of(kind, &fields);
            ids.insert(id.clone(), key.clone());
            existing.insert(key, Existing { id, name, wire, form: Value::Object(fields) });
        }
        Ok(Self { existing, ids, names })
    }

    /// What has this key.
    pub(crate) fn get(&self, key: &Key) -> Option<&Existing> {
        self.existing.get(key)
    }

    /// The key and the label of what has this id.
    pub(crate) fn by_id(&self, id: &str) -> Option<(&Key, String)> {
        let key = self.ids.get(id)?;
        let fields = self.existing.get(key)?.form.as_object()?;
        Some((key, label(key.kind, fields)))
    }

    /// What people call everything that is there, by id.
    pub(crate) fn labels(&self) -> HashMap<String, String> {
        self.ids.keys().filter_map(|id| Some((id.clone(), self.by_id(id)?.1))).collect()
    }

    /// The names of everything of a kind.
    pub(super) fn names_of(&self, kind: Kind) -> Vec<String> {
        let named = self.existing.iter().filter(|(key, _)| key.kind == kind);
        named.map(|(_, existing)| existing.name.clone()).collect()
    }

    /// A resource as it is now, with its `ETag`.
    pub(super) async fn again(&self, session: &Session, key: &Key) -> Outcome<(Existing, Option<String>)> {
        let Some(known) = self.get(key) else { return Err(Failed::because("it no longer exists")) };
        let path = format!(
            "/organizations/{}/{}/{}",
            session.organization().await?,
            key.kind.collection(),
            known.id
        );
        let fetched = session.client.send::<Value>(Call::raw("GET", &path)?).await?;
        let mut wire = fetched.body;
        if let Some(members) = known.wire.get("members") {
            wire["members"] = members.clone();
        }
        let form = Value::Object(kinds::form(key.kind, &self.names, &wire));
        let (id, name) = (known.id.clone(), known.name.clone());
        Ok((Existing { id, name, wire, form }, fetched.etag))
    }

    /// What is chosen in the form of a file, in order: everything, or what has one of these ids. Each id comes with the
    /// variables that its secrets are known by.
    pub(crate) fn exported(&self, chosen: Option<&HashMap<String, Variables>>) -> Value {
        let named = chosen.into_iter().flat_map(HashMap::values).flat_map(Variables::values);
        let mut exporting = Exporting { used: named.cloned().collect() };
        let nothing = Variables::new();
        let mut sections = serde_json::Map::new();
        for kind in Kind::ALL {
            let mut items = Vec::new();
            for existing in self.existing.iter().filter(|(key, _)| key.kind == kind).map(|(_, it)| it) {
                let variables = match chosen {
                    Some(chosen) => chosen.get(&existing.id),
                    None => Some(&nothing),
                };
                let Some(variables) = variables else { continue };
                items.push(exporting.write(&without_empty(&existing.form), variables, ""));
            }
            if !items.is_empty() {
                sections.insert(kind.section().into(), items.into());
            }
        }
        Value::Object(sections)
    }
}

/// A form without fields that have no value.
fn without_empty(form: &Value) -> Value {
    let is_set = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(fields) => !fields.is_empty(),
        _ => true,
    };
    match form {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| (name.clone(), without_empty(value)));
            Value::Object(fields.filter(|(_, value)| is_set(value)).collect())
        }
        Value::Array(items) => items.iter().map(without_empty).collect(),
        other => other.clone(),
    }
}

async fn list(session: &Session, kind: Kind) -> Outcome<Call> {
    let path = session.in_organization().await?;
    Ok(match kind {
        Kind::Workspace => Call::to::<workspaces::List>(&path),
        Kind::Cluster => Call::to::<clusters::List>(&path),
        Kind::Role => Call::to::<roles::List>(&path),
        Kind::User => Call::to::<users::List>(&path),
        Kind::Team => Call::to::<teams::List>(&path),
        Kind::Deployment => Call::to::<deployments::List>(&path),
        Kind::EnvironmentObject => Call::to::<environment_objects::List>(&path),
        Kind::Token => Call::to::<tokens::List>(&path),
    })
}

/// What a list leaves out: the permissions of a role, the members of a team.
async fn complete(session: &Session, kind: Kind, id: &str, wire: Value) -> Outcome<Value> {
    match kind {
        Kind::Role => {
            let path = session.named::<roles::Get>(id).await?;
            Ok(session.get::<roles::Get>(&path).await?.raw)
        }
        Kind::Team => {
            let path = session.named::<teams::Get>(id).await?;
            let members: Vec<Value> = session.all::<teams::ListMembers, _>(&path, &Nothing, None).await?;
            let team = session.get::<teams::Get>(&path).await?.raw;
            Ok(merged(team, json!({ "members": members })))
        }
        _ => Ok(wire),
    }
}
