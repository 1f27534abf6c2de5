//! Dependencies between crates run one way. This table is the only place that lists them.

use super::Report;
use super::tree::{File, Tree};

/// Each crate and the crates that it may depend on; a crate that is not named here may not exist.
const ALLOWED: &[(&str, &[&str])] = &[
    ("api", &[]),
    ("domain", &["api"]),
    ("db", &[]),
    ("store", &["api", "db", "domain"]),
    ("logs", &["api"]),
    ("objects", &["api"]),
    ("app", &["api", "db", "domain", "logs", "objects", "store"]),
    ("airflow", &["api", "domain"]),
    ("dataplane", &["airflow", "api", "domain"]),
    ("reconcile", &["api", "app", "dataplane", "db", "domain", "logs", "objects", "store"]),
    ("http", &["api", "app", "console", "dataplane", "domain"]),
    ("console", &["api"]),
    ("client", &["api"]),
    ("terminal", &[]),
    ("server", &["api", "app", "dataplane", "db", "http", "reconcile", "store", "terminal"]),
    ("cli", &["api", "app", "client", "server", "terminal"]),
    ("testkit", ALL),
];

/// What the crate that combines everything for tests may depend on.
#[rustfmt::skip]
const ALL: &[&str] = &[
    "airflow", "api", "app", "client", "console", "dataplane", "db", "domain", "http", "logs", "objects", "reconcile", "store",
];

/// Reports dependencies that are not allowed. Dependencies of tests are free.
pub(super) fn only_allowed_edges(tree: &Tree, report: &mut Report) {
    for manifest in tree.manifests() {
        let Some(name) = manifest.krate() else { continue };
        let Some((_, allowed)) = ALLOWED.iter().find(|(known, _)| *known == name) else {
            report.violation(
                &manifest.path,
                0,
                "not on the map: add the crate and its arrows to tidy/arrows.rs",
            );
            continue;
        };
        for (line, dependency) in dependencies(manifest, false) {
            let Some(other) = dependency.strip_prefix("podium-") else { continue };
            if !allowed.contains(&other) {
                let allowed = if allowed.is_empty() { "nothing".into() } else { allowed.join(", ") };
                let message = format!("`{name}` may not depend on `{other}`, only on {allowed}");
                report.violation(&manifest.path, line, message);
            }
        }
    }
}

/// Names in the dependency tables of a manifest, with their lines.
pub(super) fn dependencies(manifest: &File, of_tests_too: bool) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut inside = false;
    for (index, line) in manifest.text.lines().enumerate() {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            let header = header.trim_end_matches(']');
            let is_table = |name: &str| header == name || header.ends_with(&format!(".{name}"));
            inside = is_table("dependencies")
                || is_table("build-dependencies")
                || (of_tests_too && is_table("dev-dependencies"));
            // [dependencies.name]
            let is_single = !header.contains("dev-") || of_tests_too;
            if let Some((_, name)) = header.rsplit_once("dependencies.").filter(|_| is_single) {
                found.push((index + 1, name.to_owned()));
            }
        } else if inside && !line.starts_with('#') {
            let name = line.split(['.', '=', ' ']).next().unwrap_or_default();
            if !name.is_empty() {
                found.push((index + 1, name.to_owned()));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn refuses_a_dependency_that_points_up() {
        let found = violations(
            only_allowed_edges,
            &[(
                "crates/domain/Cargo.toml",
                "[dependencies]\npodium-api.workspace = true\npodium-app = { path = \"x\" }\n",
            )],
        );
        assert_eq!(found, ["crates/domain/Cargo.toml:3: `domain` may not depend on `app`, only on api"]);
    }

    #[test]
    fn refuses_an_unlisted_crate() {
        let found = violations(only_allowed_edges, &[("crates/misc/Cargo.toml", "")]);
        assert!(found[0].contains("not on the map"), "{found:?}");
    }

    #[test]
    fn leaves_test_dependencies_alone() {
        let manifest =
            "[dev-dependencies]\npodium-testkit.workspace = true\n[dependencies.podium-api]\npath = \"x\"\n";
        assert!(violations(only_allowed_edges, &[("crates/app/Cargo.toml", manifest)]).is_empty());
    }

    #[test]
    fn the_dependency_table_has_no_cycle() {
        let mut below: Vec<&str> = Vec::new();
        while below.len() < ALLOWED.len() {
            let next = ALLOWED.iter().find(|(name, allowed)| {
                !below.contains(name) && allowed.iter().all(|other| below.contains(other))
            });
            below.push(next.expect("a circle, or a crate that is not on the map").0);
        }
    }
}
