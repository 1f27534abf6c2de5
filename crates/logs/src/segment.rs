//! Segments: immutable files with lines of one deployment and hour.
//!
//! A segment is a sequence of compressed blocks, each after a header that describes it, then an index of words (which
//! word occurs in which blocks), the headers again as a directory, and a footer with their offsets. Everything has a
//! checksum. A segment appears under its name only when it is complete; if it is damaged later, blocks are found by
//! their headers, and only what is damaged is skipped.

mod index;
mod layout;
mod read;
mod write;

pub(crate) use index::Blocks;
pub(crate) use layout::Name;
pub(crate) use read::{Segment, Unpacker};
pub(crate) use write::{Builder, Encoder};

/// A segment holds no more blocks than this.
pub(crate) const MAX_BLOCKS: usize = 256;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::damage;
