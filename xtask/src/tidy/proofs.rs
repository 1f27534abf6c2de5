//! Store functions take proof of the right to their rows, and few modules can act as the system.

use super::Report;
use super::signatures::{functions, words};
use super::source::Source;
use super::tree::Tree;

/// Where every statement is.
const STORE: &str = "crates/store/src/";
/// The types that prove a right.
const PROOFS: &[&str] = &["Scope", "System"];
/// The functions of the store that hand out the right to act for the system.
const OPENERS: &[&str] = &["open", "view"];
/// Their allowed callers: the start of a server, and commands that read an installation without starting it.
const HOMES: &[&str] = &["crates/app/src/start.rs", "crates/cli/src/settings.rs"];

/// Reports public functions of the store that touch rows and take no proof.
pub(super) fn statements_take_proof(tree: &Tree, report: &mut Report) {
    for file in tree.rust().filter(|file| file.path.starts_with(STORE)) {
        let code = Source::read(&file.text).code;
        for (at, name, parameters) in functions(&code) {
            let before = code[..at].rsplit('\n').next().unwrap_or_default();
            let takes = |wanted: &[&str]| words(parameters).any(|word| wanted.contains(&word));
            if before.trim_start().starts_with("pub ") && takes(&["Conn", "Tx"]) && !takes(PROOFS) {
                let line = code[..at].matches('\n').count() + 1;
                let message = format!(
                    "`{name}` touches rows without proof; take a `&Scope` where it stays in one organization, \
                     or a `&System` where only the server itself may call it"
                );
                report.violation(&file.path, line, message);
            }
        }
    }
}

/// Reports sources that open a database and so become the system, beyond the few that are meant to.
pub(super) fn few_become_the_system(tree: &Tree, report: &mut Report) {
    let others = tree.rust().filter(|file| {
        file.krate().is_some() && file.path.contains("/src/") && !HOMES.contains(&file.path.as_str())
    });
    for file in others {
        let code = Source::read(&file.text).code;
        for (at, store) in code.match_indices("podium_store::") {
            // A list of names, or one path.
            let rest = &code[at + store.len()..];
            let end = if rest.starts_with('{') { rest.find(';') } else { rest.find(|c| !is_path(c)) };
            let named = &rest[..end.unwrap_or(rest.len())];
            if let Some(opener) = words(named).find(|word| OPENERS.contains(word)) {
                let line = code[..at].matches('\n').count() + 1;
                let message = format!(
                    "`podium_store::{opener}` makes its caller the system; be given a `Scope` or a `System` instead"
                );
                report.violation(&file.path, line, message);
            }
        }
    }
}

fn is_path(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == ':'
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
    fn refuses_code_that_opens_a_database_to_act_as_the_system() {
        for source in [
            "let (db, system) = podium_store::open(options).await?;",
            "use podium_store::{Scope, view};",
            "use podium_store::{\n    Scope,\n    open as other,\n};",
        ] {
            let found = violations(few_become_the_system, &[("crates/app/src/teams.rs", source)]);
            assert_eq!(found.len(), 1, "{source}");
        }
        let source = "podium_store::open(options)";
        for home in HOMES.iter().copied().chain(["crates/http/tests/it/main.rs", "xtask/examples/schema.rs"])
        {
            assert!(violations(few_become_the_system, &[(home, source)]).is_empty(), "{home}");
        }
        let harmless = "use podium_store::{Scope, front_door};\npodium_store::front_door::code(conn, open);\nfn system() -> podium_store::System { vault.open() }";
        assert!(violations(few_become_the_system, &[("crates/app/src/teams.rs", harmless)]).is_empty());
    }
}
