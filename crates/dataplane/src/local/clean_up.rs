//! Clean-ups of an environment's history: which one was asked for, how far it is, and what it says in the end.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use podium_api::{OperationId, Timestamp};
use podium_domain::{Reason, UserText};
use serde::Deserialize;

use super::one_shot::{OneShot, OneShotError};
use crate::{CleanUp, CleanUpState};

/// How long a clean-up may take.
pub(super) const LONGEST: Duration = Duration::from_hours(2);
/// How many run at once on this machine: each reads and deletes much.
pub(super) const MOST_AT_ONCE: usize = 2;
/// The longest answer.
const MOST_BYTES: usize = 64 << 10;
/// The tables that are cleaned.
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

/// The clean-up that was last asked for.
#[derive(Default)]
pub(super) struct CleanUps(Mutex<Option<Asked>>);

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
    pub(super) fn ask(&self, clean_up: CleanUp) -> CleanUpState {
        let mut asked = self.lock();
        match &*asked {
            Some(known) if known.clean_up.id == clean_up.id => known.state.clone(),
            _ => {
                *asked = Some(Asked { clean_up, has_begun: false, state: CleanUpState::Underway });
                CleanUpState::Underway
            }
        }
    }

    /// The clean-up that is to begin, if there is one.
    pub(super) fn begin(&self) -> Option<CleanUp> {
        let mut asked = self.lock();
        let asked = asked.as_mut().filter(|asked| !asked.has_begun)?;
        asked.has_begun = true;
        Some(asked.clean_up)
    }

    /// Forgets it, if it has not ended: whoever still wants it asks again.
    pub(super) fn interrupt(&self) {
        self.lock().take_if(|asked| asked.state == CleanUpState::Underway);
    }

    /// Ends it, unless another one was asked for.
    pub(super) fn end(&self, id: OperationId, state: CleanUpState) {
        if let Some(asked) = self.lock().as_mut().filter(|asked| asked.clean_up.id == id) {
            asked.state = state;
        }
    }
}

/// What a clean-up says in the end.
#[derive(Debug, Deserialize)]
struct Answer {
    runs: u64,
    files: u64,
    held_back_to: Option<i64>,
    failed: Vec<String>,
}

/// Runs a clean-up to its end.
pub(super) async fn run(program: OneShot<'_>, before: Timestamp) -> CleanUpState {
    match program.answer::<Answer>(LONGEST, MOST_BYTES).await {
        Ok(answer) => ended(&answer, before),
        Err(error @ OneShotError::TooLong(_)) => {
            CleanUpState::Failed(Reason::new("cleaning up the history took too long, and was ended", error))
        }
        Err(error) => CleanUpState::Failed(Reason::new("the history could not be cleaned up", error)),
    }
}

fn ended(answer: &Answer, before: Timestamp) -> CleanUpState {
    if !answer.failed.is_empty() {
        // Only what is known is repeated: the answer is the author's claim.
        let failed = TABLES.iter().filter(|table| answer.failed.iter().any(|failed| failed == *table));
        let failed: Vec<UserText> = failed.map(|table| UserText::new(table)).collect();
        let why = "tables of the metadata database could not be cleaned: {}";
        return CleanUpState::Failed(UserText::filled(why, &[&UserText::joined(failed, ", ")]).into());
    }
    let held_back_to = answer.held_back_to.map(Timestamp::from_millis).filter(|to| *to < before);
    let template = match held_back_to {
        None => "{} DAG runs and {} log files from before {} were removed.",
        Some(_) => {
            "{} DAG runs and {} log files from before {} were removed. What is newer is kept, because a DAG run has been \
             under way since then."
        }
    };
    let since = held_back_to.unwrap_or(before);
    CleanUpState::Done(UserText::filled(template, &[&answer.runs, &answer.files, &since]))
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
        let helper = podium_airflow::support::text("podium_clean_up.py").unwrap();
        let (_, listed) = helper.split_once("TABLES = [").unwrap();
        let (listed, _) = listed.split_once(']').unwrap();
        let listed: Vec<&str> = listed.split('"').skip(1).step_by(2).collect();
        assert_eq!(listed, TABLES);
    }

    #[test]
    fn the_summary_says_what_was_removed_and_what_was_kept() {
        let before = Timestamp::parse("2026-03-01T03:00:00Z").unwrap();
        let answer = |held_back_to, failed: &[&str]| Answer {
            runs: 12,
            files: 340,
            held_back_to,
            failed: failed.iter().map(|table| (*table).to_owned()).collect(),
        };
        let said = |answer: &Answer| match ended(answer, before) {
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
