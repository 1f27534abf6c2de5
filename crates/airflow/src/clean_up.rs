//! Clean-ups of an environment's history: which one was asked for, how far it is, and what it says in the end.

use std::ffi::OsString;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use podium_api::{OperationId, Timestamp};
use podium_domain::{Reason, UserText};
use serde::Deserialize;

use crate::files::Files;

/// How long a clean-up may take.
pub const LONGEST: Duration = Duration::from_hours(2);
pub const MOST_BYTES: usize = 64 << 10;
const TABLES: [&str; 15] = [
    "dag_run",
    "task_instance",
    "task_instance_history",
    "task_reschedule",
    "task_fail",
    "xcom",
    "_xcom_archive",
    "log",
    "job",
    "sla_miss",
    "asset_event",
    "dataset_event",
    "celery_taskmeta",
    "celery_tasksetmeta",
    "session",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanUp {
    pub id: OperationId,
    /// What is removed: DAG runs, their tasks and the logs of these from before this time.
    pub before: Timestamp,
}

/// How far a clean-up is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CleanUpState {
    /// It has not ended; a change is announced when it has.
    Underway,
    /// It has ended, and what came of it.
    Done(UserText),
    Failed(Reason),
}

/// The clean-up of an environment that was last asked for.
#[derive(Default)]
pub struct CleanUps(Mutex<Option<Asked>>);

struct Asked {
    clean_up: CleanUp,
    has_begun: bool,
    state: CleanUpState,
}

impl CleanUps {
    fn lock(&self) -> MutexGuard<'_, Option<Asked>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks for a clean-up, once; returns how far it is.
    pub fn ask(&self, clean_up: CleanUp) -> CleanUpState {
        let mut asked = self.lock();
        match &*asked {
            Some(known) if known.clean_up.id == clean_up.id => known.state.clone(),
            _ => {
                *asked = Some(Asked { clean_up, has_begun: false, state: CleanUpState::Underway });
                CleanUpState::Underway
            }
        }
    }

    pub fn begin(&self) -> Option<CleanUp> {
        let mut asked = self.lock();
        let asked = asked.as_mut().filter(|asked| !asked.has_begun)?;
        asked.has_begun = true;
        Some(asked.clean_up)
    }

    /// Forgets it, if it has not ended: whoever still wants it asks again.
    pub fn interrupt(&self) {
        self.lock().take_if(|asked| asked.state == CleanUpState::Underway);
    }

    /// Ends it, unless another one was asked for.
    pub fn end(&self, id: OperationId, state: CleanUpState) {
        if let Some(asked) = self.lock().as_mut().filter(|asked| asked.clean_up.id == id) {
            asked.state = state;
        }
    }
}

#[derive(Debug, Deserialize)]
pub struct CleanUpAnswer {
    runs: u64,
    files: u64,
    held_back_to: Option<i64>,
    failed: Vec<String>,
}

impl CleanUpAnswer {
    pub fn ended(&self, before: Timestamp) -> CleanUpState {
        if !self.failed.is_empty() {
            // Only what is known is repeated: the answer is the author's claim.
            let failed = TABLES.iter().filter(|table| self.failed.iter().any(|failed| failed == *table));
            let failed: Vec<UserText> = failed.map(|table| UserText::new(table)).collect();
            let why = "tables of the metadata database could not be cleaned: {}";
            return CleanUpState::Failed(UserText::filled(why, &[&UserText::joined(failed, ", ")]).into());
        }
        let held_back_to = self.held_back_to.map(Timestamp::from_millis).filter(|to| *to < before);
        let template = match held_back_to {
            None => "{} DAG runs and {} log files from before {} were removed.",
            Some(_) => {
                "{} DAG runs and {} log files from before {} were removed. What is newer is kept, because a DAG run has been \
                 under way since then."
            }
        };
        let since = held_back_to.unwrap_or(before);
        CleanUpState::Done(UserText::filled(template, &[&self.runs, &self.files, &since]))
    }
}

/// The command line of a process that cleans up the history from before a time and prints a [`CleanUpAnswer`].
pub fn arguments(files: &Files, before: Timestamp) -> Vec<OsString> {
    vec![
        files.program("python").into(),
        files.module("podium_clean_up.py").into(),
        before.millis().to_string().into(),
        LONGEST.as_secs().to_string().into(),
        files.task_logs.clone().into(),
        files.parser_logs.clone().into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean_up(number: u128) -> CleanUp {
        let id = podium_api::Id::from_parts(number as u64, 0, 0);
        CleanUp { id: OperationId::from_raw(id), before: Timestamp::from_millis(0) }
    }

    #[test]
    fn each_is_begun_once_and_again_if_it_is_still_wanted_after_an_interruption() {
        let clean_ups = CleanUps::default();
        assert_eq!(clean_ups.begin(), None);
        let first = clean_up(1);
        assert_eq!(clean_ups.ask(first), CleanUpState::Underway);
        assert_eq!((clean_ups.begin(), clean_ups.begin()), (Some(first), None));
        assert_eq!(clean_ups.ask(first), CleanUpState::Underway, "it goes on");
        clean_ups.interrupt();
        assert_eq!(clean_ups.begin(), None, "nobody wants it any more");
        clean_ups.ask(first);
        assert_eq!((clean_ups.begin(), clean_ups.begin()), (Some(first), None));
        let done = CleanUpState::Done(UserText::EMPTY);
        clean_ups.end(clean_up(2).id, CleanUpState::Failed("no".into()));
        clean_ups.end(first.id, done.clone());
        clean_ups.interrupt();
        assert_eq!((clean_ups.ask(first), clean_ups.begin()), (done, None), "it has ended");
        clean_ups.ask(clean_up(2));
        assert_eq!(clean_ups.begin(), Some(clean_up(2)));
    }

    #[test]
    fn the_helper_cleans_these_tables() {
        let helper = crate::support::text("podium_clean_up.py").unwrap();
        let (_, listed) = helper.split_once("TABLES = [").unwrap();
        let (listed, _) = listed.split_once(']').unwrap();
        let listed: Vec<&str> = listed.split('"').skip(1).step_by(2).collect();
        assert_eq!(listed, TABLES);
    }

    #[test]
    fn the_summary_says_what_was_removed_and_what_was_kept() {
        let before = Timestamp::parse("2026-03-01T03:00:00Z").unwrap();
        let answer = |held_back_to, failed: &[&str]| CleanUpAnswer {
            runs: 12,
            files: 340,
            held_back_to,
            failed: failed.iter().map(|table| (*table).to_owned()).collect(),
        };
        let said = |answer: &CleanUpAnswer| match answer.ended(before) {
            CleanUpState::Done(summary) => summary.to_string(),
            CleanUpState::Failed(why) => format!("failed: {}", why.user_text()),
            CleanUpState::Underway => "under way".into(),
        };
        assert_eq!(
            said(&answer(None, &[])),
            "12 DAG runs and 340 log files from before 2026-03-01T03:00:00.000Z were removed."
        );
        let held_back = Timestamp::parse("2026-02-01T00:00:00Z").unwrap().millis();
        assert_eq!(
            said(&answer(Some(held_back), &[])),
            "12 DAG runs and 340 log files from before 2026-02-01T00:00:00.000Z were removed. What is newer is kept, because a \
             DAG run has been under way since then."
        );
        assert_eq!(
            said(&answer(None, &["xcom", "dag_run", "<script>"])),
            "failed: tables of the metadata database could not be cleaned: dag_run, xcom"
        );
    }
}
