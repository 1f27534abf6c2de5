//! Patterns of permission names, to keep the table of roles readable.
//!
//! `deployment.{logs,metrics}.get` names two permissions. A `*` as the last part matches everything below, one further
//! up exactly one part. Patterns are for tables in the code; nothing that a caller sends is one.

use crate::permissions::{Permission, PermissionSet};

/// The permissions that any of the patterns names; each pattern must name some.
pub(crate) fn matching(patterns: &[impl AsRef<str>]) -> PermissionSet {
    let mut set = PermissionSet::EMPTY;
    for pattern in patterns.iter().flat_map(|pattern| alternatives(pattern.as_ref())) {
        let found: PermissionSet = Permission::all().filter(|p| matches(&pattern, p.name())).collect();
        debug_assert!(!found.is_empty(), "{pattern} names no permission");
        set = set.union(found);
    }
    set
}

/// A pattern without braces for each word between them.
fn alternatives(pattern: &str) -> Vec<String> {
    let braces = pattern.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?)));
    match braces {
        None => vec![pattern.to_owned()],
        Some((head, (words, tail))) => words.split(',').map(|word| format!("{head}{word}{tail}")).collect(),
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    match (pattern.split_once('.'), name.split_once('.')) {
        (None, _) => pattern == "*" || pattern == name,
        (Some((first, rest)), Some((part, below))) => (first == "*" || first == part) && matches(rest, below),
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_read_as_people_say_them() {
        let table: [(&str, &[&str]); 5] = [
            ("deployment.get", &["deployment.get"]),
            ("deployment.{logs,metrics}.get", &["deployment.logs.get", "deployment.metrics.get"]),
            (
                "{workspace,deployment}.envObjects.get",
                &["deployment.envObjects.get", "workspace.envObjects.get"],
            ),
            ("dag.airflow.xcom.*", &["dag.airflow.xcom.delete", "dag.airflow.xcom.get"]),
            ("dag.airflow.*.create", &["dag.airflow.dagRun.create", "dag.airflow.taskInstance.create"]),
        ];
        for (pattern, expected) in table {
            assert_eq!(matching(&[pattern]).names(), expected, "{pattern}");
        }
        assert_eq!(matching(&["*"]), PermissionSet::everything());
        assert_eq!(matching(&["deployment.airflow.*"]).len(), 44);
    }
}
