//! The tree that an archive would unpack to: nothing is below a file or a link, and no path has two types. Paths of
//! entries and targets of links are relative, and inside the tree whatever else it contains.
//!
//! This makes it sufficient to check links one by one: every link is in a real directory, at the depth of its path.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::error::{Flaw, Refused, printable};

/// All paths of an archive are kept until its end; together they may not be longer than this.
pub(super) const ALL_NAMES: usize = 32 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    File,
    Directory,
    Link,
}

/// What the entries so far would unpack to.
#[derive(Default)]
pub(super) struct Tree {
    nodes: BTreeMap<String, Node>,
    names: usize,
}

impl Tree {
    /// Adds an entry at a clean path.
    pub(super) fn add(&mut self, path: &str, node: Node) -> Result<Result<(), Flaw>, Refused> {
        if let Err(flaw) = self.fits(path, node) {
            return Ok(Err(flaw));
        }
        if self.nodes.insert(path.to_owned(), node).is_none() {
            self.names += path.len();
        }
        if self.names > ALL_NAMES { Err(Refused::TooManyNames(ALL_NAMES)) } else { Ok(Ok(())) }
    }

    fn fits(&self, path: &str, node: Node) -> Result<(), Flaw> {
        let collides = |other: &str| Err(Flaw::Collides(printable(other.as_bytes())));
        for (end, _) in path.match_indices('/') {
            let above = &path[..end];
            if self.nodes.get(above).is_some_and(|node| *node != Node::Directory) {
                return collides(above);
            }
        }
        if path.is_empty() && node != Node::Directory {
            return Err(Flaw::EmptyPath);
        }
        match self.nodes.get(path) {
            // Some programs append by repeating a file: the last one counts. A repeated link would be followed.
            Some(before) if *before != node || node == Node::Link => collides(path),
            Some(_) => Ok(()),
            None if node == Node::Directory => Ok(()),
            None => {
                let below = format!("{path}/");
                let next =
                    self.nodes.range::<str, _>((Bound::Included(below.as_str()), Bound::Unbounded)).next();
                match next {
                    Some((other, _)) if other.starts_with(&below) => collides(other),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Whether there is a file at the target of a hard link.
    pub(super) fn has_file(&self, path: &[u8], longest: usize) -> bool {
        clean(path, longest).is_ok_and(|path| self.nodes.get(&path) == Some(&Node::File))
    }
}

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
