//! Bounds of a deploy's report. What Airflow says is a claim of the DAGs' authors: it is kept short, and never interpreted.

use podium_api::deploy_reports::{ReportedChanges, ReportedImportError, RolloutReport};

/// How many names of a kind are kept.
const MOST_NAMES: usize = 200;
const LONGEST_NAME: usize = 300;
const MOST_ERRORS: usize = 50;
const LONGEST_MESSAGE: usize = 1000;
const LONGEST_TRACEBACK: usize = 8000;
/// How many DAGs of one are named.
const MOST_DAGS: usize = 20;
const MOST_STEPS: usize = 20;

/// What differs, sorted and counted.
pub fn changes(added: Vec<String>, changed: Vec<String>, removed: Vec<String>) -> ReportedChanges {
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    ReportedChanges {
        added_count: added.len() as u64,
        changed_count: changed.len() as u64,
        removed_count: removed.len() as u64,
        added: sorted(added),
        changed: sorted(changed),
        removed: sorted(removed),
    }
}

/// A report within its bounds; the counts say what was left out.
pub fn bounded(report: RolloutReport) -> RolloutReport {
    let RolloutReport { files, dags, mut import_errors, import_error_count, is_parsed, mut steps } = report;
    let import_error_count = import_error_count.max(import_errors.len() as u64);
    import_errors.truncate(MOST_ERRORS);
    steps.truncate(MOST_STEPS);
    RolloutReport {
        files: files.map(names),
        dags: dags.map(names),
        import_errors: import_errors.iter().map(import_error).collect(),
        import_error_count,
        is_parsed,
        steps,
    }
}

fn names(changes: ReportedChanges) -> ReportedChanges {
    let few = |mut names: Vec<String>| {
        names.truncate(MOST_NAMES);
        names.iter().map(|name| beginning(name, LONGEST_NAME)).collect()
    };
    ReportedChanges {
        added: few(changes.added),
        changed: few(changes.changed),
        removed: few(changes.removed),
        ..changes
    }
}

fn import_error(error: &ReportedImportError) -> ReportedImportError {
    let traceback = error.traceback.chars().filter(|c| *c != '\0').collect::<String>();
    // The end of a traceback says what happened.
    let over = traceback.chars().count().saturating_sub(LONGEST_TRACEBACK);
    ReportedImportError {
        file: beginning(&error.file, LONGEST_NAME),
        line: error.line,
        message: beginning(&error.message, LONGEST_MESSAGE),
        traceback: traceback.chars().skip(over).collect(),
        dag_ids: error.dag_ids.iter().take(MOST_DAGS).map(|id| beginning(id, LONGEST_NAME)).collect(),
    }
}

fn beginning(text: &str, most: usize) -> String {
    text.chars().filter(|c| *c != '\0').take(most).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_bounded_and_counts_what_it_leaves_out() {
        let many =
            |count: usize| (0..count).map(|n| format!("{n:04}{}", "x".repeat(500))).collect::<Vec<_>>();
        let error = |n: u32| ReportedImportError {
            file: "f".repeat(5000),
            line: Some(n),
            message: format!("m\0{}", "m".repeat(5000)),
            traceback: format!("{}the end", "t".repeat(50_000)),
            dag_ids: many(100),
        };
        let bounded = bounded(RolloutReport {
            files: Some(changes(many(500), Vec::new(), many(3))),
            import_errors: (0..80).map(error).collect(),
            ..RolloutReport::default()
        });
        let files = bounded.files.unwrap();
        assert_eq!((files.added.len(), files.added_count, files.removed_count), (MOST_NAMES, 500, 3));
        assert_eq!(files.added[0].len(), LONGEST_NAME);
        assert_eq!((bounded.import_errors.len(), bounded.import_error_count), (MOST_ERRORS, 80));
        let first = &bounded.import_errors[0];
        assert_eq!((first.file.len(), first.message.len()), (LONGEST_NAME, LONGEST_MESSAGE));
        assert_eq!((first.dag_ids.len(), first.dag_ids[0].len()), (MOST_DAGS, LONGEST_NAME));
        assert!(!first.message.contains('\0'), "not every database takes it");
        assert!(first.traceback.len() == LONGEST_TRACEBACK && first.traceback.ends_with("the end"));
    }
}
