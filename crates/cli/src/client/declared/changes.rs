//! The changes that files take, as the server has planned them.

use std::collections::HashMap;
use std::io::Write as _;

use podium_api::PlanId;
use podium_api::plans::AppliedCall;
use serde_json::Value;

use super::calls::{Planned as Call, rendered};
use super::files::{Declared, Source};
use super::keys::{Key, Kind};
use super::planner::{kinds_of, plan};
use super::printing::{self, Count};
use super::sets::Sets;
use super::state::State;
use crate::client::ending::{Failed, Outcome};
use crate::client::planning::printing::{Made, Planned};
use crate::client::session::Session;

const MOST_CALLS: usize = 100;

/// Calls, and what the server says that they would do.
pub(crate) struct Changes {
    calls: Vec<Call>,
    plan: Planned,
    pub(crate) raw: Value,
    /// Whether nothing is left to do after these.
    pub(crate) is_last: bool,
    names: HashMap<String, String>,
}

impl Source {
    /// Plans what it takes; none if everything is as declared.
    pub(crate) async fn plan(&self, session: &Session) -> Outcome<Option<Changes>> {
        if self.file.is_empty() {
            return Err(Failed::usage("no file was given").hint("Name a file or a folder: -f FILE"));
        }
        let declared = Declared::read(&self.file)?;
        if self.prune && declared.set.is_none() {
            return Err(Failed::usage("--prune needs a set: add `set: NAME` to the file")
                .hint("Only resources that the set owns are deleted: those that its files have declared."));
        }
        let sets = Sets::read(session, declared.set.as_deref()).await?;
        let is_declared = |key: &Key| declared.entry(key).is_some();
        let state = State::read(session, &kinds_of(&declared, &sets), &is_declared).await?;
        let (mut calls, notes) = plan(session, &state, &declared, &sets, self).await?;
        for note in notes {
            eprintln!("{note}");
        }
        let most = if declared.set.is_some() { MOST_CALLS - 1 } else { MOST_CALLS };
        let waiting = calls.iter().position(|call| call.is_on_new_cluster);
        let is_last = calls.len() <= most && waiting.is_none();
        if !is_last && !self.in_parts {
            let message = match waiting {
                Some(index) => format!(
                    "{} runs on a cluster that is new, and a cluster must be ready before deployments are created on it",
                    calls[index].at
                ),
                None => format!("the changes take {} calls, and a plan has at most {most}", calls.len()),
            };
            return Err(Failed::usage(message)
                .hint("Apply fewer files at once, or several plans one after the other: --in-parts"));
        }
        calls.truncate(most.min(waiting.unwrap_or(most)));
        let organization = session.in_organization().await?;
        calls.extend(sets.record(&organization, &state, &declared, &calls)?);
        if calls.is_empty() {
            return Ok(None);
        }
        let plan = session.plan_of(rendered(&calls)).await?;
        Ok(Some(Changes { calls, plan: plan.part()?, raw: plan.raw, is_last, names: state.labels() }))
    }
}

impl Changes {
    pub(crate) fn show(&self) -> Outcome {
        let mut out = std::io::stdout().lock();
        out.write_all(printing::plan(&self.calls, &self.plan.calls, self.names.clone()).as_bytes())?;
        Ok(())
    }

    /// Ends with an error if a call would be refused.
    pub(crate) fn refusals(&self) -> Outcome {
        printing::refusals(&self.calls, &self.plan.calls)
    }

    pub(crate) fn plan_id(&self) -> Option<PlanId> {
        self.plan.plan_id
    }

    pub(crate) fn counted(&self) -> String {
        Count::of(&self.calls).in_words(["created", "changed", "deleted"])
    }

    /// Shows what is shown only once: the values of new tokens.
    pub(crate) fn show_values(&self, applied: &[AppliedCall]) -> Outcome {
        let mut out = std::io::stdout().lock();
        for (call, made) in self.calls.iter().zip(applied.iter().map(Made::by)) {
            if let (Kind::Token, Some(value)) = (call.key.kind, made.token) {
                writeln!(out, "token {}: {value}", call.label)?;
            }
            if let Some(id) = made.invite_id {
                eprintln!("Invited {}. A link to accept: podium invite link {id}", call.label);
            }
        }
        Ok(())
    }
}
