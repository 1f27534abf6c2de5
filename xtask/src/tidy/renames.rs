//! Renames survive a power cut: the directory is synced too.

use super::Report;
use super::signatures::functions;
use super::source::{Source, line_of};
use super::tree::Tree;

/// Exempt: log segments, which only have to survive the end of the process, and the simulated data plane.
const EXEMPT: &[&str] = &["crates/logs/src/segment/", "crates/dataplane/src/simulated/"];

/// Reports renames in functions that do not sync a directory afterwards.
pub(super) fn renames_are_synced(tree: &Tree, report: &mut Report) {
    let is_exempt = |path: &str| EXEMPT.iter().any(|exempt| path.starts_with(exempt));
    for (path, Source { code }) in tree.sources().filter(|(path, _)| !is_exempt(path)) {
        let starts: Vec<usize> = functions(&code).map(|(at, ..)| at).collect();
        for (at, _) in code.match_indices("fs::rename(") {
            let end = starts.iter().copied().find(|start| *start > at).unwrap_or(code.len());
            if !code[at..end].contains("sync") {
                let message = "a power cut may undo this rename: sync the directory after it";
                report.violation(path, line_of(&code, at), message);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    fn found(path: &str, source: &str) -> usize {
        violations(renames_are_synced, &[(path, source)]).len()
    }

    #[test]
    fn a_rename_takes_its_directory_along() {
        let lost = "fn a() { file.sync_all()?; fs::rename(x, y) }\nfn b() { sync() }";
        let kept = "fn a() { fs::rename(x, y)?; File::open(directory)?.sync_all() }\nfn b() { std::fs::rename(x, y)?; sync(parent) }";
        assert_eq!((found("crates/a/src/a.rs", lost), found("crates/a/src/a.rs", kept)), (1, 0));
        let in_test = "fn a() {}\n#[cfg(test)]\nmod tests {\n    fn b() { fs::rename(x, y) }\n}";
        assert_eq!(found("crates/a/src/a.rs", in_test), 0);
        for elsewhere in ["crates/a/tests/it/a.rs", "crates/a/src/a/tests.rs", "crates/logs/src/segment/a.rs"]
        {
            assert_eq!(found(elsewhere, lost), 0, "{elsewhere}");
        }
    }
}
