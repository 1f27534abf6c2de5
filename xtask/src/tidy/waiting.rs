//! Async code does not block: futures do no file work themselves.
//!
//! This looks at words and brackets, so it sees the body of a future, but not the functions that it calls. Those that
//! block check it at run time: `assert_may_block` in `podium-dataplane`.

use super::Report;
use super::source::{closing, line_of};
use super::tree::Tree;

/// The crates whose futures run on the same threads as requests and leases.
const CRATES: &[&str] = &["app", "dataplane", "http", "reconcile"];
/// Calls that block on a disk, a clock or a process.
const WAITS: &[&str] = &["fs::", "File::", "OpenOptions::", "thread::sleep("];
/// Exceptions that do not block.
const FINE: &[&str] = &["tokio::fs::"];
/// Functions that run work on the blocking pool.
const ELSEWHERE: &[&str] = &["spawn_blocking(", "blocking(", "blocking_exclusive("];

/// Reports futures that work with files.
pub(super) fn futures_do_not_wait_for_disks(tree: &Tree, report: &mut Report) {
    let is_meant = |path: &str| CRATES.iter().any(|name| path.starts_with(&format!("crates/{name}/src/")));
    for (path, source) in tree.sources().filter(|(path, _)| is_meant(path)) {
        let message =
            "a future works with files here, and blocks everything else on its thread: use `blocking`";
        report.violations(path, waits(&source.code), message);
    }
}

/// The lines on which a future blocks.
fn waits(code: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut seen = 0;
    for (at, _) in code.match_indices("async ") {
        let Some(open) = code[at..].find(['{', ';']).map(|open| at + open) else { continue };
        if at < seen || !code[open..].starts_with('{') {
            continue;
        }
        let end = end_of(code, open);
        seen = end;
        let body = without_elsewhere(&code[open..end]);
        for (number, line) in body.lines().enumerate() {
            let line = FINE.iter().fold(line.to_owned(), |line, fine| line.replace(fine, ""));
            if WAITS.iter().any(|waits| line.contains(waits)) {
                lines.push(line_of(code, open) + number);
            }
        }
    }
    lines
}

/// The code without what runs on the blocking pool; line numbers stay the same.
fn without_elsewhere(code: &str) -> String {
    let mut rest = code;
    let mut left = String::new();
    while let Some((at, word)) =
        ELSEWHERE.iter().filter_map(|word| rest.find(word).map(|at| (at, word))).min_by_key(|(at, _)| *at)
    {
        let open = at + word.len() - 1;
        let end = end_of(rest, open);
        left.push_str(&rest[..at]);
        left.push_str(&"\n".repeat(rest[at..end].matches('\n').count()));
        rest = &rest[end..];
    }
    left + rest
}

/// The end of the bracket that opens here.
fn end_of(code: &str, open: usize) -> usize {
    closing(&code[open..]).map_or(code.len(), |at| open + at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_work_in_a_future_is_found_and_work_on_the_blocking_pool_is_not() {
        let code = "fn a() { fs::read(x); }\n\
                    async fn b() {\n  fs::read(x);\n  blocking(move || {\n    fs::read(y)\n  }).await;\n  File::open(z);\n}\n\
                    trait T { async fn c(&self); }\n\
                    fn d() { spawn(async move { tokio::fs::read(x).await; }) }\n\
                    fn e() { Box::pin(async move { std::fs::write(x, y) }) }\n\
                    fn f() { File::open(x) }\n";
        assert_eq!(waits(code), [3, 7, 11]);
    }
}
