//! What is there: the resources of an organization, in the form of the files.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use podium_api::{Id, Nothing, roles, teams};
use serde_json::{Map, Value, json};

use super::calls::path;
use super::existing::{Existing, Found, Known, Names};
use super::keys::{Key, Kind, label};
use super::references::{Exporting, Variables};
use crate::client::answer::read;
use crate::client::ending::{Failed, Outcome};
use crate::client::fields::{given, merged};
use crate::client::names::Called;
use crate::client::session::Session;

pub(super) struct State {
    existing: BTreeMap<Key, Existing>,
    ids: HashMap<Id, Key>,
    names: Names,
}

impl State {
    /// Reads the resources of some kinds; roles and teams in full where that is asked for.
    pub(super) async fn read(
        session: &Session,
        which: &BTreeSet<Kind>,
        in_full: &dyn Fn(&Key) -> bool,
    ) -> Outcome<Self> {
        let (mut wires, organization) = (Vec::new(), session.in_organization().await?);
        for kind in which {
            let mut pages = session.client.pages((kind.handling().list)(&organization), None);
            while let Some(page) = pages.next().await? {
                for wire in page {
                    let known: Known = read(&wire)?;
                    let Called { id, name } = &known.called;
                    let is_full = in_full(&Key::named(*kind, name));
                    let wire = if is_full { complete(session, *kind, *id, wire).await? } else { wire };
                    wires.push((*kind, known, wire));
                }
            }
        }
        let names = Names::read(&wires);
        let (mut existing, mut ids) = (BTreeMap::new(), HashMap::new());
        for (kind, Known { called: Called { id, name }, .. }, wire) in wires {
            let fields = kind.form(&names, &wire)?;
            let key = Key::of(kind, &fields);
            ids.insert(id, key.clone());
            existing.insert(key, Existing { id, name, wire, form: Value::Object(fields) });
        }
        Ok(Self { existing, ids, names })
    }

    pub(super) fn get(&self, key: &Key) -> Option<&Existing> {
        self.existing.get(key)
    }

    pub(super) fn with_id(&self, id: Id) -> Option<&Existing> {
        self.get(self.ids.get(&id)?)
    }

    pub(super) fn by_id(&self, id: Id) -> Option<(&Key, String)> {
        let fields = self.with_id(id)?.form.as_object()?;
        let key = self.ids.get(&id)?;
        Some((key, label(key.kind, fields)))
    }

    /// What people call everything that is there, by id.
    pub(super) fn labels(&self) -> HashMap<String, String> {
        self.ids.keys().filter_map(|id| Some((id.to_string(), self.by_id(*id)?.1))).collect()
    }

    pub(super) fn names_of(&self, kind: Kind) -> Vec<String> {
        let named = self.existing.iter().filter(|(key, _)| key.kind == kind);
        named.map(|(_, existing)| existing.name.clone()).collect()
    }

    /// A resource as it is now, with its `ETag`.
    pub(super) async fn again(&self, session: &Session, key: &Key) -> Outcome<Found> {
        let Some(known) = self.get(key) else { return Err(Failed::because("it no longer exists")) };
        let get = (key.kind.handling().get)(&session.in_organization().await?, known.id);
        let fetched = session.client.send::<Value>(get).await?;
        // A list of its own holds the members of a team.
        let wire = merged(given(json!({ "members": known.wire["members"] })), fetched.body);
        let form = Value::Object(key.kind.form(&self.names, &wire)?);
        Ok((Existing { id: known.id, name: known.name.clone(), wire, form }, fetched.etag))
    }

    /// What is chosen in the form of a file, in order: everything, or what has one of these ids. Each id comes with the
    /// variables that its secrets are known by.
    pub(super) fn exported(&self, chosen: Option<&HashMap<Id, Variables>>) -> Map<String, Value> {
        let named = chosen.into_iter().flat_map(HashMap::values).flat_map(Variables::values);
        let mut exporting = Exporting { used: named.cloned().collect() };
        let nothing = Variables::new();
        let mut sections = Map::new();
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
        sections
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

/// What a list leaves out: the permissions of a role, the members of a team.
async fn complete(session: &Session, kind: Kind, id: Id, wire: Value) -> Outcome<Value> {
    let organization = session.in_organization().await?;
    match kind {
        Kind::Role => Ok(session.get::<roles::Get>(&path::<roles::Get>(&organization, id)).await?.raw),
        Kind::Team => {
            let path = path::<teams::Get>(&organization, id);
            let members: Vec<Value> = session.all::<teams::ListMembers, _>(&path, &Nothing, None).await?;
            let team = session.get::<teams::Get>(&path).await?.raw;
            Ok(merged(team, json!({ "members": members })))
        }
        _ => Ok(wire),
    }
}
