//! Sets: what a file's `set:` owns. The server keeps the record, and it changes in the transaction that applies the file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use podium_api::counted;
use podium_api::declared_sets as api;
use podium_api::enums::DeclaredKind;
use podium_api::path::OfDeclaredSet;
use podium_client::{Call, Fetched};
use serde_json::{Value, json};

use super::calls::{Planned, Target, Verb, made};
use super::files::{Declared, Entry};
use super::keys::{Key, Kind};
use super::references;
use super::state::{Existing, State};
use crate::client::ending::{Exit, Failed, Outcome};
use crate::client::names::most_alike;
use crate::client::session::{Session, text};

/// Their list in the API.
pub(super) const COLLECTION: &str = "declared-sets";

/// The set of the files, and all others.
#[derive(Default)]
pub(crate) struct Sets {
    name: Option<String>,
    own: Option<Value>,
    /// The version of its record: two machines that apply at once do not overwrite each other's.
    etag: Option<String>,
    others: Vec<Value>,
}

impl Sets {
    /// Reads the sets, if the files name one.
    pub(crate) async fn read(session: &Session, name: Option<&str>) -> Outcome<Self> {
        let Some(name) = name else { return Ok(Self::default()) };
        let organization = session.in_organization().await?;
        let call = Call::to::<api::List>(&organization);
        let (mut own, mut others) = (None, Vec::new());
        let mut pages = session.client.pages(call, None);
        while let Some(page) = pages.next().await? {
            for set in page {
                match text(&set["name"]).to_lowercase() == name.to_lowercase() {
                    true => own = text(&set["id"]).parse().ok(),
                    false => others.push(set),
                }
            }
        }
        let name = Some(name.to_owned());
        let Some(declared_set_id) = own else { return Ok(Self { name, others, ..Self::default() }) };
        let path = OfDeclaredSet { organization_id: organization.organization_id, declared_set_id };
        let Fetched { body, etag, .. } = session.client.send(Call::to::<api::Get>(&path)).await?;
        Ok(Self { name, own: Some(body), etag, others })
    }

    /// Whether there is a set of that name; if not, what to do about it.
    pub(crate) fn is_there(&self) -> Outcome {
        let name = self.name.as_deref().unwrap_or_default();
        if self.own.is_some() {
            return Ok(());
        }
        let names: Vec<String> = self.others.iter().map(|set| text(&set["name"]).to_owned()).collect();
        let failed = Failed::new(Exit::NotFound, format!("there is no set called {name:?}"));
        Err(match most_alike(&names, name) {
            Some(like) => failed.hint(format!("Did you mean {like:?}?")),
            None => failed.hint(
                "A set is created when a file with `set: NAME` is applied. Export everything: podium export",
            ),
        })
    }

    /// What the set owns, by id, with the variables that its files refer to.
    pub(crate) fn remembered(&self) -> HashMap<&str, &Value> {
        let members = self.own.iter().flat_map(|set| set["members"].as_array().into_iter().flatten());
        members.map(|member| (text(&member["id"]), &member["variables"])).collect()
    }

    /// What the set of the files owns.
    pub(super) fn own_members(&self) -> impl Iterator<Item = (Kind, &str)> {
        self.own.iter().flat_map(members)
    }

    /// Refuses to declare what another set owns: each would delete what the other declares.
    pub(super) fn is_free(&self, state: &State, entry: &Entry) -> Outcome {
        let Some(existing) = state.get(&entry.key) else { return Ok(()) };
        let owns = |set: &&Value| members(set).any(|(_, id)| id == existing.id);
        match self.others.iter().find(owns) {
            Some(other) => Err(Failed::usage(format!(
                "{} is owned by the set {:?}: declare it there, or take it out of that set first",
                entry.at,
                text(&other["name"])
            ))),
            None => Ok(()),
        }
    }

    /// Who changed a resource since the set was applied, and when.
    pub(super) fn drift(&self, existing: &Existing) -> Option<String> {
        let set = self.own.as_ref()?;
        let (changed, applied) = (text(&existing.wire["updatedAt"]), text(&set["updatedAt"]));
        let is_owned = self.own_members().any(|(_, id)| id == existing.id);
        if !is_owned || changed <= applied {
            return None;
        }
        let by = &existing.wire["updatedBy"];
        let who = ["username", "apiTokenName", "id"].into_iter().map(|name| text(&by[name]));
        let who = who.into_iter().find(|name| !name.is_empty()).unwrap_or("somebody");
        Some(format!("edited by {who} at {changed}, since this set was last applied"))
    }

    /// The call that records what the set owns after some calls; none if nothing is changed.
    pub(crate) fn record(&self, state: &State, declared: &Declared, calls: &[Planned]) -> Option<Planned> {
        let name = self.name.as_ref()?;
        let deleted: BTreeSet<&Key> =
            calls.iter().filter(|call| call.verb == Verb::Delete).map(|call| &call.key).collect();
        let remembered = self.remembered();
        let known = |id: &str| remembered.get(id).copied().filter(|it| it.is_object()).cloned();
        let member = |kind: DeclaredKind, id: Value, variables: Option<Value>| {
            let mut member = json!({ "kind": kind.as_str(), "id": id });
            if let Some(variables) = variables.filter(|it| it.as_object().is_some_and(|it| !it.is_empty())) {
                member["variables"] = variables;
            }
            member
        };
        let mut owned: BTreeMap<(&'static str, String), Value> = BTreeMap::new();
        for (kind, id) in self.own_members() {
            let is_there = state.by_id(id).is_some_and(|(key, _)| !deleted.contains(key));
            if let (true, Some(kind)) = (is_there, kind.owned()) {
                owned.insert((kind.as_str(), id.to_owned()), member(kind, id.into(), known(id)));
            }
        }
        let variables = |entry: &Entry| json!(references::variables(&entry.fields));
        let mut made_here = Vec::new();
        for entry in &declared.entries {
            let Some(kind) = entry.key.kind.owned() else { continue };
            let makes = |call: &Planned| {
                call.key == entry.key && call.verb == Verb::Create && matches!(call.target, Target::List(_))
            };
            match state.get(&entry.key) {
                Some(existing) => {
                    let id = existing.id.clone();
                    let written = member(kind, id.as_str().into(), Some(variables(entry)));
                    owned.insert((kind.as_str(), id), written);
                }
                None if calls.iter().any(makes) => {
                    made_here.push(member(kind, made(&entry.key), Some(variables(entry))));
                }
                None => {}
            }
        }
        let before: BTreeMap<(&str, String), Value> = self
            .own_members()
            .filter_map(|(kind, id)| Some((kind.owned()?, id)))
            .map(|(kind, id)| ((kind.as_str(), id.to_owned()), member(kind, id.into(), known(id))))
            .collect();
        if calls.is_empty() && self.own.is_some() && owned == before {
            return None;
        }
        let members: Vec<Value> = owned.into_values().chain(made_here).collect();
        let count = members.len();
        let (target, body) = match &self.own {
            Some(set) => (Target::Id(text(&set["id"]).to_owned()), json!({ "members": members })),
            None => (Target::List(COLLECTION), json!({ "name": name, "members": members })),
        };
        Some(Planned {
            verb: Verb::Own,
            key: Key::named(Kind::User, ""),
            label: name.clone(),
            at: String::new(),
            target,
            rest: "",
            member: None,
            body: Some(body),
            if_match: self.etag.clone(),
            drift: None,
            details: vec![format!("owns {}", counted(count as u64, "resource"))],
        })
    }
}

fn members(set: &Value) -> impl Iterator<Item = (Kind, &str)> {
    let members = set["members"].as_array().into_iter().flatten();
    members.filter_map(|member| Some((Kind::of_member(text(&member["kind"]))?, text(&member["id"]))))
}
