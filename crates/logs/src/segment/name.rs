//! Names of segments: the hour, and the numbers of the first line and the last.

use std::path::Path;
use std::{fmt, fs, io};

use crate::hour::Hour;
use crate::missing_is_none;

const ENDING: &str = ".segment";
/// What a segment is called while it is written.
pub(super) const UNFINISHED: &str = ".unfinished";

/// The name of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name {
    pub(crate) hour: Hour,
    pub(crate) first: u64,
    pub(crate) last: u64,
}

impl Name {
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let mut parts = text.strip_suffix(ENDING)?.split('.');
        let hour = Hour::parse(parts.next()?)?;
        let mut number = || u64::from_str_radix(parts.next().filter(|part| part.len() == 16)?, 16).ok();
        let name = Self { hour, first: number()?, last: number()? };
        (parts.next().is_none() && name.first <= name.last).then_some(name)
    }

    /// Whether everything in another segment is in this one too.
    fn covers(&self, other: &Self) -> bool {
        self.hour == other.hour && self.first <= other.first && other.last <= self.last
    }

    /// The segments in the directory of a deployment, in order. One that has been merged into another is left out.
    pub(crate) fn list(directory: &Path) -> io::Result<Vec<Self>> {
        let mut names = Self::list_all(directory)?;
        // A segment that covers others stands before them, or is the same.
        names.sort_unstable_by_key(|name| (name.hour, name.first, std::cmp::Reverse(name.last)));
        let mut kept: Vec<Self> = Vec::with_capacity(names.len());
        for name in names {
            if !kept.last().is_some_and(|before| before.covers(&name)) {
                kept.push(name);
            }
        }
        Ok(kept)
    }

    /// Drops what a process that ended early was writing in the directory of a deployment.
    pub(crate) fn drop_unfinished(directory: &Path) -> io::Result<()> {
        let Some(entries) = missing_is_none(fs::read_dir(directory))? else { return Ok(()) };
        for entry in entries {
            let entry = entry?;
            if entry.file_name().to_str().is_some_and(|name| name.ends_with(UNFINISHED)) {
                missing_is_none(fs::remove_file(entry.path()))?;
            }
        }
        Ok(())
    }

    /// Every segment in the directory of a deployment, in no order.
    pub(crate) fn list_all(directory: &Path) -> io::Result<Vec<Self>> {
        let Some(entries) = missing_is_none(fs::read_dir(directory))? else { return Ok(Vec::new()) };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry?.file_name().to_str().and_then(Self::parse));
        }
        Ok(names)
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:016x}.{:016x}{ENDING}", self.hour, self.first, self.last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_segment_is_found_by_its_name_and_a_merged_one_is_not() {
        let directory = tempfile::TempDir::new().unwrap();
        let hour = Hour::parse("2027-01-15T08").unwrap();
        let name = |first, last| Name { hour, first, last };
        for (first, last) in [(1, 4), (5, 9), (5, 6), (7, 9), (10, 10)] {
            fs::write(directory.path().join(name(first, last).to_string()), "").unwrap();
        }
        for other in ["x", "2027-01-15T08.segment", "2027-01-15T08.1.2.segment", "wal"] {
            fs::write(directory.path().join(other), "").unwrap();
        }
        assert_eq!(Name::list(directory.path()).unwrap(), [name(1, 4), name(5, 9), name(10, 10)]);
        assert_eq!(Name::list_all(directory.path()).unwrap().len(), 5);
        assert_eq!(Name::list(&directory.path().join("none")).unwrap(), []);
    }
}
