//! Turns what differs between the files and what is there into calls, in an order in which each can be made.

use std::cell::RefCell;
use std::collections::BTreeSet;

use serde_json::Value;

use super::calls::{Planned, Target, Verb, made};
use super::compare::has;
use super::files::{Declared, Entry};
use super::keys::{Fields, Key, Kind, label};
use super::kinds;
use super::references::Resolving;
use super::sets::Sets;
use super::state::{Existing, State};
use crate::client::ending::{Exit, Failed, Outcome};
use crate::client::names::most_alike;
use crate::client::session::{Session, text};

/// Kinds in the order in which they are deleted.
const DELETED: [Kind; 7] = [
    Kind::Token,
    Kind::EnvironmentObject,
    Kind::Deployment,
    Kind::Team,
    Kind::Role,
    Kind::Cluster,
    Kind::Workspace,
];

/// How files are applied.
#[derive(Clone, Copy)]
pub(crate) struct Manner {
    /// Delete what the set owns and the files declare no more.
    pub(crate) prunes: bool,
    /// Send secrets again that are there already.
    pub(crate) updates_secrets: bool,
}

/// How an entry stands to what is there.
pub(super) enum Standing {
    /// There is no such thing.
    New(Fields),
    /// It is there, and differs.
    Differs(Box<Difference>),
}

/// An entry that differs from what is there.
pub(super) struct Difference {
    /// What is declared.
    pub(super) fields: Fields,
    pub(super) existing: Existing,
    pub(super) etag: Option<String>,
}

impl Difference {
    /// Whether one of these fields differs.
    pub(super) fn is_in(&self, names: &[&str]) -> bool {
        let differs = |name: &&str| {
            self.fields.get(*name).is_some_and(|value| !has(name, value, self.existing.form.get(*name)))
        };
        names.iter().any(differs)
    }

    /// A field as it is to be: declared, or as it is.
    pub(super) fn wanted(&self, name: &str) -> Value {
        self.fields.get(name).or_else(|| self.existing.form.get(name)).cloned().unwrap_or_default()
    }
}

/// The making of a plan.
pub(super) struct Planner<'a> {
    session: &'a Session,
    state: &'a State,
    declared: &'a Declared,
    sets: &'a Sets,
    resolving: Resolving<'a>,
    calls: Vec<Planned>,
    /// Calls that come once clusters are there.
    pub(super) after_clusters: Vec<Planned>,
    /// Calls that come once deployments are there.
    pub(super) after_deployments: Vec<Planned>,
    /// What is not changed, and why.
    notes: Vec<String>,
}

/// The kinds that must be read to compare the files with what is there.
pub(crate) fn kinds_of(declared: &Declared, sets: &Sets) -> BTreeSet<Kind> {
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
pub(crate) async fn plan(
    session: &Session,
    state: &State,
    declared: &Declared,
    sets: &Sets,
    manner: Manner,
) -> Outcome<(Vec<Planned>, Vec<String>)> {
    let variable = |name: &str| std::env::var(name).ok();
    let updates_secrets = manner.updates_secrets;
    let resolving = Resolving { updates_secrets, variable: &variable, missing: RefCell::default() };
    let (calls, after_clusters, after_deployments) = (Vec::new(), Vec::new(), Vec::new());
    let mut planner = Planner {
        session,
        state,
        declared,
        sets,
        resolving,
        calls,
        after_clusters,
        after_deployments,
        notes: Vec::new(),
    };
    for kind in Kind::ALL {
        for entry in declared.of(kind) {
            sets.is_free(state, entry)?;
            if let Some(standing) = planner.standing(entry).await? {
                kinds::plan(&mut planner, entry, standing)?;
            }
        }
        match kind {
            Kind::Cluster => planner.calls.append(&mut planner.after_clusters),
            Kind::Deployment => planner.calls.append(&mut planner.after_deployments),
            _ => {}
        }
    }
    planner.resolving.all_there()?;
    if manner.prunes {
        planner.prune()?;
    }
    Ok((planner.calls, planner.notes))
}

impl Planner<'_> {
    /// How an entry stands to what is there; nothing if it is as declared.
    async fn standing(&self, entry: &Entry) -> Outcome<Option<Standing>> {
        let Some(known) = self.state.get(&entry.key) else {
            return Ok(Some(Standing::New(self.resolving.fields(&entry.fields, None, &entry.at)?)));
        };
        let fields = self.resolving.fields(&entry.fields, Some(&known.form), &entry.at)?;
        if has("", &Value::Object(fields.clone()), Some(&known.form)) {
            return Ok(None);
        }
        // What is changed is read again with its version, so that nothing that somebody else changes meanwhile is lost.
        let (existing, etag) = self.state.again(self.session, &entry.key).await?;
        let fields = self.resolving.fields(&entry.fields, Some(&existing.form), &entry.at)?;
        match has("", &Value::Object(fields.clone()), Some(&existing.form)) {
            true => Ok(None),
            false => Ok(Some(Standing::Differs(Box::new(Difference { fields, existing, etag })))),
        }
    }

    /// A call that makes what is declared.
    pub(super) fn create(&self, entry: &Entry, list: &'static str, body: Value) -> Planned {
        self.call(entry, Verb::Create, Target::List(list), body)
    }

    /// A call that changes what an earlier call makes.
    pub(super) fn change_made(&self, entry: &Entry, rest: &'static str, body: Value) -> Planned {
        Planned { rest, ..self.call(entry, Verb::Change, Target::Made, body) }
    }

    /// A call that changes what is there.
    pub(super) fn change(
        &self,
        entry: &Entry,
        found: &Difference,
        rest: &'static str,
        body: Value,
    ) -> Planned {
        let target = Target::Id(found.existing.id.clone());
        // A version is good for one call.
        let is_first = !self
            .calls
            .iter()
            .chain(&self.after_clusters)
            .chain(&self.after_deployments)
            .any(|call| call.key == entry.key);
        let if_match = found.etag.clone().filter(|_| is_first);
        let drift = self.sets.drift(&found.existing);
        Planned { rest, if_match, drift, ..self.call(entry, Verb::Change, target, body) }
    }

    fn call(&self, entry: &Entry, verb: Verb, target: Target, body: Value) -> Planned {
        Planned {
            verb,
            key: entry.key.clone(),
            label: label(entry.key.kind, &entry.fields),
            at: entry.at.clone(),
            target,
            rest: "",
            member: None,
            body: Some(body),
            if_match: None,
            drift: None,
            details: Vec::new(),
        }
    }

    pub(super) fn push(&mut self, call: Planned) {
        self.calls.push(call);
    }

    pub(super) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// The id of what is named, or what stands for it if an earlier call makes it.
    pub(super) fn find(&self, key: &Key, name: &str, at: &str) -> Outcome<Value> {
        if let Some(existing) = self.state.get(key) {
            return Ok(existing.id.as_str().into());
        }
        if self.declared.entries.iter().any(|entry| entry.key == *key) {
            return Ok(made(key));
        }
        let noun = key.kind.noun();
        let failed =
            Failed::usage(format!("{at} names the {noun} {name:?}, which neither exists nor is declared"));
        Err(match most_alike(&self.state.names_of(key.kind), name) {
            Some(like) => failed.hint(format!("Did you mean {like:?}?")),
            None => failed,
        })
    }

    /// The id of a workspace, cluster, team or user.
    pub(super) fn id(&self, kind: Kind, name: &Value, at: &str) -> Outcome<Value> {
        self.find(&Key::named(kind, text(name)), text(name), at)
    }

    /// The ids of a list of names.
    pub(super) fn ids(&self, kind: Kind, names: &Value, at: &str) -> Outcome<Value> {
        names.as_array().into_iter().flatten().map(|name| self.id(kind, name, at)).collect()
    }

    /// The id of a deployment.
    pub(super) fn deployment(&self, workspace: &Value, name: &Value, at: &str) -> Outcome<Value> {
        self.find(&Key::deployment(text(workspace), text(name)), text(name), at)
    }

    /// What is there, as the API shows it.
    pub(super) fn wire(&self, kind: Kind, name: &Value) -> Option<&Value> {
        self.state.get(&Key::named(kind, text(name))).map(|existing| &existing.wire)
    }

    /// Refuses a difference in a field that never changes.
    pub(super) fn never_changes(found: &Difference, entry: &Entry, names: &[&str]) -> Outcome {
        for name in names {
            if found.is_in(&[name]) {
                let is = found.existing.form.get(*name).filter(|value| !value.is_null());
                let is = is.map_or("not set".to_owned(), ToString::to_string);
                return Err(Failed::usage(format!(
                    "{}.{name} cannot be changed: it is {is}, but declared as {}",
                    entry.at, found.fields[*name]
                ))
                .hint("Delete the resource and apply again, or correct the file."));
            }
        }
        Ok(())
    }

    /// Deletes what the set owns and the files declare no more. What somebody else has edited while the files declare
    /// something new of its kind may be that under another name, and is not deleted.
    fn prune(&mut self) -> Outcome {
        for kind in DELETED {
            for (_, id) in self.sets.own_members().filter(|(member, _)| *member == kind) {
                let Some((key, label)) = self.state.by_id(id) else { continue };
                if self.declared.entries.iter().any(|entry| entry.key == *key) {
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
                self.calls.push(Planned {
                    verb: Verb::Delete,
                    key: key.clone(),
                    label,
                    at: String::new(),
                    target: Target::Id(id.to_owned()),
                    rest: "",
                    member: None,
                    body: None,
                    if_match: None,
                    drift,
                    details: Vec::new(),
                });
            }
        }
        Ok(())
    }
}
