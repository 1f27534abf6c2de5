//! The report of a rollout that has ended.

use std::collections::BTreeSet;

use podium_api::deploy_reports::{ReportedChanges, ReportedImportError, ReportedStep, RolloutReport};
use podium_domain::deploys::reports;

use crate::parsing::{Parsed, changed_dags};

/// What is known of a version of the DAGs that was to go live.
#[derive(Debug, Default)]
pub struct VersionFindings {
    /// The files that differ from those that ran before, if that is known.
    pub files: Option<ReportedChanges>,
    /// The DAGs that Airflow knew before, if it said so.
    pub dags_before: Option<BTreeSet<String>>,
    /// What Airflow said last of the version; `None` if it has not said anything.
    pub parsed: Option<Parsed>,
}

/// The report of a rollout with these steps, of a version that was checked before it was live with these errors.
pub fn of_rollout(
    steps: Vec<ReportedStep>,
    checked: &[ReportedImportError],
    version: Option<VersionFindings>,
) -> RolloutReport {
    let mut report = RolloutReport { steps, ..RolloutReport::default() };
    if !checked.is_empty() {
        report.import_error_count = checked.len() as u64;
        report.import_errors = checked.to_vec();
    }
    if let Some(VersionFindings { files, dags_before, parsed }) = version {
        let is_known = parsed.is_some();
        let Parsed { dags, errors, is_complete, .. } = parsed.unwrap_or_default();
        let before = dags_before.filter(|_| is_known);
        report.dags = before.map(|before| changed_dags(&before, &dags, files.as_ref(), !errors.is_empty()));
        report.is_parsed = is_known.then_some(is_complete);
        report.files = files;
        report.import_error_count = errors.len() as u64;
        report.import_errors = errors;
    }
    reports::bounded(report)
}
