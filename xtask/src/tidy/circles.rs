//! No files of `app` import each other in a circle: each can be read after those that it imports.
//!
//! A file that hands on what is in the folder of its name (`pub use`) does not import it: who takes it from there does. What
//! stands in `lib.rs` belongs to all.

use std::collections::{BTreeMap, BTreeSet};

use super::Report;
use super::source::{closing, is_word};
use super::tree::Tree;

const ROOT: &str = "crates/app/src/";

/// Each module, and those that it imports.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Reports files that import each other.
pub(super) fn no_file_imports_itself(tree: &Tree, report: &mut Report) {
    let sources: BTreeMap<String, String> = tree
        .sources()
        .filter_map(|(path, source)| Some((module(path)?, source.code)))
        .filter(|(module, _)| module != "lib")
        .collect();
    let mut handed_on = BTreeMap::new();
    for (path, source) in tree.sources() {
        let Some(module) = module(path) else { continue };
        let module = if module == "lib" { String::new() } else { module };
        for (path, _) in paths(&module, &source.code).into_iter().filter(|(_, is_handed_on)| *is_handed_on) {
            let name = path.rsplit("::").next().unwrap_or_default();
            handed_on.insert(below(&module, name), path);
        }
    }
    let imported = |(module, code): (&String, &String)| {
        let own = below(module, "");
        let takes = |(path, is_handed_on): (String, bool)| {
            let is_own = is_handed_on && path.starts_with(&own);
            if is_own { None } else { owner(&sources, handed_on.get(&path).unwrap_or(&path)) }
        };
        let found = paths(module, code).into_iter().filter_map(takes);
        (module.clone(), found.filter(|other| other != module).collect())
    };
    for (module, imports) in in_circles(sources.iter().map(imported).collect()) {
        let path = format!("{ROOT}{}.rs", module.replace("::", "/"));
        let imports = imports.into_iter().collect::<Vec<_>>().join("` and `");
        let message = format!("in a circle with `{imports}`: move what both sides need to a file below them");
        report.violation(&path, 0, message);
    }
}

/// The module that a file is.
fn module(path: &str) -> Option<String> {
    Some(path.strip_prefix(ROOT)?.strip_suffix(".rs")?.replace('/', "::"))
}

/// The path of what a module has under a name.
fn below(module: &str, name: &str) -> String {
    if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") }
}

/// The file that holds what a path names.
fn owner(sources: &BTreeMap<String, String>, mut path: &str) -> Option<String> {
    while !sources.contains_key(path) {
        path = &path[..path.rfind("::")?];
    }
    Some(path.to_owned())
}

/// The paths into this crate that a module names, from its root, and whether it hands on what they name.
fn paths(module: &str, code: &str) -> Vec<(String, bool)> {
    let children = code.split("mod ").skip(1).filter_map(|rest| rest.split_once(';')).map(|(name, _)| name);
    let children: Vec<&str> = children.filter(|name| name.chars().all(is_word)).collect();
    let mut found = Vec::new();
    for (at, _) in code.match_indices("::") {
        let first = &code[code[..at].rfind(|c| !is_word(c)).map_or(0, |before| before + 1)..at];
        let before = code[..at - first.len()].trim_end();
        let begins = !before.ends_with("::");
        let is_child = children.contains(&first);
        if !begins || !(is_child || ["crate", "super", "self"].contains(&first)) {
            continue;
        }
        let statement = before.rsplit([';', '}']).next().unwrap_or_default().trim_start();
        let handed_on = statement.strip_prefix("pub").map(|rest| match rest.split_once(')') {
            Some((_, after)) if rest.starts_with('(') => after.trim_start(),
            _ => rest.trim_start(),
        });
        let is_handed_on = handed_on.is_some_and(|rest| rest.split(|c| !is_word(c)).next() == Some("use"));
        let base = match first {
            "crate" => String::new(),
            "super" => module.rsplit_once("::").map_or(String::new(), |(above, _)| above.to_owned()),
            "self" => module.to_owned(),
            child => below(module, child),
        };
        found.extend(named(&base, &code[at + 2..]).into_iter().map(|path| (path, is_handed_on)));
    }
    found
}

/// What the rest of a path names below a module, where it may go on in several directions.
fn named(base: &str, rest: &str) -> Vec<String> {
    if let Some(end) = closing(rest).filter(|_| rest.starts_with('{')) {
        let (mut parts, mut begin, mut depth) = (Vec::new(), 1, 0);
        for (at, c) in rest[..=end].char_indices() {
            depth += i32::from(c == '{') - i32::from(c == '}');
            if (c == ',' && depth == 1) || at == end {
                parts.extend(named(base, rest[begin..at].trim()));
                begin = at + 1;
            }
        }
        return parts;
    }
    let (word, after) = rest.split_at(rest.find(|c| !is_word(c)).unwrap_or(rest.len()));
    match (word, after.strip_prefix("::")) {
        ("super", Some(rest)) => named(base.rsplit_once("::").map_or("", |(above, _)| above), rest),
        ("self" | "", _) => vec![base.to_owned()],
        (_, Some(rest)) => named(&below(base, word), rest),
        (_, None) => vec![below(base, word)],
    }
}

/// What is left without the modules that import nothing that is left, and those that nothing left imports.
fn in_circles(mut left: Imports) -> Imports {
    loop {
        let before = left.len();
        let all: BTreeSet<String> = left.keys().cloned().collect();
        left.values_mut().for_each(|imports| imports.retain(|other| all.contains(other)));
        left.retain(|_, imports| !imports.is_empty());
        let imported: BTreeSet<String> = left.values().flatten().cloned().collect();
        left.retain(|module, _| imported.contains(module));
        if left.len() == before {
            return left;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    fn found(files: &[(&str, &str)]) -> usize {
        let files: Vec<(String, &str)> =
            files.iter().map(|(name, text)| (format!("{ROOT}{name}.rs"), *text)).collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
        violations(no_file_imports_itself, &files).len()
    }

    #[test]
    fn refuses_circles_however_they_are_written() {
        assert_eq!(
            found(&[
                ("a", "use crate::b::B;"),
                ("b", "use crate::{c, d::{D, E}};"),
                ("c", "use super::a::A;")
            ]),
            3
        );
        assert_eq!(found(&[("a", "mod b;\nuse b::B;"), ("a/b", "use super::A;")]), 2);
        assert_eq!(found(&[("a", "fn f() { crate::b::g() }"), ("b", "fn g() -> crate::a::A {}")]), 2);
        assert_eq!(found(&[("a", "mod b;\npub fn reuse() -> u8 { b::f() }"), ("a/b", "use super::A;")]), 2);
    }

    #[test]
    fn refuses_circles_through_what_is_handed_on() {
        let parent = ("a", "mod b;\npub use self::b::B;");
        assert_eq!(found(&[parent, ("a/b", "use crate::c::C;"), ("c", "use crate::a::B;")]), 2);
        assert_eq!(
            found(&[("lib", "mod a;\npub use a::A;"), ("a", "use crate::b::B;"), ("b", "use crate::A;")]),
            2
        );
    }

    #[test]
    fn takes_what_is_below_and_what_is_handed_on() {
        let parent = "mod b;\npub use self::b::{B, C};\npub(crate) use b::D;";
        assert_eq!(found(&[("a", parent), ("a/b", "use super::A;\nuse crate::c::C;"), ("c", "")]), 0);
        assert_eq!(
            found(&[
                ("lib", "pub use a::A;"),
                ("a", "use crate::App;\n// crate::b\n"),
                ("b", "use crate::a::A;")
            ]),
            0
        );
    }
}
