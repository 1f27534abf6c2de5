//! Rust files: small, named after their content, and opened by what they are for.

use super::Report;
use super::tree::Tree;

const MOST_LINES: usize = 600;
const MANY_LINES: usize = 400;

/// Names that say nothing, so that everything ends up in them.
const EMPTY_NAMES: &[&str] = &["common", "helper", "helpers", "manager", "misc", "util", "utils"];

/// Reports files that are too long.
pub(super) fn sizes(tree: &Tree, report: &mut Report) {
    for file in tree.rust() {
        let lines = file.text.lines().count();
        if lines > MOST_LINES {
            report.violation(&file.path, 0, format!("{lines} lines; split it (at most {MOST_LINES})"));
        } else if lines > MANY_LINES {
            report.warning(&file.path, 0, format!("{lines} lines; consider splitting it"));
        }
    }
}

pub(super) fn names(tree: &Tree, report: &mut Report) {
    for file in tree.rust() {
        let mut parts = file.path.trim_end_matches(".rs").split('/');
        if let Some(part) = parts.find(|part| EMPTY_NAMES.contains(part)) {
            report.violation(&file.path, 0, format!("`{part}` says nothing; name it after what it holds"));
        }
    }
}

/// Reports source files that do not say what they are for.
pub(super) fn purposes(tree: &Tree, report: &mut Report) {
    for file in tree.files.iter().filter(|file| file.is_source() && !file.text.starts_with("//!")) {
        report.violation(&file.path, 0, "begin it with what it is for (`//! …`)");
    }
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn refuses_long_files_and_warns_before() {
        let (long, longer) = ("\n".repeat(MOST_LINES), "\n".repeat(MOST_LINES + 1));
        let files = [("crates/a/src/a.rs", long.as_str()), ("crates/a/src/b.rs", &longer)];
        assert_eq!(violations(sizes, &files), ["crates/a/src/b.rs: 601 lines; split it (at most 600)"]);
        let mut report = Report::default();
        sizes(&Tree::of(&files), &mut report);
        assert_eq!(report.warnings, ["crates/a/src/a.rs: 600 lines; consider splitting it"]);
    }

    #[test]
    fn refuses_files_without_purpose() {
        let files = [
            ("crates/a/src/a.rs", "//! Teams.\n"),
            ("crates/a/src/b.rs", "fn b() {}\n"),
            ("crates/a/src/b/tests.rs", "fn b() {}\n"),
        ];
        assert_eq!(
            violations(purposes, &files),
            ["crates/a/src/b.rs: begin it with what it is for (`//! …`)"]
        );
    }

    #[test]
    fn refuses_empty_names() {
        let files = [
            ("crates/a/src/utils.rs", ""),
            ("crates/a/src/common/x.rs", ""),
            ("crates/a/src/utility.rs", ""),
        ];
        assert_eq!(violations(names, &files).len(), 2);
    }
}
