//! The index of words: for the hash of each word the blocks that contain it.
//!
//! Hashes are evenly distributed, so their first bits select a part of the index; a table in front has the end of each
//! part and its checksum. A lookup reads an entry of the table and one short part, whatever the size of the segment. A
//! filter for each block would have to be checked block by block, and would have more false positives for its size.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use xxhash_rust::xxh3::xxh3_64;

use super::MAX_BLOCKS;
use crate::bytes::{Reader, put};
use crate::query::HASH_BITS;

const WORDS_IN_PART: usize = 96;
const ENTRY: usize = 8;
/// No part is longer than this; a longer one is damaged.
const MAX_PART: u64 = 1 << 20;

/// A set of blocks of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Blocks([u64; MAX_BLOCKS / 64]);

impl Blocks {
    pub(crate) const NONE: Self = Self([0; MAX_BLOCKS / 64]);
    pub(crate) const ALL: Self = Self([u64::MAX; MAX_BLOCKS / 64]);

    pub(crate) fn add(&mut self, block: usize) {
        if let Some(bits) = self.0.get_mut(block / 64) {
            *bits |= 1 << (block % 64);
        }
    }

    pub(crate) fn has(&self, block: usize) -> bool {
        self.0.get(block / 64).is_some_and(|bits| bits & 1 << (block % 64) != 0)
    }

    pub(crate) fn and(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(bits, others)| *bits &= others);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|bits| *bits == 0)
    }
}

/// Writes the index of words with their blocks (word above, block below, sorted, each once); says how many bits choose a
/// part.
pub(super) fn write(pairs: &[u64], blocks: usize, into: &mut Vec<u8>) -> u32 {
    let bits = (pairs.len() / WORDS_IN_PART + 1).ilog2().min(HASH_BITS - 1);
    let shift = HASH_BITS - bits;
    let parts = 1usize << bits;
    let table = into.len();
    into.resize(table + parts * ENTRY, 0);
    let data = into.len();
    let mut rest = pairs;
    let mut list = Vec::new();
    for part in 0..parts {
        let start = into.len();
        let mut before = (part as u32) << shift;
        while let Some(word) = rest.first().map(|pair| (pair >> 32) as u32)
            && word >> shift == part as u32
        {
            let length = rest.iter().take_while(|pair| (**pair >> 32) as u32 == word).count();
            let (same, after) = rest.split_at(length);
            rest = after;
            put(into, u64::from(word - before));
            before = word;
            list.clear();
            list.extend(same.iter().map(|pair| *pair as u32));
            write_blocks(&list, blocks, into);
        }
        let sum = xxh3_64(&into[start..]) as u32;
        let end = (into.len() - data) as u32;
        let entry = table + part * ENTRY;
        into[entry..entry + 4].copy_from_slice(&end.to_le_bytes());
        into[entry + 4..entry + ENTRY].copy_from_slice(&sum.to_le_bytes());
    }
    bits
}

/// A few blocks are listed, each with a bit that says whether another one follows; many are a row of bits behind a zero.
fn write_blocks(list: &[u32], blocks: usize, into: &mut Vec<u8>) {
    let row = blocks.div_ceil(8);
    if list.len() > row {
        into.push(0);
        let start = into.len();
        into.resize(start + row, 0);
        list.iter().for_each(|block| into[start + *block as usize / 8] |= 1 << (block % 8));
        return;
    }
    let mut before = 0;
    for (index, block) in list.iter().enumerate() {
        let follows = u64::from(index + 1 < list.len());
        let shown = u64::from(block - before) << 1 | follows;
        put(into, if index == 0 { shown + 1 } else { shown });
        before = *block;
    }
}

fn read_blocks(reader: &mut Reader<'_>, blocks: usize) -> Option<Blocks> {
    let mut found = Blocks::NONE;
    let Some(mut shown) = reader.number()?.checked_sub(1) else {
        let row = reader.take(blocks.div_ceil(8))?;
        (0..blocks).filter(|block| row[block / 8] & 1 << (block % 8) != 0).for_each(|block| found.add(block));
        return Some(found);
    };
    let mut block = 0u64;
    loop {
        block = block.checked_add(shown >> 1).filter(|block| (*block as usize) < blocks)?;
        found.add(block as usize);
        if shown & 1 == 0 {
            return Some(found);
        }
        shown = reader.number()?;
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Index {
    pub(super) at: u64,
    pub(super) end: u64,
    pub(super) bits: u32,
    pub(super) blocks: usize,
}

impl Index {
    /// The blocks that may hold a word; all of them where the index is damaged.
    pub(super) fn look_up(&self, file: &File, word: u32) -> io::Result<Blocks> {
        let part = (word >> (HASH_BITS - self.bits)) as usize;
        let Some(bytes) = self.part(file, part)? else {
            tracing::warn!(part, "the index of a log segment is damaged; its blocks are read instead");
            return Ok(Blocks::ALL);
        };
        let mut found = Blocks::NONE;
        self.entries(part, &bytes, |entry, blocks| {
            if entry == word {
                found = blocks;
            }
            entry < word
        });
        Ok(found)
    }

    /// Every word with its blocks; `false` where the index is damaged.
    pub(super) fn all(&self, file: &File, mut each: impl FnMut(u32, Blocks)) -> io::Result<bool> {
        for part in 0..1usize << self.bits {
            let Some(bytes) = self.part(file, part)? else { return Ok(false) };
            self.entries(part, &bytes, |word, blocks| {
                each(word, blocks);
                true
            });
        }
        Ok(true)
    }

    fn entries(&self, part: usize, bytes: &[u8], mut each: impl FnMut(u32, Blocks) -> bool) {
        let mut reader = Reader::new(bytes);
        let mut word = (part as u64) << (HASH_BITS - self.bits);
        while !reader.is_at_end() {
            let Some(step) = reader.number() else { return };
            word = word.wrapping_add(step);
            let Some(blocks) = read_blocks(&mut reader, self.blocks) else { return };
            if !each(word as u32, blocks) {
                return;
            }
        }
    }

    /// The bytes of a part, if they are whole.
    fn part(&self, file: &File, part: usize) -> io::Result<Option<Vec<u8>>> {
        let mut entries = [0; 2 * ENTRY];
        let wanted = if part == 0 { &mut entries[ENTRY..] } else { &mut entries[..] };
        let entry_at = self.at + (part.saturating_sub(1) * ENTRY) as u64;
        file.read_exact_at(wanted, entry_at)?;
        let mut reader = Reader::new(&entries);
        let (Some(start), Some(_), Some(end), Some(sum)) =
            (reader.u32(), reader.u32(), reader.u32(), reader.u32())
        else {
            return Ok(None);
        };
        let data = self.at + ((1u64 << self.bits) * ENTRY as u64);
        let fits = start <= end && u64::from(end - start) <= MAX_PART && data + u64::from(end) <= self.end;
        if !fits {
            return Ok(None);
        }
        let mut bytes = vec![0; (end - start) as usize];
        file.read_exact_at(&mut bytes, data + u64::from(start))?;
        Ok((xxh3_64(&bytes) as u32 == sum).then_some(bytes))
    }
}
