//! Sets: what a file's `set:` owns. The server keeps the record, and it changes in the transaction that applies the file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use podium_api::declared_sets::{self as api, DeclaredMember, DeclaredSet};
use podium_api::path::OfDeclaredSet;
use podium_api::{Nothing, Timestamp, counted};
use podium_client::Call;
use serde::Deserialize;
use serde_json::{Value, json};

use super::calls::{Planned, Target, Verb, made};
use super::files::{Declared, Entry};
use super::keys::{Key, Kind};
use super::references::{self, Variables};
use super::state::{Existing, State};
use crate::client::answer::read;
use crate::client::ending::{Exit, Failed, Outcome};
use crate::client::names::most_alike;
use crate::client::session::Session;

/// Their list in the API.
pub(super) const COLLECTION: &str = "declared-sets";

/// The set of the files, and all others.
#[derive(Default)]
pub(crate) struct Sets {
    name: Option<String>,
    own: Option<DeclaredSet>,
    /// The version of its record: two machines that apply at once do not overwrite each other's.
    etag: Option<String>,
    others: Vec<DeclaredSet>,
}

impl Sets {
    /// Reads the sets, if the files name one.
    pub(crate) async fn read(session: &Session, name: Option<&str>) -> Outcome<Self> {
        let Some(name) = name else { return Ok(Self::default()) };
        let organization = session.in_organization().await?;
        let all: Vec<DeclaredSet> = session.all::<api::List, _>(&organization, &Nothing, None).await?;
        let is_own = |set: &DeclaredSet| set.name.to_lowercase() == name.to_lowercase();
        let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_own);
        let mut sets = Self { name: Some(name.to_owned()), others, ..Self::default() };
        if let Some(DeclaredSet { id: declared_set_id, .. }) = own.last() {
            let (organization_id, declared_set_id) = (organization.organization_id, *declared_set_id);
            let path = OfDeclaredSet { organization_id, declared_set_id };
            let fetched = session.client.send::<DeclaredSet>(Call::to::<api::Get>(&path)).await?;
            (sets.own, sets.etag) = (Some(fetched.body), fetched.etag);
        }
        Ok(sets)
    }

    /// Whether there is a set of that name; if not, what to do about it.
    pub(crate) fn is_there(&self) -> Outcome {
        let name = self.name.as_deref().unwrap_or_default();
        if self.own.is_some() {
            return Ok(());
        }
        let names: Vec<String> = self.others.iter().map(|set| set.name.clone()).collect();
        let failed = Failed::new(Exit::NotFound, format!("there is no set called {name:?}"));
        Err(match most_alike(&names, name) {
            Some(like) => failed.hint(format!("Did you mean {like:?}?")),
            None => failed.hint(
                "A set is created when a file with `set: NAME` is applied. Export everything: podium export",
            ),
        })
    }

    fn members(&self) -> impl Iterator<Item = &DeclaredMember> {
        self.own.iter().flat_map(|set| &set.members)
    }

    /// What the set owns, by id, with the variables that its files refer to.
    pub(crate) fn remembered(&self) -> HashMap<String, Variables> {
        self.members().map(|member| (member.id.to_string(), member.variables.clone())).collect()
    }

    /// What the set of the files owns.
    pub(super) fn own_members(&self) -> impl Iterator<Item = (Kind, &str)> {
        self.members().map(|member| (Kind::of_member(member.kind), member.id.as_str()))
    }

    /// Refuses to declare what another set owns: each would delete what the other declares.
    pub(super) fn is_free(&self, state: &State, entry: &Entry) -> Outcome {
        let Some(existing) = state.get(&entry.key) else { return Ok(()) };
        let owns = |set: &&DeclaredSet| set.members.iter().any(|it| it.id.as_str() == existing.id);
        match self.others.iter().find(owns) {
            Some(other) => Err(Failed::usage(format!(
                "{} is owned by the set {:?}: declare it there, or take it out of that set first",
                entry.at, other.name
            ))),
            None => Ok(()),
        }
    }

    /// Who changed a resource since the set was applied, and when.
    pub(super) fn drift(&self, existing: &Existing) -> Option<String> {
        let set = self.own.as_ref()?;
        let changed: Changed = read(&existing.wire).ok()?;
        let is_owned = self.own_members().any(|(_, id)| id == existing.id);
        if !is_owned || changed.updated_at <= set.updated_at {
            return None;
        }
        let who = changed.updated_by.and_then(|by| by.username.or(by.api_token_name).or(by.id));
        let who = who.filter(|name| !name.is_empty()).unwrap_or_else(|| "somebody".to_owned());
        Some(format!("edited by {who} at {}, since this set was last applied", changed.updated_at))
    }

    /// The call that records what the set owns after some calls; none if nothing is changed.
    pub(crate) fn record(&self, state: &State, declared: &Declared, calls: &[Planned]) -> Option<Planned> {
        let name = self.name.as_ref()?;
        let deleted: BTreeSet<&Key> =
            calls.iter().filter(|call| call.verb == Verb::Delete).map(|call| &call.key).collect();
        let mut owned: BTreeMap<(&'static str, String), Value> = BTreeMap::new();
        for member in self.members() {
            if state.by_id(member.id.as_str()).is_some_and(|(key, _)| !deleted.contains(key)) {
                owned.insert((member.kind.as_str(), member.id.to_string()), json!(member));
            }
        }
        let mut made_here = Vec::new();
        for entry in &declared.entries {
            let Some(kind) = entry.key.kind.owned() else { continue };
            let variables = references::variables(&entry.fields);
            let member = |id: Value| match variables.is_empty() {
                true => json!({ "kind": kind, "id": id }),
                false => json!({ "kind": kind, "id": id, "variables": variables }),
            };
            let makes = |call: &Planned| {
                call.key == entry.key && call.verb == Verb::Create && matches!(call.target, Target::List(_))
            };
            match state.get(&entry.key) {
                Some(existing) => {
                    let id = existing.id.clone();
                    owned.insert((kind.as_str(), id), member(existing.id.as_str().into()));
                }
                None if calls.iter().any(makes) => made_here.push(member(made(&entry.key))),
                None => {}
            }
        }
        let before: BTreeMap<(&str, String), Value> = self
            .members()
            .map(|member| ((member.kind.as_str(), member.id.to_string()), json!(member)))
            .collect();
        if calls.is_empty() && self.own.is_some() && owned == before {
            return None;
        }
        let members: Vec<Value> = owned.into_values().chain(made_here).collect();
        let count = members.len();
        let (target, body) = match &self.own {
            Some(set) => (Target::Id(set.id.to_string()), json!({ "members": members })),
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

/// Who changed a resource last, and when.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Changed {
    updated_at: Timestamp,
    updated_by: Option<By>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct By {
    username: Option<String>,
    api_token_name: Option<String>,
    id: Option<String>,
}
