//! The fixed parts of a segment: its name, with the hour and the numbers of the first line and the last, the headers of
//! blocks, and the footer.

use std::path::Path;
use std::{fmt, fs, io};

use xxhash_rust::xxh3::xxh3_64;

use crate::block::{MAX_PACKED, Summary};
use crate::bytes::Reader;
use crate::hour::Hour;
use crate::missing_is_none;
use crate::tally::Tally;

/// Begins every segment.
pub(super) const MAGIC: [u8; 8] = *b"podlogs2";
/// Begins every header, before the version.
pub(super) const MARK: [u8; 3] = *b"blk";
/// The lengths of headers by version. The first version has no tally; the headers of a segment are all of one version.
pub(super) const FIRST_HEADER: usize = 4 + 4 + 4 + 4 + 8 * 4 + 1 + 8 + 8;
pub(super) const HEADER: usize = FIRST_HEADER + size_of::<Tally>();
pub(super) const FOOTER: usize = 8 + 8 + 4 + 4 + 8 + 8;
pub(super) const SUM: usize = 8;

/// What stands before a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// How long the block is in the file.
    pub(crate) stored: u32,
    /// How long it is unpacked.
    pub(crate) packed: u32,
    pub(crate) summary: Summary,
    /// Empty if it is not known.
    pub(crate) tally: Tally,
    pub(super) sum: u64,
}

impl Header {
    pub(super) fn write(&self, into: &mut Vec<u8>) {
        let start = into.len();
        into.extend_from_slice(&MARK);
        into.push(b'2');
        for value in [self.stored, self.packed, self.summary.lines] {
            into.extend_from_slice(&value.to_le_bytes());
        }
        let Summary { millis, numbers, .. } = self.summary;
        into.extend([millis.0.to_le_bytes(), millis.1.to_le_bytes()].concat());
        into.extend([numbers.0.to_le_bytes(), numbers.1.to_le_bytes()].concat());
        into.push(self.summary.sources);
        into.extend_from_slice(&self.sum.to_le_bytes());
        for count in self.tally.0.iter().flatten() {
            into.extend_from_slice(&count.to_le_bytes());
        }
        seal(into, start);
    }

    /// Reads a header, and says how long it is; `None` if there is none, or it is damaged.
    pub(super) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let length = match bytes.strip_prefix(&MARK)?.first()? {
            b'1' => FIRST_HEADER,
            b'2' => HEADER,
            _ => return None,
        };
        let mut reader = Reader::new(unsealed(bytes.get(..length)?)?);
        reader.take(MARK.len() + 1)?;
        let (stored, packed, lines) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let millis = (reader.i64()?, reader.i64()?);
        let numbers = (reader.u64()?, reader.u64()?);
        let (sources, sum) = (reader.u8()?, reader.u64()?);
        let mut tally = Tally::default();
        if length == HEADER {
            for count in tally.0.iter_mut().flatten() {
                *count = reader.u32()?;
            }
        }
        let fits = packed as usize <= MAX_PACKED && stored as usize <= MAX_PACKED + 1024;
        let summary = Summary { lines, millis, numbers, sources };
        fits.then_some((Self { stored, packed, summary, tally, sum }, length))
    }
}

/// What stands at the end of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Footer {
    /// Where the index of words is, and where the directory.
    pub(super) index: u64,
    pub(super) directory: u64,
    pub(super) blocks: u32,
    /// How many bits of a word's number choose its part of the index.
    pub(super) index_bits: u32,
    pub(super) sum: u64,
}

impl Footer {
    pub(super) fn write(&self, into: &mut Vec<u8>) {
        let start = into.len();
        into.extend([self.index.to_le_bytes(), self.directory.to_le_bytes()].concat());
        into.extend([self.blocks.to_le_bytes(), self.index_bits.to_le_bytes()].concat());
        into.extend_from_slice(&self.sum.to_le_bytes());
        seal(into, start);
    }

    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(unsealed(bytes)?);
        Some(Self {
            index: reader.u64()?,
            directory: reader.u64()?,
            blocks: reader.u32()?,
            index_bits: reader.u32()?,
            sum: reader.u64()?,
        })
    }
}

pub(super) fn seal(bytes: &mut Vec<u8>, start: usize) {
    let sum = xxh3_64(&bytes[start..]);
    bytes.extend_from_slice(&sum.to_le_bytes());
}

fn unsealed(bytes: &[u8]) -> Option<&[u8]> {
    let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(SUM)?)?;
    (xxh3_64(body).to_le_bytes() == sum).then_some(body)
}

const ENDING: &str = ".segment";
/// What a segment is called while it is written.
pub(super) const UNFINISHED: &str = ".unfinished";

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
