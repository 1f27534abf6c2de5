//! Every statement and every list of the store is known to the test that prepares them all.

use super::Report;
use super::tree::Tree;

const STORE: &str = "crates/store/src/";
const LIST: &str = "crates/store/src/lib.rs";

/// Reports modules of the store whose statements or table the store does not list.
pub(super) fn are_listed(tree: &Tree, report: &mut Report) {
    let Some(list) = tree.files.iter().find(|file| file.path == LIST) else { return };
    for file in tree.rust() {
        let Some(name) = file.path.strip_prefix(STORE).and_then(|path| path.strip_suffix(".rs")) else {
            continue;
        };
        // A part of a module is listed by its module, under a name of its own: `LINK_STATEMENTS` of `links`.
        let (module, part) = name.split_once('/').map_or((name, ""), |(module, part)| (module, part));
        let prefix = part.trim_end_matches('s').to_uppercase();
        let lists = |what: &str| match prefix.as_str() {
            "" => listed(&list.text, what).any(|listed| listed == module),
            prefix => list.text.contains(&format!(" {module}::{prefix}_{what}")),
        };
        let has = |text: &str| file.text.lines().any(|line| line.trim_start().starts_with(text));
        for (marks, what) in [
            ("statements! {", "STATEMENTS"),
            ("pub const TABLE:", "TABLE"),
            ("pub(crate) const TABLE:", "TABLE"),
        ] {
            if has(marks) && !lists(what) {
                let message = format!("list `{module}::{what}` in {LIST}, so that a test prepares it");
                report.violation(&file.path, 0, message);
            }
        }
    }
}

/// The modules that the store lists for what they have under a name.
fn listed<'a>(list: &'a str, what: &str) -> impl Iterator<Item = &'a str> {
    let after = list.split_once(&format!("each!({what} of")).map_or("", |(_, after)| after);
    after.split(')').next().unwrap_or_default().split_whitespace()
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn refuses_statements_that_no_test_prepares() {
        let notes = "statements! {\n}\npub(crate) const TABLE: Table = Table {};\n";
        let files = [
            (
                LIST,
                "let fixed = each!(STATEMENTS of\n    roles teams\n);\nlet lists = each!(TABLE of teams);\n",
            ),
            ("crates/store/src/notes.rs", notes),
            ("crates/store/src/teams.rs", notes),
        ];
        assert_eq!(
            violations(are_listed, &files),
            [
                "crates/store/src/notes.rs: list `notes::STATEMENTS` in crates/store/src/lib.rs, so that a test prepares it",
                "crates/store/src/notes.rs: list `notes::TABLE` in crates/store/src/lib.rs, so that a test prepares it",
            ]
        );
    }
}
