//! Store functions take proof of the right to their rows, and few modules can act as the system.

use super::Report;
use super::signatures::{functions, words};
use super::source::{Source, word_at};
use super::tree::Tree;

/// Where every statement is.
const STORE: &str = "crates/store/src/";
/// The types that prove a right.
const PROOFS: &[&str] = &["Doorkeeper", "Founder", "Housekeeper", "Scope", "Steward", "System"];
/// The functions of the store that hand out the right to act for the system.
const OPENERS: &[&str] = &["open", "view"];
/// Their allowed callers: the start of a server, and commands that read an installation without starting it.
const HOMES: &[&str] = &["crates/app/src/start.rs", "crates/server/src/settings.rs"];

/// Functions of the store that look beyond the organization of their scope; their docs say why.
const UNSCOPED: &[&str] = &["find_or_make_invitee", "free_namespace"];
/// The crates that hold statements and run them.
const RUNNERS: &[&str] = &["store", "db", "testkit"];
/// Names that are needed to create or run a statement.
const STATEMENTS: &[&str] =
    &["Sql", "statements!", "Migration", ".execute(", ".query_one(", ".query_opt(", ".query("];

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
                let line = code[..at].matches('\n').count() + 1;
                let message = format!(
                    "`{name}` ignores its scope, so it reaches every organization; use it in the statement, or \
                     take a `&System`"
                );
                report.violation(&file.path, line, message);
            }
        }
    }
}

/// Reports modules that hold the system capability and are not named in ARCHITECTURE.md.
pub(super) fn acting_modules_are_named(tree: &Tree, report: &mut Report) {
    let find = |path: &str| tree.files.iter().find(|file| file.path == path);
    let (Some(list), Some(page)) = (find("crates/app/src/system.rs"), find("ARCHITECTURE.md")) else {
        return;
    };
    for (index, line) in list.text.lines().enumerate() {
        let module = line.trim().strip_prefix("crate::").and_then(|rest| rest.strip_suffix("::SystemKey,"));
        if let Some(module) = module.filter(|module| !page.text.contains(&format!("`{module}`"))) {
            let message = format!("ARCHITECTURE.md does not say why `{module}` acts for the system");
            report.violation(&list.path, index + 1, message);
        }
    }
}

/// Reports sources outside the store that make or run statements: those need no proof.
pub(super) fn only_the_store_runs_statements(tree: &Tree, report: &mut Report) {
    let others = tree.rust().filter(|file| {
        file.krate().is_some_and(|krate| !RUNNERS.contains(&krate)) && file.path.contains("/src/")
    });
    for file in others {
        let code = Source::read(&file.text).code;
        for (index, line) in code.lines().enumerate() {
            // The query of a URL takes no argument.
            let line = line.replace(".query()", "");
            let holds = |word: &&&str| word.starts_with('.') && line.contains(**word) || word_at(&line, word);
            if let Some(word) = STATEMENTS.iter().find(holds) {
                let message = format!("`{word}`: statements run in crates/store, where they take proof");
                report.violation(&file.path, index + 1, message);
            }
        }
    }
}

/// Reports sources and manifests that rename the store or import all of it: the other rules could not see what they use.
pub(super) fn the_store_keeps_its_name(tree: &Tree, report: &mut Report) {
    for file in tree.files.iter().filter(|file| file.krate().is_some_and(|krate| krate != "store")) {
        if file.name() == "Cargo.toml" {
            for (index, _) in file.text.lines().enumerate().filter(|(_, line)| line.contains("package =")) {
                report.violation(&file.path, index + 1, "gives a dependency another name; use its own");
            }
            continue;
        }
        if !file.is_rust() {
            continue;
        }
        let code = Source::read(&file.text).code;
        for (at, store) in code.match_indices("podium_store") {
            let rest = &code[at + store.len()..];
            let names = rest.strip_prefix("::").unwrap_or_default();
            let list = names.split(';').next().filter(|list| list.starts_with('{'));
            let is_plain = match list {
                Some(list) => !list.contains('*') && entries(list).all(|entry| entry != "self"),
                None => names.starts_with(|c: char| c.is_alphabetic()),
            };
            if !is_plain {
                let line = code[..at].matches('\n').count() + 1;
                let message =
                    "`podium_store` is used under another name, or as a whole; name what is used of it";
                report.violation(&file.path, line, message);
            }
        }
    }
}

/// The first word of each entry of a list in braces; lists inside it belong to their entries.
fn entries(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let parts = list.split(move |c| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        matches!((c, depth), ('{' | ',', 1) | ('}', 0))
    });
    parts.filter_map(|part| part.split_whitespace().next())
}

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
            let files = [("ARCHITECTURE.md", page), ("crates/app/src/system.rs", list)];
            violations(acting_modules_are_named, &files).len()
        };
        assert_eq!(found("`audit` and `deploys::uploads`"), 0);
        assert_eq!(found("audit and `uploads`"), 2);
    }

    #[test]
    fn refuses_statements_that_run_outside_the_store() {
        for source in [
            "tx.execute(podium_store::grants::ALL[3], &[])?;",
            "let all = &Sql::owned(\"delete from grants\".into());",
            "use podium_db::Sql as Text;",
            "podium_db::statements! { ALL = TEXT; }",
            "conn.query(&all, params, read)",
            "conn\n    .query_opt(&all, params, read)",
            "db.migrate(&[podium_db::Migration::of_file(name, text, text)])",
        ] {
            let path = "crates/app/src/teams.rs";
            assert_eq!(violations(only_the_store_runs_statements, &[(path, source)]).len(), 1, "{source}");
            for home in ["crates/store/src/teams.rs", "crates/http/tests/it/main.rs"] {
                assert!(violations(only_the_store_runs_statements, &[(home, source)]).is_empty(), "{home}");
            }
        }
        let harmless =
            "let query = parts.uri.query().unwrap_or_default(); // Sql\nlet sqlite = MySql::new();";
        assert!(violations(only_the_store_runs_statements, &[("crates/http/src/a.rs", harmless)]).is_empty());
    }

    #[test]
    fn refuses_other_names_for_the_store() {
        for source in [
            "use podium_store as s;",
            "use podium_store::{self, Scope};",
            "use podium_store::{Scope, self as s};",
            "use podium_store::*;",
            "use podium_store::{Scope, *};",
            "pub use podium_store;",
            "extern crate podium_store;",
            "macro_rules! from { ($a:ident) => { podium_store::$a } }",
            "podium_store :: view(file)",
        ] {
            let found = violations(the_store_keeps_its_name, &[("crates/app/src/teams.rs", source)]);
            assert_eq!(found.len(), 1, "{source}");
        }
        let manifest = "[dependencies]\ns = { package = \"podium-store\", path = \"../store\" }\n";
        assert_eq!(violations(the_store_keeps_its_name, &[("crates/app/Cargo.toml", manifest)]).len(), 1);
        let plain = "use podium_store::users::{self, Account};\nuse podium_store::{\n    Scope,\n    users::{self, Invitee},\n};\n\
                     fn a(s: &podium_store::Scope) { let b = 2 * 3; }";
        let found = violations(the_store_keeps_its_name, &[("crates/app/src/teams.rs", plain)]);
        assert_eq!(found, [] as [&str; 0]);
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
