//! The two engines have the same migrations: same names, each in its own dialect.

use std::collections::BTreeSet;

use super::Report;
use super::tree::Tree;

const ENGINES: [&str; 2] = ["sqlite", "postgres"];

/// Reports migrations that only one engine has.
pub(super) fn same_names(tree: &Tree, report: &mut Report) {
    let [sqlite, postgres] = ENGINES.map(|engine| names(tree, engine));
    for (name, engine) in sqlite
        .difference(&postgres)
        .map(|name| (name, ENGINES[1]))
        .chain(postgres.difference(&sqlite).map(|name| (name, ENGINES[0])))
    {
        report.violation(&format!("migrations/{engine}/{name}"), 0, "missing: the other engine has it");
    }
}

/// Migrations from before this rule, with texts that are neither sorted nor compared with others.
const BEFORE: [&str; 2] = ["0023_rolled_back_from.sql", "0029_device_sign_ins.sql"];

/// Reports columns of text on PostgreSQL that are sorted as the server's locale has it, unlike on SQLite.
pub(super) fn texts_are_compared_by_bytes(tree: &Tree, report: &mut Report) {
    for file in &tree.files {
        if !file.path.starts_with("migrations/postgres/") || BEFORE.contains(&file.name()) {
            continue;
        }
        for (number, line) in file.text.lines().enumerate() {
            let declared = line.split("--").next().unwrap_or_default();
            let is_sorted_by_a_locale = |column: &str| {
                let is_text = column.split([' ', ';', '(', ')']).any(|word| word == "TEXT");
                is_text && !column.contains("COLLATE \"C\"") && !column.contains("AS TEXT")
            };
            if declared.split(',').any(is_sorted_by_a_locale) {
                report.violation(
                    &file.path,
                    number + 1,
                    "write `TEXT COLLATE \"C\"`: texts are compared by bytes",
                );
            }
        }
    }
}

fn names<'t>(tree: &'t Tree, engine: &str) -> BTreeSet<&'t str> {
    let directory = format!("migrations/{engine}/");
    tree.files
        .iter()
        .filter_map(|file| file.path.strip_prefix(&directory))
        .filter(|n| n.ends_with(".sql"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn refuses_a_text_that_is_sorted_by_a_locale() {
        let files = [
            (
                "migrations/postgres/0040_notes.sql",
                "CREATE TABLE notes (\n    id TEXT COLLATE \"C\" PRIMARY KEY,\n    title TEXT NOT NULL\n);",
            ),
            ("migrations/sqlite/0040_notes.sql", "CREATE TABLE notes (id TEXT PRIMARY KEY);"),
        ];
        assert_eq!(
            violations(texts_are_compared_by_bytes, &files),
            ["migrations/postgres/0040_notes.sql:3: write `TEXT COLLATE \"C\"`: texts are compared by bytes"]
        );
    }

    #[test]
    fn refuses_a_migration_of_one_engine() {
        let files = [
            ("migrations/sqlite/0001_start.sql", ""),
            ("migrations/postgres/0001_start.sql", ""),
            ("migrations/postgres/0002_more.sql", ""),
        ];
        assert_eq!(
            violations(same_names, &files),
            ["migrations/sqlite/0002_more.sql: missing: the other engine has it"]
        );
    }
}
