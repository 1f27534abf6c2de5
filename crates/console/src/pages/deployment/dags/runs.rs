//! The last runs of the DAGs on a page, in few requests.

use std::collections::HashMap;

use serde_json::json;

use super::answers::{Run, Runs};
use crate::airflow::{Airflow, plain};
use crate::pages::{Html, OrganizationVisit, Result, Tone, view};

const SHOWN: usize = 12;
/// The largest page that Airflow gives, and how many are asked for.
const PAGE: usize = 100;
const ROUNDS: usize = 4;

pub(super) const LIST: &[&str] = &["dags", "~", "dagRuns", "list"];

#[derive(Default)]
pub(super) struct Found {
    /// By DAG, the newest first.
    pub(super) runs: HashMap<String, Vec<Run>>,
    /// Whether a DAG that is not among them has none.
    pub(super) is_whole: bool,
}

pub(super) struct Strip {
    /// Each as a shape, the newest last.
    pub(super) shapes: Vec<Html>,
    /// The state of the newest.
    pub(super) last: Html,
    pub(super) when: Option<Html>,
}

/// The runs of these DAGs, the newest first. A DAG that runs often does not hide the others: once it has its share, it is not
/// asked for again.
pub(super) async fn find(airflow: &Airflow<'_>, ids: &[&str]) -> Result<Found> {
    let mut found: HashMap<String, Vec<Run>> = HashMap::new();
    let mut open: Vec<&str> = ids.to_vec();
    let order = if airflow.is_old { "-execution_date" } else { "-run_after" };
    for _ in 0..ROUNDS {
        let offset: usize = open.iter().filter_map(|id| found.get(*id)).map(Vec::len).sum();
        let body = json!({ "dag_ids": open, "order_by": order, "page_limit": PAGE, "page_offset": offset });
        let page: Runs = airflow.ask(LIST, body).await?;
        let count = page.dag_runs.len().min(PAGE);
        for run in page.dag_runs.into_iter().take(PAGE) {
            if !open.contains(&run.dag_id.as_str()) {
                continue;
            }
            let known = found.entry(run.dag_id.clone()).or_default();
            if known.iter().all(|other| other.dag_run_id != run.dag_run_id) {
                known.push(run);
            }
        }
        open.retain(|id| found.get(*id).is_none_or(|runs| runs.len() < SHOWN));
        let is_last = u64::try_from(offset + count).is_ok_and(|seen| seen >= page.total_entries);
        if open.is_empty() || count == 0 || is_last {
            return Ok(Found { runs: found, is_whole: true });
        }
    }
    Ok(Found { runs: found, is_whole: false })
}

/// The strip of a DAG's runs, which come with the newest first.
pub(super) fn strip(visit: &OrganizationVisit<'_>, runs: &[Run]) -> Option<Strip> {
    let shown = &runs[..runs.len().min(SHOWN)];
    let newest = shown.first()?;
    let (tone, word) = state(newest);
    Some(Strip {
        shapes: shown.iter().rev().map(|run| shape(visit, run)).collect(),
        last: view::status(tone, &word),
        when: newest.began().map(|at| view::time(at, visit.visit.now)),
    })
}

fn shape(visit: &OrganizationVisit<'_>, run: &Run) -> Html {
    let (tone, word) = state(run);
    let began = run.began().map(|at| view::relative(at, visit.visit.now));
    let took = run.span().map(|(from, to)| format!("took {}", view::duration(from, to)));
    let label: Vec<String> = std::iter::once(word).chain(began).chain(took).collect();
    view::shape(tone, &label.join(", "))
}

fn state(run: &Run) -> (Tone, String) {
    let state = run.state.as_deref().unwrap_or_default();
    let tone = match state {
        "success" => Tone::Good,
        "failed" => Tone::Failed,
        "running" => Tone::Changing,
        _ => Tone::Unknown,
    };
    let word = if state.is_empty() { "unknown".to_owned() } else { plain(state, 32) };
    (tone, view::words(&word))
}
