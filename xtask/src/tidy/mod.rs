//! `cargo xtask tidy`: the rules of the workspace that no compiler checks.
//!
//! Each rule is a function over a [`Tree`] of files, so that its tests can show it failing on a made-up tree. All
//! violations are reported at once, each with what to do about it.

mod arrows;
mod circles;
mod documents;
mod failures;
mod files;
mod migrations;
mod packages;
mod proofs;
mod renames;
mod rules;
mod signatures;
mod source;
mod statements;
mod tree;
mod vocabulary;
mod waiting;

use crate::outcome::Outcome;
use crate::workspace::root;
use tree::Tree;

#[derive(Default)]
struct Report {
    violations: Vec<String>,
    warnings: Vec<String>,
}

impl Report {
    /// Something that must change. Line 0 stands for the whole file.
    fn violation(&mut self, path: &str, line: usize, message: impl AsRef<str>) {
        self.violations.push(entry(path, line, message.as_ref()));
    }

    fn violations(&mut self, path: &str, lines: Vec<usize>, message: &str) {
        lines.into_iter().for_each(|line| self.violation(path, line, message));
    }

    fn warning(&mut self, path: &str, line: usize, message: impl AsRef<str>) {
        self.warnings.push(entry(path, line, message.as_ref()));
    }
}

fn entry(path: &str, line: usize, message: &str) -> String {
    if line == 0 { format!("{path}: {message}") } else { format!("{path}:{line}: {message}") }
}

/// A rule looks at the tree and reports.
type Rule = fn(&Tree, &mut Report);

const RULES: &[Rule] = &[
    arrows::only_allowed_edges,
    circles::no_file_imports_itself,
    vocabulary::drivers_and_frameworks_stay_home,
    vocabulary::rules_touch_no_machine,
    vocabulary::nothing_unfinished,
    failures::errors_have_types,
    failures::texts_for_users_are_made_of_vetted_parts,
    failures::nothing_is_leaked,
    waiting::futures_do_not_wait_for_disks,
    files::sizes,
    files::names,
    files::purposes,
    renames::renames_are_synced,
    signatures::ids_have_kinds,
    proofs::statements_take_proof,
    proofs::scopes_are_used,
    proofs::acting_modules_are_named,
    migrations::same_names,
    migrations::texts_are_compared_by_bytes,
    statements::are_listed,
    rules::rules_are_pinned,
    documents::links_resolve,
];

pub(crate) fn run() -> Outcome {
    let tree = Tree::load(&root())?;
    let mut report = check(&tree);
    packages::no_banned_packages(&packages::built()?, &mut report);
    for warning in &report.warnings {
        println!("warning: {warning}");
    }
    if report.violations.is_empty() {
        return Ok(());
    }
    Err(format!("{} to tidy up\n{}", report.violations.len(), report.violations.join("\n")))
}

/// Whether any documentation comment holds an example to compile and run.
pub(crate) fn has_documentation_tests() -> bool {
    Tree::load(&root()).is_ok_and(|tree| tree.rust().any(|file| documents::has_examples(&file.text)))
}

fn check(tree: &Tree) -> Report {
    let mut report = Report::default();
    RULES.iter().for_each(|rule| rule(tree, &mut report));
    report
}

/// What a rule says of a made-up tree.
#[cfg(test)]
fn violations(rule: Rule, files: &[(&str, &str)]) -> Vec<String> {
    let mut report = Report::default();
    rule(&Tree::of(files), &mut report);
    report.violations
}
