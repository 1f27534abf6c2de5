//! How the plan of files is shown to people: what is made, changed and deleted, field by field.

use std::collections::HashMap;
use std::fmt::Write as _;

use podium_api::plans::PlannedChange;

use super::calls::{Planned as Call, Verb};
use crate::client::ending::{Outcome, printable};
use crate::client::planning::printing::{FOLLOWING, Made, Planning, lines, refused_at};

/// Fields that the label of something new says already.
const OF_THE_LABEL: &[&str] = &["name", "objectKey", "objectType", "scope", "inviteeEmail"];

/// How many resources are made, changed and deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    pub(super) created: usize,
    pub(super) changed: usize,
    pub(super) deleted: usize,
}

impl Count {
    pub(super) fn of(calls: &[Call]) -> Self {
        let mut count = Self::default();
        for (index, call) in calls.iter().enumerate() {
            // A resource that takes several calls is counted once.
            if calls[..index].iter().any(|other| other.key == call.key) {
                continue;
            }
            match call.verb {
                Verb::Create => count.created += 1,
                Verb::Change => count.changed += 1,
                Verb::Delete => count.deleted += 1,
                Verb::Own => {}
            }
        }
        count
    }

    /// In words, such as `1 to create, 2 to change, 0 to delete`.
    pub(super) fn in_words(self, words: [&str; 3]) -> String {
        let Self { created, changed, deleted } = self;
        format!("{created} {}, {changed} {}, {deleted} {}", words[0], words[1], words[2])
    }
}

/// A plan in words; names are given by id.
pub(super) fn plan(calls: &[Call], outcomes: &[Planning], mut names: HashMap<String, String>) -> String {
    let mut shown = String::new();
    for (call, outcome) in calls.iter().zip(outcomes) {
        if let Some(id) = Made::of(outcome.result.as_ref()).id {
            names.insert(id, call.label.clone());
        }
    }
    for (call, outcome) in calls.iter().zip(outcomes) {
        let sign = match call.verb {
            Verb::Create => '+',
            Verb::Change => '~',
            Verb::Delete => '-',
            Verb::Own => ' ',
        };
        let _ = writeln!(shown, "{sign} {} {}", call.noun(), printable(&call.label));
        if let Some(drift) = &call.drift {
            let _ = writeln!(shown, "    {}", printable(drift));
        }
        for detail in &call.details {
            let _ = writeln!(shown, "    {}", printable(detail));
        }
        lines(&mut shown, outcome, &|change| is_told(call, change), &names);
    }
    let _ = writeln!(shown, "Plan: {}.", Count::of(calls).in_words(["to create", "to change", "to delete"]));
    shown
}

/// Whether a change is worth a line: of what is made only what was declared, without ids.
fn is_told(call: &Call, change: &PlannedChange) -> bool {
    let path = change.path.as_str();
    match call.verb {
        Verb::Create => {
            let is_sent = call.call.body.as_ref().is_some_and(|body| body.contains_key(path));
            is_sent && !OF_THE_LABEL.contains(&path) && !path.ends_with("Id") && !path.ends_with("Ids")
        }
        Verb::Change => !path.is_empty() && !FOLLOWING.contains(&path),
        Verb::Delete | Verb::Own => false,
    }
}

/// Ends with an error if a call of files would be refused.
pub(super) fn refusals(calls: &[Call], outcomes: &[Planning]) -> Outcome {
    let place = |index: usize| {
        let call = &calls[index];
        let at = if call.at.is_empty() { String::new() } else { format!("{}: ", call.at) };
        format!("{at}{} {}", call.noun(), call.label)
    };
    refused_at(&place, outcomes)
}
