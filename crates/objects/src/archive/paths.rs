//! Paths of entries and targets of links: relative, and inside the tree whatever else it contains.

use crate::error::{Flaw, printable};

/// The path without `.` and empty parts; the root of the archive is the empty path.
pub(super) fn clean(path: &[u8], longest: usize) -> Result<String, Flaw> {
    if path.is_empty() {
        return Err(Flaw::EmptyPath);
    }
    if path.len() > longest {
        return Err(Flaw::LongPath(longest));
    }
    let text = std::str::from_utf8(path).map_err(|_| Flaw::NotText)?;
    if text.chars().any(char::is_control) {
        return Err(Flaw::NotText);
    }
    if text.starts_with('/') {
        return Err(Flaw::Absolute);
    }
    let parts = text.split('/').filter(|part| !matches!(*part, "" | "."));
    let parts: Vec<&str> = parts.collect();
    if parts.contains(&"..") {
        return Err(Flaw::Parent);
    }
    Ok(parts.join("/"))
}

/// Refuses a symbolic link at a clean path whose target could be outside the tree.
///
/// `..` may only be at the beginning of the target, where its parent is known: after a name it would refer to the
/// parent of whatever that name links to.
pub(super) fn stays_inside(path: &str, target: &[u8], longest: usize) -> Result<(), Flaw> {
    let leaves = || Flaw::LeavesTree(printable(target));
    if target.len() > longest {
        return Err(Flaw::LongPath(longest));
    }
    let text = std::str::from_utf8(target).map_err(|_| Flaw::NotText)?;
    if text.chars().any(char::is_control) {
        return Err(Flaw::NotText);
    }
    if text.is_empty() || text.starts_with('/') {
        return Err(leaves());
    }
    let mut above = path.matches('/').count();
    let mut is_below = false;
    for part in text.split('/').filter(|part| !matches!(*part, "" | ".")) {
        if part != ".." {
            is_below = true;
        } else if is_below || above == 0 {
            return Err(leaves());
        } else {
            above -= 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_and_clean() {
        let table: [(&[u8], Result<&str, Flaw>); 13] = [
            (b"a/b.py", Ok("a/b.py")),
            (b"./a//b/./c/", Ok("a/b/c")),
            (b"./", Ok("")),
            (b"...", Ok("...")),
            (b"a..b", Ok("a..b")),
            ("ä".as_bytes(), Ok("ä")),
            (b"", Err(Flaw::EmptyPath)),
            (b"/a", Err(Flaw::Absolute)),
            (b"../a", Err(Flaw::Parent)),
            (b"a/..", Err(Flaw::Parent)),
            (b"a/../b", Err(Flaw::Parent)),
            (b"a\nb", Err(Flaw::NotText)),
            (b"a\xff", Err(Flaw::NotText)),
        ];
        for (path, expected) in table {
            assert_eq!(clean(path, 100), expected.map(str::to_owned), "{path:?}");
        }
        assert_eq!(clean(&[b'a'; 101], 100), Err(Flaw::LongPath(100)));
    }

    #[test]
    fn links_stay_in_the_tree() {
        let table = [
            ("a", "b", true),
            ("a", ".", true),
            ("a/b/c", "../../d", true),
            ("a/b/c", "../../../d", false),
            ("a", "../b", false),
            ("a", "/etc/passwd", false),
            ("a", "", false),
            ("a/b", "./../c", true),
            ("a/b/c", "d/../..", false),
            ("a/b/c", "../d/../e", false),
        ];
        for (path, target, expected) in table {
            assert_eq!(stays_inside(path, target.as_bytes(), 100).is_ok(), expected, "{path} -> {target}");
        }
    }
}
