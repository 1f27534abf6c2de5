//! Function signatures with typed ids.

use super::Report;
use super::source::{Source, closing, is_word, line_of};
use super::tree::Tree;

/// Where the bare id is defined.
const HOME: &str = "crates/api/src/id.rs";

/// Reports functions that take two or more bare ids.
pub(super) fn ids_have_kinds(tree: &Tree, report: &mut Report) {
    for file in tree.rust().filter(|file| file.path != HOME) {
        let code = Source::read(&file.text).code;
        for (at, name, parameters) in functions(&code) {
            if words(parameters).filter(|word| *word == "Id").count() >= 2 {
                let message = format!(
                    "`{name}` takes several bare `Id`s, so a swap compiles; give each its kind, as in `TeamId`"
                );
                report.violation(&file.path, line_of(&code, at), message);
            }
        }
    }
}

/// The functions of a source: where each begins, its name, and what is between its parentheses.
pub(super) fn functions(code: &str) -> impl Iterator<Item = (usize, &str, &str)> {
    code.match_indices("fn ").filter_map(move |(at, keyword)| {
        if code[..at].ends_with(is_word) {
            return None;
        }
        let rest = &code[at + keyword.len()..];
        let name = &rest[..rest.find(|c| !is_word(c))?];
        let rest = &rest[name.len()..];
        let rest = if rest.starts_with('<') { &rest[closing(rest)? + 1..] } else { rest };
        let rest = rest.trim_start();
        (!name.is_empty() && rest.starts_with('(')).then_some(())?;
        Some((at, name, &rest[..closing(rest)?]))
    })
}

pub(super) fn words(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c| !is_word(c))
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    fn found(source: &str) -> Vec<String> {
        violations(ids_have_kinds, &[("crates/a/src/a.rs", source)])
    }

    #[test]
    fn refuses_a_second_bare_id() {
        for source in [
            "fn add(team: Id, user: Id) {}",
            "pub fn add<T: Into<Id>, F: Fn() -> bool>(\n    a: &[Id],\n    b: Option<podium_api::Id>,\n) {}",
            "fn moved((id, from): (Id, Id)) {}",
        ] {
            assert_eq!(found(source).len(), 1, "{source}");
        }
        let line = found("\n\nfn add(team: Id, user: Id) {}");
        assert!(line[0].starts_with("crates/a/src/a.rs:3: `add` takes several bare `Id`s"), "{line:?}");
    }

    #[test]
    fn takes_ids_of_kinds_and_one_of_any() {
        for source in [
            "fn add(team: TeamId, user: UserId, any: Id) -> Id {}",
            "// fn add(team: Id, user: Id) {}",
            "fn one(id: Id) {}\nfn other(id: Id) {}",
            "type Made = fn(Id, Id);",
        ] {
            assert_eq!(found(source), [] as [&str; 0], "{source}");
        }
        assert!(violations(ids_have_kinds, &[(HOME, "fn add(team: Id, user: Id) {}")]).is_empty());
    }
}
