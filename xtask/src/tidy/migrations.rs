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
