//! The tree that an archive would unpack to: nothing is below a file or a link, and no path has two types.
//!
//! This makes it sufficient to check links one by one: every link is in a real directory, at the depth of its path.

use std::collections::BTreeMap;
use std::ops::Bound;

use super::paths;
use crate::error::{Flaw, Refused};

/// All paths of an archive are kept until its end; together they may not be longer than this.
pub(super) const ALL_NAMES: usize = 32 << 20;

/// What is at a path.
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
        let collides = |other: &str| Err(Flaw::Collides(crate::error::printable(other.as_bytes())));
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
        paths::clean(path, longest).is_ok_and(|path| self.nodes.get(&path) == Some(&Node::File))
    }
}
