//! Store functions take proof of the right to their rows. That only the store makes statements, and that few functions open
//! a database and so become the system, is left to the compiler and to the lists of `clippy.toml`, which know every name that
//! something has.

use super::Report;
use super::signatures::{functions, words};
use super::source::{Source, line_of};
use super::tree::Tree;

/// Where every statement is.
const STORE: &str = "crates/store/src/";
/// The types that prove a right.
const PROOFS: &[&str] = &["Doorkeeper", "Founder", "Housekeeper", "Scope", "Steward", "System"];

/// Functions of the store that look beyond the organization of their scope; their docs say why.
const UNSCOPED: &[&str] = &["find_or_make_invitee", "free_namespace"];

/// Reports public functions of the store that take the scope of a caller and look beyond its organization.
pub(super) fn scopes_are_used(tree: &Tree, report: &mut Report) {
    for file in tree.rust().filter(|file| file.path.starts_with(STORE)) {
        let code = Source::read(&file.text).code;
        for (at, name, parameters) in functions(&code).filter(|(_, name, _)| !UNSCOPED.contains(name)) {
            let is_ignored = |parameter: &str| {
                let (pattern, kind) = parameter.split_once(':').unwrap_or_default();
                pattern.trim_start().starts_with('_') && words(kind).any(|word| word == "Scope")
            };
            if parameters.trim_start_matches('(').split(',').any(is_ignored) {
                let message = format!(
                    "`{name}` ignores its scope, so it reaches every organization; use it in the statement, or \
                     take a `&System`"
                );
                report.violation(&file.path, line_of(&code, at), message);
            }
        }
    }
}

/// Reports modules that hold the system capability and are not named in ARCHITECTURE.md.
pub(super) fn acting_modules_are_named(tree: &Tree, report: &mut Report) {
    let find = |path: &str| tree.files.iter().find(|file| file.path == path);
    let (list, page) = ("crates/app/src/system/keys.rs", "ARCHITECTURE.md");
    let (Some(list), Some(page)) = (find(list), find(page)) else {
        return report.violation(list, 0, format!("it and {page} say together who acts for the system"));
    };
    for (index, line) in list.text.lines().enumerate() {
        let module = line.trim().strip_prefix("crate::").and_then(|rest| rest.strip_suffix("::SystemKey,"));
        if let Some(module) = module.filter(|module| !page.text.contains(&format!("`{module}`"))) {
            let message = format!("ARCHITECTURE.md does not say why `{module}` acts for the system");
            report.violation(&list.path, index + 1, message);
        }
    }
}

/// Reports public functions of the store that touch rows and take no proof.
pub(super) fn statements_take_proof(tree: &Tree, report: &mut Report) {
    for file in tree.rust().filter(|file| file.path.starts_with(STORE)) {
        let code = Source::read(&file.text).code;
        for (at, name, parameters) in functions(&code) {
            let before = code[..at].rsplit('\n').next().unwrap_or_default();
            let takes = |wanted: &[&str]| words(parameters).any(|word| wanted.contains(&word));
            if before.trim_start().starts_with("pub ") && takes(&["Conn", "Tx"]) && !takes(PROOFS) {
                let message = format!(
                    "`{name}` touches rows without proof; take a `&Scope` where it stays in one organization, \
                     or a `&System` where only the server itself may call it"
                );
                report.violation(&file.path, line_of(&code, at), message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn refuses_statements_without_proof() {
        for source in [
            "pub fn get(conn: &Conn, id: TeamId) {}",
            "pub fn get<T: Into<Id>>(\n    tx: &podium_db::Tx,\n    id: T,\n) {}",
            "impl Row {\n    pub fn get(&self, conn: &Conn) {}\n}",
            "pub fn list(conn: &Conn, scope: RoleScope) {}",
        ] {
            let found = violations(statements_take_proof, &[("crates/store/src/teams.rs", source)]);
            assert_eq!(found.len(), 1, "{source}");
        }
        let found = violations(
            statements_take_proof,
            &[("crates/store/src/a/b.rs", "\npub fn get(conn: &Conn) -> Scope {}")],
        );
        assert!(
            found[0].starts_with("crates/store/src/a/b.rs:2: `get` touches rows without proof"),
            "{found:?}"
        );
    }

    #[test]
    fn takes_statements_with_proof_and_what_is_the_stores_own() {
        for source in [
            "pub fn get(conn: &Conn, scope: &Scope, id: TeamId) {}",
            "pub fn prune(\n    tx: &Tx,\n    _: &System,\n) {}",
            "fn read(conn: &Conn) {}\npub(crate) fn add(tx: &Tx) {}",
            "pub fn change(id: TeamId) -> Change {}",
            "// pub fn get(conn: &Conn) {}",
        ] {
            let found = violations(statements_take_proof, &[("crates/store/src/teams.rs", source)]);
            assert_eq!(found, [] as [&str; 0], "{source}");
        }
        let elsewhere = [("crates/app/src/teams.rs", "pub fn find(conn: &Conn) {}")];
        assert!(violations(statements_take_proof, &elsewhere).is_empty());
    }

    #[test]
    fn refuses_functions_of_the_store_that_ignore_their_scope() {
        for source in [
            "pub fn put(tx: &Tx, _: &Scope, profile: &SubjectProfile) {}",
            "pub fn put(\n    tx: &Tx,\n    _scope: &crate::Scope,\n) {}",
        ] {
            let found = violations(scopes_are_used, &[("crates/store/src/subjects.rs", source)]);
            assert_eq!(found.len(), 1, "{source}");
        }
        let fine = "pub fn put(tx: &Tx, scope: &Scope) {}\npub fn add(tx: &Tx, _: &System, scope: &str) {}\n\
                    pub fn free_namespace(conn: &Conn, _: &Scope) {}";
        assert!(violations(scopes_are_used, &[("crates/store/src/subjects.rs", fine)]).is_empty());
    }

    #[test]
    fn refuses_modules_that_act_for_the_system_and_are_named_nowhere() {
        let list = "acting! {\n    crate::audit::SystemKey,\n    crate::deploys::uploads::SystemKey,\n}";
        let found = |page| {
            let files = [("ARCHITECTURE.md", page), ("crates/app/src/system/keys.rs", list)];
            violations(acting_modules_are_named, &files).len()
        };
        assert_eq!(found("`audit` and `deploys::uploads`"), 0);
        assert_eq!(found("audit and `uploads`"), 2);
    }
}
