//! Turns what differs between the files and what is there into calls, in an order in which each can be made.

use std::cell::RefCell;
use std::collections::BTreeSet;

use podium_api::enums::PlannedMethod;
use podium_api::path::InOrganization;
use podium_api::{ClusterId, DeploymentId, Endpoint, NodePoolId, TypedId};
use podium_client::Call;
use serde::Serialize;
use serde_json::Value;

use super::calls::{Planned, Verb, path};
use super::compare::has;
use super::existing::{Difference, Found};
use super::files::{Declared, Entry, Source};
use super::keys::{Fields, Key, Kind, label};
use super::references::Resolving;
use super::sets::Sets;
use super::state::State;
use crate::client::answer::read;
use crate::client::ending::{Exit, Failed, Outcome};
use crate::client::names::{Pools, most_alike};
use crate::client::session::Session;

pub(super) struct Planner<'a> {
    session: &'a Session,
    pub(super) organization: InOrganization,
    state: &'a State,
    declared: &'a Declared,
    sets: &'a Sets,
    resolving: Resolving<'a>,
    calls: Vec<Planned>,
    /// Workspaces whose new deployments go to a cluster that this plan makes.
    pub(super) on_new_clusters: BTreeSet<Key>,
    /// What is not changed, and why.
    notes: Vec<String>,
}

/// The kinds that must be read to compare the files with what is there.
pub(super) fn kinds_of(declared: &Declared, sets: &Sets) -> BTreeSet<Kind> {
    let mut kinds: BTreeSet<Kind> = declared.entries.iter().map(|entry| entry.key.kind).collect();
    kinds.extend(sets.own_members().map(|(kind, _)| kind));
    let is_any = |wanted: &[Kind]| kinds.iter().any(|kind| wanted.contains(kind));
    let mut more = BTreeSet::from([Kind::Workspace]);
    if is_any(&[Kind::EnvironmentObject, Kind::Token, Kind::Team, Kind::User]) {
        more.insert(Kind::Deployment);
    }
    if is_any(&[Kind::Workspace, Kind::Deployment]) {
        more.insert(Kind::Cluster);
    }
    if is_any(&[Kind::Team]) {
        more.insert(Kind::User);
    }
    kinds.extend(more);
    kinds
}

/// The calls that make what is there what the files declare, and remarks about what they leave.
pub(super) async fn plan(
    session: &Session,
    state: &State,
    declared: &Declared,
    sets: &Sets,
    source: &Source,
) -> Outcome<(Vec<Planned>, Vec<String>)> {
    let variable = |name: &str| std::env::var(name).ok();
    let updates_secrets = source.update_secrets;
    let resolving = Resolving { updates_secrets, variable: &variable, missing: RefCell::default() };
    let mut planner = Planner {
        session,
        organization: session.in_organization().await?,
        state,
        declared,
        sets,
        resolving,
        calls: Vec::new(),
        on_new_clusters: BTreeSet::new(),
        notes: Vec::new(),
    };
    for kind in Kind::ALL {
        for entry in declared.of(kind) {
            sets.is_free(state, entry)?;
            if let Some((fields, found)) = planner.standing(entry).await? {
                (kind.handling().plan)(&mut planner, entry, fields, found)?;
            }
        }
    }
    // Kinds are in order; what waits for another kind comes after that.
    planner.calls.sort_by_key(|call| (call.after.unwrap_or(call.key.kind), call.after.is_some()));
    planner.resolving.all_there()?;
    if source.prune {
        planner.prune()?;
    }
    Ok((planner.calls, planner.notes))
}

impl Planner<'_> {
    /// What is declared, and what differs from it, if that is there already; nothing if it is as declared.
    async fn standing(&self, entry: &Entry) -> Outcome<Option<(Fields, Option<Found>)>> {
        let Some(known) = self.state.get(&entry.key) else {
            return Ok(Some((self.resolving.fields(&entry.fields, None, &entry.at)?, None)));
        };
        let fields = self.resolving.fields(&entry.fields, Some(&known.form), &entry.at)?;
        if has("", &Value::Object(fields), Some(&known.form)) {
            return Ok(None);
        }
        // What is changed is read again with its version, so that nothing that somebody else changes meanwhile is lost.
        let found = self.state.again(self.session, &entry.key).await?;
        let fields = self.resolving.fields(&entry.fields, Some(&found.0.form), &entry.at)?;
        let is_same = has("", &Value::Object(fields.clone()), Some(&found.0.form));
        Ok((!is_same).then_some((fields, Some(found))))
    }

    pub(super) fn create<E>(&mut self, entry: &Entry, body: &impl Serialize) -> Outcome<&mut Planned>
    where
        E: Endpoint<Path = InOrganization>,
    {
        let call = Call::to::<E>(&self.organization).body(body)?;
        let added = self.add(entry, Verb::Create, &call);
        added.makes = Some(entry.stand_in);
        Ok(added)
    }

    /// Adds a call that changes what an earlier call makes.
    pub(super) fn change_made<E: Endpoint>(
        &mut self,
        entry: &Entry,
        body: &impl Serialize,
    ) -> Outcome<&mut Planned> {
        let path = path::<E>(&self.organization, entry.stand_in);
        Ok(self.add(entry, Verb::Change, &Call::to::<E>(&path).body(body)?))
    }

    /// Adds a call that changes what is there.
    pub(super) fn change<E: Endpoint, R>(
        &mut self,
        entry: &Entry,
        found: &Difference<R>,
        body: &impl Serialize,
    ) -> Outcome<&mut Planned> {
        let path = path::<E>(&self.organization, found.existing.id);
        self.change_at::<E, R>(entry, found, &path, body)
    }

    /// The same of something within it.
    pub(super) fn change_at<E: Endpoint, R>(
        &mut self,
        entry: &Entry,
        found: &Difference<R>,
        path: &E::Path,
        body: &impl Serialize,
    ) -> Outcome<&mut Planned> {
        // A version is good for one call.
        let is_first = self.calls.iter().all(|call| call.key != entry.key);
        let etag = found.etag.clone().filter(|_| is_first);
        let call = Call::to::<E>(path).body(body)?.if_match(etag);
        let drift = self.sets.drift(&found.existing);
        let added = self.add(entry, Verb::Change, &call);
        added.drift = drift;
        Ok(added)
    }

    fn add(&mut self, entry: &Entry, verb: Verb, call: &Call) -> &mut Planned {
        let planned = Planned::new(verb, entry.key.clone(), label(entry.key.kind, &entry.fields), call);
        self.calls.push(Planned { at: entry.at.clone(), ..planned });
        let last = self.calls.len() - 1;
        &mut self.calls[last]
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Whether something is not there yet.
    pub(super) fn is_new(&self, kind: Kind, name: &str) -> bool {
        self.state.get(&Key::named(kind, name)).is_none()
    }

    /// The id of what is named, or what stands in for it if an earlier call makes it.
    fn find<I: TypedId>(&self, key: &Key, name: &str, at: &str) -> Outcome<I> {
        let existing = self.state.get(key).map(|existing| existing.id);
        let id = existing.or_else(|| self.declared.entry(key).map(|entry| entry.stand_in));
        let noun = key.kind.noun();
        id.map(I::from_raw).ok_or_else(|| {
            let failed = Failed::usage(format!(
                "{at} names the {noun} {name:?}, which neither exists nor is declared"
            ));
            match most_alike(&self.state.names_of(key.kind), name) {
                Some(like) => failed.hint(format!("Did you mean {like:?}?")),
                None => failed,
            }
        })
    }

    /// The id of a workspace, cluster, team or user.
    pub(super) fn id<I: TypedId>(&self, kind: Kind, name: &str, at: &str) -> Outcome<I> {
        self.find(&Key::named(kind, name), name, at)
    }

    /// The ids of a list of names, if there is one.
    pub(super) fn some_ids<I: TypedId>(
        &self,
        kind: Kind,
        names: Option<&[String]>,
        at: &str,
    ) -> Outcome<Option<Vec<I>>> {
        names.map(|names| names.iter().map(|name| self.id(kind, name, at)).collect()).transpose()
    }

    pub(super) fn deployment(&self, workspace: &str, name: &str, at: &str) -> Outcome<DeploymentId> {
        self.find(&Key::deployment(workspace, name), name, at)
    }

    pub(super) fn node_pool(&self, cluster: Option<ClusterId>, name: &str, at: &str) -> Outcome<NodePoolId> {
        let pools = match cluster.and_then(|id| self.state.with_id(id.id())) {
            Some(cluster) => read::<Pools>(&cluster.wire)?.node_pools,
            None => Vec::new(),
        };
        let found = pools.into_iter().find(|pool| pool.name == name);
        found.map(|pool| NodePoolId::from_raw(pool.id)).ok_or_else(|| {
            Failed::usage(format!("{at} names the node pool {name:?}, which its cluster does not have"))
                .hint("A cluster that is new needs to be applied before deployments can name its pools.")
        })
    }

    /// Deletes what the set owns and the files declare no more. What somebody else has edited while the files declare
    /// something new of its kind may be that under another name, and is not deleted.
    fn prune(&mut self) -> Outcome {
        for kind in Kind::ALL.into_iter().rev() {
            for (_, id) in self.sets.own_members().filter(|(member, _)| *member == kind) {
                let Some((key, label)) = self.state.by_id(id) else { continue };
                if self.declared.entry(key).is_some() {
                    continue;
                }
                let drift = self.state.get(key).and_then(|existing| self.sets.drift(existing));
                let made = self.calls.iter().find(|call| call.verb == Verb::Create && call.key.kind == kind);
                if let (Some(drift), Some(made)) = (&drift, made) {
                    let noun = kind.noun();
                    return Err(Failed::new(
                        Exit::Conflict,
                        format!(
                            "the {noun} {label} was {drift}, and {} would be created: they may be the same",
                            made.label
                        ),
                    )
                    .hint(format!(
                        "Declare the {noun} under its current name, or delete it by hand, and apply again."
                    )));
                }
                // It is deleted where it is read.
                let get = (kind.handling().get)(&self.organization, id);
                let mut delete = Planned::new(Verb::Delete, key.clone(), label, &get);
                delete.call.method = PlannedMethod::Delete;
                self.calls.push(Planned { drift, ..delete });
            }
        }
        Ok(())
    }
}
