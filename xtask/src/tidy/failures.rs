//! Errors have types that say who may read them, never bare text.

use super::Report;
use super::source::{line_of, word_at};
use super::tree::Tree;

/// Reports bare text errors: nobody knows who may read them.
pub(super) fn errors_have_types(tree: &Tree, report: &mut Report) {
    for (path, source) in tree.sources() {
        let message = "an error is a bare `String`: give it a type (an enum with thiserror, or \
                       `podium_domain::Reason` where users are told one half of it)";
        report.violations(path, bare_errors(&source.code), message);
    }
}

/// Reports texts for users that are not made of vetted parts; only the store may read them back.
pub(super) fn texts_for_users_are_made_of_vetted_parts(tree: &Tree, report: &mut Report) {
    for (path, source) in tree.sources() {
        if path.starts_with("crates/store/src/") || path == "crates/domain/src/reason.rs" {
            continue;
        }
        let message =
            "`UserText::from_stored` is for the store alone: make the text of literals and vetted values";
        report.violations(path, source.lines_with("from_stored"), message);
    }
}

/// Leaked text is `'static`, so it would be accepted as a literal in texts for users and in statements.
pub(super) fn nothing_is_leaked(tree: &Tree, report: &mut Report) {
    for (path, source) in tree.sources().filter(|(path, _)| *path != "crates/store/src/lib.rs") {
        let message =
            "`leak` makes a literal of anything: keep the text, or make it of literals and vetted values";
        report.violations(path, source.lines_with("leak"), message);
    }
}

/// The lines on which a `Result` or a `FromStr` has text for its error.
fn bare_errors(code: &str) -> Vec<usize> {
    let results = code.match_indices("Result<").filter(|(at, word)| {
        arguments(&code[at + word.len()..]).get(1).is_some_and(|error| *error == "String")
    });
    let results = results.map(|(at, _)| line_of(code, at));
    let parsers = code.lines().enumerate().filter(|(_, line)| word_at(line, "type Err = String"));
    results.chain(parsers.map(|(index, _)| index + 1)).collect()
}

/// The arguments of a type whose `<` comes just before this.
fn arguments(text: &str) -> Vec<&str> {
    let (mut depth, mut from, mut found) = (0_i32, 0, Vec::new());
    for (at, c) in text.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' if text[..at].ends_with('-') => {}
            '>' if depth == 0 => {
                found.push(text[from..at].trim());
                return found;
            }
            '>' | ')' | ']' => depth -= 1,
            ',' if depth == 0 => {
                found.push(text[from..at].trim());
                from = at + 1;
            }
            '{' => return Vec::new(),
            ';' if depth <= 0 => return Vec::new(),
            _ => {}
        }
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violations;

    fn lines(text: &str) -> Vec<String> {
        violations(errors_have_types, &[("crates/app/src/things.rs", text)])
    }

    #[test]
    fn bare_text_is_not_an_error_type() {
        for bad in [
            "fn f() -> Result<(), String> {}",
            "fn f() -> std::result::Result<Vec<(u8, [u8; 2])>, String> {}",
            "type Heard = BTreeMap<u8, Result<\n    fn(u8) -> u8,\n    String,\n>>;",
            "type Err = String;",
        ] {
            assert_eq!(lines(bad).len(), 1, "{bad}");
        }
        for good in [
            "fn f() -> Result<String, Error> {}",
            "fn f() -> Result<String> {}",
            "fn f() -> Result<Option<String>, Failure> {}",
            "// Result<(), String>\nconst TEXT: &str = \"Result<(), String>\";",
            "if Result < 3 {}",
            "struct A;\n#[cfg(test)]\nmod tests {\n    fn f() -> Result<(), String> {}\n}",
        ] {
            assert_eq!(lines(good), Vec::<String>::new(), "{good}");
        }
        let test = [("crates/app/tests/it/a.rs", "fn f() -> Result<(), String> {}")];
        assert!(violations(errors_have_types, &test).is_empty());
    }

    #[test]
    fn a_leaked_text_is_no_literal() {
        let found = |path, text| violations(nothing_is_leaked, &[(path, text)]).len();
        for text in ["UserText::new(error.to_string().leak())", "Box::leak(text)", "String::leak(said)"] {
            assert_eq!(found("crates/app/src/a.rs", text), 1, "{text}");
        }
        assert_eq!(found("crates/app/src/a.rs", "fn leaks() {} // leak"), 0);
        assert_eq!(found("crates/app/tests/it/a.rs", "text.leak()"), 0);
    }

    #[test]
    fn only_the_store_reads_stored_texts() {
        let text = "fn f() { UserText::from_stored(x); }";
        let found = |path| violations(texts_for_users_are_made_of_vetted_parts, &[(path, text)]).len();
        assert_eq!(found("crates/store/src/deployments.rs"), 0);
        assert_eq!(found("crates/app/src/deployments.rs"), 1);
    }
}
