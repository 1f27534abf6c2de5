//! Segments: files that are written once, with some lines of one deployment and hour.
//!
//! A segment is a row of compressed blocks, each behind a header that describes it, then an index of words (which word
//! occurs in which blocks), the headers once more as a directory, and a footer that says where these are. Everything
//! carries a checksum. A segment appears under its name only when it is whole; where disk or people damage it later,
//! blocks are found again by their headers, and only what is damaged is left out.

mod index;
mod layout;
mod name;
mod read;
mod write;

pub(crate) use index::Blocks;
pub(crate) use name::Name;
pub(crate) use read::{Segment, Unpacker};
pub(crate) use write::{Builder, Encoder};

/// A segment holds no more blocks than this.
pub(crate) const MAX_BLOCKS: usize = 256;

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::damage;
