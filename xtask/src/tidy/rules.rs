//! Every rule of the product names a test that pins it, and the test exists.

use super::Report;
use super::tree::Tree;

const TABLE: &str = "crates/http/tests/rules.md";
/// The chapters that it must cover.
const CHAPTERS: std::ops::RangeInclusive<u32> = 1..=15;

/// Reports rules without a test, tests that are not there, and chapters or numbers that are left out.
pub(super) fn rules_are_pinned(tree: &Tree, report: &mut Report) {
    let Some(table) = tree.files.iter().find(|file| file.path == TABLE) else {
        report.violation(TABLE, 0, "missing: it names the test of every rule");
        return;
    };
    let mut last = (0, 0);
    for (index, line) in table.text.lines().enumerate() {
        let Some(cells) = line.strip_prefix('|').and_then(|rest| rest.strip_suffix('|')) else { continue };
        let cells: Vec<&str> = cells.split('|').map(str::trim).collect();
        let Some(number) = cells.first().and_then(|cell| number(cell)) else { continue };
        let line = index + 1;
        let follows =
            (number.0 == last.0 && number.1 == last.1 + 1) || (number.0 == last.0 + 1 && number.1 == 1);
        if !follows {
            report.violation(
                TABLE,
                line,
                format!("{}.{} does not follow {}.{}", number.0, number.1, last.0, last.1),
            );
        }
        last = number;
        let [_, rule, tests] = cells.as_slice() else {
            report.violation(TABLE, line, "needs three cells: number, rule, tests");
            continue;
        };
        if rule.is_empty() {
            report.violation(TABLE, line, "says no rule");
        }
        let mut named = 0;
        for test in tests.split('`').filter(|test| test.contains("::")) {
            named += 1;
            if !exists(tree, test) {
                report.violation(TABLE, line, format!("there is no test `{test}`"));
            }
        }
        if named == 0 {
            report.violation(TABLE, line, "names no test: write `path/to/file.rs::name_of_the_test`");
        }
    }
    if last.0 != *CHAPTERS.end() {
        report.violation(TABLE, 0, format!("ends with chapter {}, not {}", last.0, CHAPTERS.end()));
    }
}

fn number(cell: &str) -> Option<(u32, u32)> {
    let (chapter, rule) = cell.split_once('.')?;
    Some((chapter.parse().ok()?, rule.parse().ok()?))
}

/// Whether a file has a test of this name.
fn exists(tree: &Tree, test: &str) -> bool {
    let Some((path, name)) = test.split_once("::") else { return false };
    let path = format!("crates/{path}");
    tree.files.iter().any(|file| file.path == path && is_test(&file.text, name))
}

/// Whether a function is a test: it has the attribute, or stands in a macro that makes tests of functions, or is named by
/// one.
fn is_test(text: &str, name: &str) -> bool {
    let declared = format!("fn {name}(");
    let (mut has_attribute, mut in_macro) = (false, false);
    let mut is_declared = false;
    for line in text.lines() {
        let start = line.trim_start();
        if line.contains(&declared) {
            if has_attribute || in_macro {
                return true;
            }
            is_declared = true;
        }
        in_macro = if line == start && line.ends_with("! {") { true } else { in_macro && line != "}" };
        let is_attribute = start.starts_with("#[");
        has_attribute = is_attribute && (has_attribute || start.contains("test"));
    }
    is_declared && is_listed(text, name)
}

/// Whether a macro of the file is given this name, as in `on_both_engines!(names_are_unique, …);`.
fn is_listed(text: &str, name: &str) -> bool {
    text.split("!(").skip(1).any(|call| {
        let list = call.split(");").next().unwrap_or_default();
        list.split(',').any(|listed| listed.trim() == name)
    })
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    fn found(table: &str) -> Vec<String> {
        let file = "on_both_engines! {\n    async fn names_are_unique(app) {}\n}\n\nfn prepare() {}\n\n\
                    #[test]\nfn names_are_kept() {}\n";
        let test = ("crates/http/tests/it/teams.rs", file);
        violations(rules_are_pinned, &[(TABLE, table), test])
    }

    fn complete(first: &str) -> String {
        let row = |n: u32| format!("| {n}.1 | A rule | `http/tests/it/teams.rs::names_are_unique` |\n");
        let rest: String = (2..=*CHAPTERS.end()).map(row).collect();
        format!("| rule | says | tests |\n|---|---|---|\n{first}\n{rest}")
    }

    #[test]
    fn a_complete_table_passes() {
        assert_eq!(found(&complete(&row("1.1"))), [""; 0]);
    }

    fn row(number: &str) -> String {
        format!("| {number} | Names are unique | `http/tests/it/teams.rs::names_are_unique` |")
    }

    #[test]
    fn refuses_what_is_missing() {
        let table = [
            (
                "| 1.1 | A rule | `http/tests/it/teams.rs::gone` |",
                "there is no test `http/tests/it/teams.rs::gone`",
            ),
            (
                "| 1.1 | A rule | `http/tests/it/gone.rs::names` |",
                "there is no test `http/tests/it/gone.rs::names`",
            ),
            (
                "| 1.1 | A rule | `http/tests/it/teams.rs::prepare` |",
                "there is no test `http/tests/it/teams.rs::prepare`",
            ),
            ("| 1.1 | A rule | later |", "names no test"),
            ("| 1.1 |  | `http/tests/it/teams.rs::names_are_unique` |", "says no rule"),
            ("| 1.2 | A rule | `http/tests/it/teams.rs::names_are_unique` |", "1.2 does not follow 0.0"),
        ];
        for (first, expected) in table {
            let found = found(&complete(first));
            assert!(found.len() == 1 && found[0].contains(expected), "{found:?}");
        }
        assert!(found(&row("1.1"))[0].contains("ends with chapter 1, not 15"));
        assert!(violations(rules_are_pinned, &[])[0].contains("missing"));
    }
}
