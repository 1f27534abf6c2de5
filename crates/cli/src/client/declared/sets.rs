//! Sets: what a file's `set:` owns. The server keeps the record, and it changes in the transaction that applies the file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use podium_api::declared_sets::{self as api, DeclaredMember, DeclaredSet};
use podium_api::path::InOrganization;
use podium_api::{Id, Nothing, Timestamp, counted};
use podium_client::Call;

use super::calls::{Planned, Verb, path};
use super::existing::Existing;
use super::files::{Declared, Entry};
use super::keys::{Key, Kind};
use super::references::{self, Variables};
use super::state::State;
use crate::client::answer::read;
use crate::client::ending::{Exit, Failed, Outcome};
use crate::client::session::Session;

/// The set of the files, and all others.
#[derive(Default)]
pub(super) struct Sets {
    name: Option<String>,
    own: Option<DeclaredSet>,
    /// The version of its record: two machines that apply at once do not overwrite each other's.
    etag: Option<String>,
    others: Vec<DeclaredSet>,
}

impl Sets {
    pub(super) async fn read(session: &Session, name: Option<&str>) -> Outcome<Self> {
        let Some(name) = name else { return Ok(Self::default()) };
        let organization = session.in_organization().await?;
        let all: Vec<DeclaredSet> = session.all::<api::List, _>(&organization, &Nothing, None).await?;
        let is_own = |set: &DeclaredSet| set.name.to_lowercase() == name.to_lowercase();
        let (own, others): (Vec<_>, Vec<_>) = all.into_iter().partition(is_own);
        let mut sets = Self { name: Some(name.to_owned()), others, ..Self::default() };
        if let Some(DeclaredSet { id, .. }) = own.last() {
            let path = path::<api::Get>(&organization, id.id());
            let fetched = session.client.send::<DeclaredSet>(Call::to::<api::Get>(&path)).await?;
            (sets.own, sets.etag) = (Some(fetched.body), fetched.etag);
        }
        Ok(sets)
    }

    /// Whether there is a set of that name; if not, what to do about it.
    pub(super) fn is_there(&self) -> Outcome {
        let name = self.name.as_deref().unwrap_or_default();
        if self.own.is_some() {
            return Ok(());
        }
        let names: Vec<String> = self.others.iter().map(|set| set.name.clone()).collect();
        let made =
            "A set is created when a file with `set: NAME` is applied. Export everything: podium export";
        let failed = Failed::new(Exit::NotFound, format!("there is no set called {name:?}"));
        Err(failed.suggest(&names, name, made))
    }

    fn members(&self) -> impl Iterator<Item = &DeclaredMember> {
        self.own.iter().flat_map(|set| &set.members)
    }

    /// What the set owns, by id, with the variables that its files refer to.
    pub(super) fn remembered(&self) -> HashMap<Id, Variables> {
        self.members().map(|member| (member.id, member.variables.clone())).collect()
    }

    pub(super) fn own_members(&self) -> impl Iterator<Item = (Kind, Id)> {
        self.members().map(|member| (Kind::of_member(member.kind), member.id))
    }

    /// Refuses to declare what another set owns: each would delete what the other declares.
    pub(super) fn is_free(&self, state: &State, entry: &Entry) -> Outcome {
        let Some(existing) = state.get(&entry.key) else { return Ok(()) };
        let owns = |set: &&DeclaredSet| set.members.iter().any(|it| it.id == existing.id);
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
        let updated_at: Timestamp = read(&existing.wire["updatedAt"]).ok()?;
        let is_owned = self.own_members().any(|(_, id)| id == existing.id);
        if !is_owned || updated_at <= set.updated_at {
            return None;
        }
        let by = &existing.wire["updatedBy"];
        let who = ["username", "apiTokenName", "id"].iter().find_map(|name| by[name].as_str());
        let who = who.filter(|name| !name.is_empty()).unwrap_or("somebody");
        Some(format!("edited by {who} at {updated_at}, since this set was last applied"))
    }

    /// The call that records what the set owns after some calls; none if nothing is changed.
    pub(super) fn record(
        &self,
        organization: &InOrganization,
        state: &State,
        declared: &Declared,
        calls: &[Planned],
    ) -> Outcome<Option<Planned>> {
        let Some(name) = &self.name else { return Ok(None) };
        let deleted: BTreeSet<&Key> =
            calls.iter().filter(|call| call.verb == Verb::Delete).map(|call| &call.key).collect();
        let is_left = |id: Id| state.by_id(id).is_some_and(|(key, _)| !deleted.contains(key));
        let before = self.members().map(|member| ((member.kind.as_str(), member.id), member.clone()));
        let before: BTreeMap<(&str, Id), DeclaredMember> = before.collect();
        let mut owned = before.clone();
        owned.retain(|(_, id), _| is_left(*id));
        let mut made_here = Vec::new();
        for entry in &declared.entries {
            let Some(kind) = entry.key.kind.owned() else { continue };
            let variables = references::variables(&entry.fields);
            let member = |id| DeclaredMember { kind, id, variables };
            match state.get(&entry.key) {
                Some(existing) => {
                    owned.insert((kind.as_str(), existing.id), member(existing.id));
                }
                None if calls.iter().any(|call| call.makes == Some(entry.stand_in)) => {
                    made_here.push(member(entry.stand_in));
                }
                None => {}
            }
        }
        if calls.is_empty() && self.own.is_some() && owned == before {
            return Ok(None);
        }
        let members: Vec<DeclaredMember> = owned.into_values().chain(made_here).collect();
        let details = vec![format!("owns {}", counted(members.len() as u64, "resource"))];
        let call = match &self.own {
            Some(set) => {
                let path = path::<api::Update>(organization, set.id.id());
                Call::to::<api::Update>(&path).body(&api::UpdateDeclaredSetRequest { members })?
            }
            None => {
                let body = api::CreateDeclaredSetRequest { name: name.clone(), members };
                Call::to::<api::Create>(organization).body(&body)?
            }
        };
        let call = call.if_match(self.etag.clone());
        let own = Planned::new(Verb::Own, Key::named(Kind::User, ""), name.clone(), &call);
        Ok(Some(Planned { details, ..own }))
    }
}
