//! The fixed parts of a segment: headers of blocks, and the footer.

use xxhash_rust::xxh3::xxh3_64;

use crate::block::{MAX_PACKED, Summary};
use crate::bytes::Reader;
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
    /// The checksum of what is stored.
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
    /// The checksum of the directory.
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
