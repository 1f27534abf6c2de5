//! What is there: the resources of an organization, in the form of the files.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use podium_api::path::{OfRole, OfTeam};
use podium_api::{
    TypedId, clusters, deployments, environment_objects, roles, teams, tokens, users, workspaces,
};
use podium_client::Call;
use serde_json::{Value, json};

use super::keys::{Key, Kind, label};
use super::kinds;
use super::references::Exporting;
use crate::client::ending::{Failed, Outcome};
use crate::client::session::{Session, text};

/// A resource that is there.
pub(crate) struct Existing {
    pub(crate) id: String,
    /// As the API shows it.
    pub(crate) wire: Value,
    /// In the form of the files.
    pub(crate) form: Value,
}

/// Names by id.
#[derive(Default)]
pub(crate) struct Names {
    names: HashMap<String, String>,
    workspaces: HashMap<String, String>,
}

impl Names {
    fn read(wires: &[(Kind, Value)]) -> Self {
        let mut all = Self::default();
        for (kind, wire) in wires {
            all.names.insert(text(&wire["id"]).to_owned(), text(&wire[name_field(*kind)]).to_owned());
            if *kind == Kind::Deployment {
                all.workspaces.insert(text(&wire["id"]).to_owned(), text(&wire["workspaceId"]).to_owned());
            }
            for pool in wire["nodePools"].as_array().into_iter().flatten() {
                all.names.insert(text(&pool["id"]).to_owned(), text(&pool["name"]).to_owned());
            }
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

const fn name_field(kind: Kind) -> &'static str {
    match kind {
        Kind::User => "username",
        Kind::EnvironmentObject => "objectKey",
        _ => "name",
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
                    let is_full = in_full(*kind, text(&wire[name_field(*kind)]));
                    wires.push((*kind, if is_full { complete(session, *kind, wire).await? } else { wire }));
                }
            }
        }
        let names = Names::read(&wires);
        let (mut existing, mut ids) = (BTreeMap::new(), HashMap::new());
        for (kind, wire) in wires {
            let fields = kinds::form(kind, &names, &wire);
            let (key, id) = (Key::of(kind, &fields), text(&wire["id"]).to_owned());
            ids.insert(id.clone(), key.clone());
            existing.insert(key, Existing { id, wire, form: Value::Object(fields) });
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
        named.map(|(_, existing)| text(&existing.wire[name_field(kind)]).to_owned()).collect()
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
        Ok((Existing { id: known.id.clone(), wire, form }, fetched.etag))
    }

    /// What is chosen in the form of a file, in order: everything, or what has one of these ids. Each id comes with the
    /// variables that its secrets are known by.
    pub(crate) fn exported(&self, chosen: Option<&HashMap<&str, &Value>>) -> Value {
        let named = chosen.into_iter().flatten().flat_map(|(_, variables)| variables.as_object());
        let used = named.flat_map(|variables| variables.values()).map(|name| text(name).to_owned()).collect();
        let mut exporting = Exporting { used };
        let mut sections = serde_json::Map::new();
        for kind in Kind::ALL {
            let mut items = Vec::new();
            for existing in self.existing.iter().filter(|(key, _)| key.kind == kind).map(|(_, it)| it) {
                let variables = match chosen {
                    Some(chosen) => chosen.get(existing.id.as_str()).copied(),
                    None => Some(&Value::Null),
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
async fn complete(session: &Session, kind: Kind, mut wire: Value) -> Outcome<Value> {
    let organization_id = session.organization().await?;
    fn id<T: TypedId>(wire: &Value) -> Outcome<T> {
        text(&wire["id"]).parse().map_err(|_| Failed::because("the server's answer has no id"))
    }
    match kind {
        Kind::Role => session.get::<roles::Get>(&OfRole { organization_id, role_id: id(&wire)? }).await,
        Kind::Team => {
            let path = OfTeam { organization_id, team_id: id(&wire)? };
            let mut members = Vec::new();
            let mut pages = session.client.pages(Call::to::<teams::ListMembers>(&path), None);
            while let Some(page) = pages.next().await? {
                members.extend(page);
            }
            wire = session.get::<teams::Get>(&path).await?;
            wire["members"] = members.into();
            Ok(wire)
        }
        _ => Ok(wire),
    }
}
