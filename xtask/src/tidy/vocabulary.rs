//! Words that only some crates may use, and words that none may use.

use super::Report;
use super::arrows::dependencies;
use super::source::Source;
use super::tree::Tree;

/// Libraries that only some crates may name.
const HOMES: &[(&[&str], &[&str], &str)] = &[
    (&["rusqlite", "tokio_postgres", "tokio_postgres_rustls"], &["db"], "go through podium-db"),
    (
        &["axum", "hyper", "hyper_util", "matchit", "tower_http"],
        &["http", "console"],
        "only the crates that serve name the HTTP library",
    ),
    (&["kube", "k8s_openapi"], &["kubernetes"], "go through podium-kubernetes"),
];

/// Crates that hold rules and are given what they judge.
const RULES: &[&str] = &["airflow", "api", "domain"];
/// What reaches for the machine.
const MACHINE: &[&str] = &["std::env", "std::fs", "std::os", "std::process", "rustix"];

/// Markers of unfinished code.
const UNFINISHED: &[&str] = &["todo!", "unimplemented!", "dbg!", "#[ignore]", "#[ignore ="];

/// An ignored test has to name the command that runs it.
const RUN_ELSEWHERE: &str = ": cargo xtask ";

/// Reports manifests that list database drivers and HTTP libraries, for tests too, outside the crates that wrap them. What no
/// manifest lists, no source can name.
pub(super) fn drivers_and_frameworks_stay_home(tree: &Tree, report: &mut Report) {
    for file in tree.manifests() {
        for (index, _) in file.text.lines().enumerate().filter(|(_, line)| line.contains("package =")) {
            report.violation(&file.path, index + 1, "gives a dependency another name; use its own");
        }
        for (line, name) in dependencies(file, true) {
            let name = name.replace('-', "_");
            for (libraries, homes, instead) in HOMES {
                if libraries.contains(&name.as_str()) && !homes.contains(&file.krate().unwrap_or_default()) {
                    let message =
                        format!("names `{name}`, which belongs to {}; {instead}", homes.join(" and "));
                    report.violation(&file.path, line, message);
                }
            }
        }
    }
}

/// Reports files and processes in the crates that hold rules: those of any plane, and those of the product.
pub(super) fn rules_touch_no_machine(tree: &Tree, report: &mut Report) {
    for file in tree.rust().filter(|file| file.krate().is_some_and(|krate| RULES.contains(&krate))) {
        let source = Source::read(&file.text);
        for part in MACHINE {
            let message =
                format!("names `{part}`; let a plane reach for the machine, and pass what it found");
            report.violations(&file.path, source.lines_with(part), &message);
        }
    }
}

pub(super) fn nothing_unfinished(tree: &Tree, report: &mut Report) {
    for file in tree.rust() {
        let source = Source::read(&file.text);
        for word in UNFINISHED {
            for line in source.lines_with(word) {
                let whole = file.text.lines().nth(line - 1).unwrap_or_default();
                if *word == "#[ignore =" && whole.contains(RUN_ELSEWHERE) {
                    continue;
                }
                report.violation(&file.path, line, format!("`{word}`: finish it or take it out"));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn refuses_drivers_and_http_libraries_outside_of_their_homes() {
        let files = [
            ("crates/store/Cargo.toml", "[dev-dependencies]\ntokio-postgres = \"1\"\n"),
            ("crates/app/Cargo.toml", "[dependencies]\nhyper = \"1\"\nhypersonic = \"1\"\n"),
            ("crates/db/Cargo.toml", "[dependencies]\nrusqlite = \"1\"\n"),
            ("crates/domain/Cargo.toml", "[dependencies]\nsql = { package = \"rusqlite\" }\n"),
        ];
        let found = violations(drivers_and_frameworks_stay_home, &files);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].starts_with("crates/store/Cargo.toml:2: names `tokio_postgres`"), "{found:?}");
        assert!(found[1].starts_with("crates/app/Cargo.toml:2: names `hyper`"), "{found:?}");
    }

    #[test]
    fn refuses_files_and_processes_where_rules_are() {
        let source = "// std::fs is fine here\nuse std::fs::File;\nfn end() { std::process::exit(1) }\n";
        let files = [("crates/airflow/src/check.rs", source), ("crates/dataplane/src/local.rs", source)];
        let found = violations(rules_touch_no_machine, &files);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/airflow/src/check.rs:2: names `std::fs`"), "{found:?}");
    }

    #[test]
    fn refuses_unfinished_code() {
        let text = "fn a() { todo!() }\n#[ignore = \"slow\"]\nfn b() { \"dbg!\"; }\n#[ignore]\nfn c() {}\n\
                    #[ignore = \"runs for minutes: cargo xtask airflow\"]\nfn d() {}\n";
        let found = violations(nothing_unfinished, &[("crates/app/src/lib.rs", text)]);
        assert_eq!(found.len(), 3, "{found:?}");
    }
}
