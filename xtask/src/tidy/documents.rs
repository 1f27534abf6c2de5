//! Documents: links between files of the repository are valid.

use super::Report;
use super::tree::Tree;

/// Reports links to files that do not exist.
pub(super) fn links_resolve(tree: &Tree, report: &mut Report) {
    for file in tree.files.iter().filter(|file| file.path.ends_with(".md")) {
        let directory = file.path.rsplit_once('/').map_or("", |(directory, _)| directory);
        let mut in_code = false;
        for (index, line) in file.text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                in_code = !in_code;
            }
            for link in links(line).filter(|_| !in_code) {
                let path = link.split('#').next().unwrap_or_default();
                let elsewhere = path.is_empty() || path.contains(':');
                if !elsewhere && !resolve(directory, path).is_some_and(|path| tree.has(&path)) {
                    report.violation(&file.path, index + 1, format!("the link to `{link}` is broken"));
                }
            }
        }
    }
}

/// Targets of the links in a line: `[text](target)`.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

/// A path from the root; nothing if it leaves the repository.
fn resolve(directory: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> =
        if link.starts_with('/') { Vec::new() } else { directory.split('/').collect() };
    for part in link.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop().filter(|part| !part.is_empty())?),
            part => parts.push(part),
        }
    }
    parts.retain(|part| !part.is_empty());
    Some(parts.join("/"))
}

/// Whether a source has an example in a documentation comment that the compiler would run.
pub(super) fn has_examples(source: &str) -> bool {
    let fence = |line: &str| {
        let comment = ["///", "//!"].iter().find_map(|mark| line.trim_start().strip_prefix(mark))?;
        comment.trim().strip_prefix("```").map(str::to_owned)
    };
    let mut fences = source.lines().filter_map(fence);
    while let Some(kind) = fences.next() {
        let kind = kind.split(',').next().unwrap_or_default();
        if ["", "rust", "no_run", "should_panic", "compile_fail"].contains(&kind) {
            return true;
        }
        fences.next();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::violations;
    use super::*;

    #[test]
    fn refuses_broken_links() {
        let text = "[a](b.md) [c](../README.md#top)\n[d](https://x.test) [e](#here) [f](decisions/)\n```\n[g](h)\n```\n";
        let files = [("docs/a.md", text), ("README.md", "[up](../x)"), ("docs/decisions/1.md", "")];
        let found = violations(links_resolve, &files);
        assert_eq!(
            found,
            ["docs/a.md:1: the link to `b.md` is broken", "README.md:1: the link to `../x` is broken"]
        );
    }

    #[test]
    fn finds_examples_that_run() {
        assert!(has_examples("/// ```\n/// f();\n/// ```\n") && has_examples("//! ```rust\n//! ```\n"));
        assert!(has_examples("/// ```compile_fail,E0080\n/// f();\n/// ```\n"));
        assert!(!has_examples("//! ```text\n//! map\n//! ```\nfn f() {}\n"));
    }
}
