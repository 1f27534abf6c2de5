//! Writes a segment, block by block.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Compressor;

use super::index::{self, Blocks};
use super::layout::{Footer, HEADER, Header, MAGIC, UNFINISHED};
use super::{MAX_BLOCKS, Name, Segment};
use crate::block::Block;
use crate::hour::Hour;
use crate::query::Collector;
use crate::tally::Tally;

const LEVEL: i32 = 3;
/// How many bytes are buffered before they are written.
const CHUNK: usize = 1 << 20;
/// A segment of this size is synced to disk.
const LARGE: u64 = 512 * 1024;
/// The capacity of the word buffer that is kept for the next segment.
const KEPT_PAIRS: usize = 1 << 18;

/// Reusable buffers and compressor for writing segments, because there are many small ones.
pub(crate) struct Encoder {
    collector: Collector,
    compressor: Compressor<'static>,
    packed: Vec<u8>,
    /// Bytes that have not been written to the file yet.
    bytes: Vec<u8>,
    directory: Vec<Header>,
    /// Words in the upper half, blocks in the lower half.
    pairs: Vec<u64>,
}

impl Encoder {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            collector: Collector::new(),
            compressor: Compressor::new(LEVEL)?,
            packed: Vec::new(),
            bytes: Vec::new(),
            directory: Vec::new(),
            pairs: Vec::new(),
        })
    }
}

pub(crate) struct Builder<'a> {
    hour: Hour,
    path: PathBuf,
    file: File,
    written: u64,
    encoder: &'a mut Encoder,
}

impl<'a> Builder<'a> {
    /// Starts a segment in the directory of a deployment.
    pub(crate) fn new(encoder: &'a mut Encoder, directory: &Path, hour: Hour) -> io::Result<Self> {
        let path = directory.join(format!("{hour}{UNFINISHED}"));
        let file = match File::create(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(directory)?;
                File::create(&path)?
            }
            created => created?,
        };
        encoder.bytes.clear();
        encoder.bytes.extend_from_slice(&MAGIC);
        encoder.directory.clear();
        encoder.pairs.clear();
        encoder.pairs.shrink_to(KEPT_PAIRS);
        Ok(Self { hour, path, file, written: 0, encoder })
    }

    pub(crate) fn add(&mut self, block: &Block) -> io::Result<()> {
        block.pack(&mut self.encoder.packed);
        let encoder = &mut *self.encoder;
        let stored = encoder.compressor.compress(&encoder.packed)?;
        let header = Header {
            stored: stored.len() as u32,
            packed: self.encoder.packed.len() as u32,
            summary: block.summary(),
            tally: Tally::of(block),
            sum: xxh3_64(&stored),
        };
        let number = self.encoder.directory.len() as u64;
        let (pairs, collector) = (&mut self.encoder.pairs, &mut self.encoder.collector);
        collector.collect(block, |word| pairs.push(u64::from(word) << 32 | number));
        self.put(header, &stored)
    }

    /// Adds blocks of another segment as they are stored.
    pub(crate) fn copy(&mut self, from: &Segment, which: &Blocks) -> io::Result<()> {
        let mut places = [None; MAX_BLOCKS];
        for (number, place) in places.iter_mut().enumerate().take(from.len()) {
            if which.has(number)
                && let Some((header, stored)) = from.stored(number)?
            {
                *place = Some(self.encoder.directory.len() as u64);
                self.put(header, &stored)?;
            }
        }
        let pairs = &mut self.encoder.pairs;
        from.words(|word, blocks| {
            let here = (0..from.len()).filter(|number| blocks.has(*number));
            pairs.extend(here.filter_map(|number| Some(u64::from(word) << 32 | places[number]?)));
        })
    }

    fn put(&mut self, header: Header, stored: &[u8]) -> io::Result<()> {
        self.encoder.bytes.reserve(HEADER + stored.len());
        header.write(&mut self.encoder.bytes);
        self.encoder.bytes.extend_from_slice(stored);
        self.encoder.directory.push(header);
        if self.encoder.bytes.len() >= CHUNK {
            self.flush()?;
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.encoder.bytes)?;
        self.written += self.encoder.bytes.len() as u64;
        self.encoder.bytes.clear();
        Ok(())
    }

    /// Finishes the segment; `None` if it is empty. A large one is synced to disk, and so is one that replaces others.
    pub(crate) fn finish(mut self, replaces_others: bool) -> io::Result<Option<FinishedSegment>> {
        let numbers = self.encoder.directory.iter().map(|header| header.summary.numbers);
        let range = numbers.reduce(|all, own| (all.0.min(own.0), all.1.max(own.1)));
        let Some((first, last)) = range else {
            fs::remove_file(&self.path)?;
            return Ok(None);
        };
        self.encoder.pairs.sort_unstable();
        self.encoder.pairs.dedup();
        let index = self.written + self.encoder.bytes.len() as u64;
        let index_bits =
            index::write(&self.encoder.pairs, self.encoder.directory.len(), &mut self.encoder.bytes);
        let directory = self.written + self.encoder.bytes.len() as u64;
        let start = self.encoder.bytes.len();
        let encoder = &mut *self.encoder;
        encoder.directory.iter().for_each(|header| header.write(&mut encoder.bytes));
        let sum = xxh3_64(&self.encoder.bytes[start..]);
        let blocks = self.encoder.directory.len() as u32;
        Footer { index, directory, blocks, index_bits, sum }.write(&mut self.encoder.bytes);
        self.flush()?;
        if replaces_others || self.written >= LARGE {
            self.file.sync_data()?;
        }
        Ok(Some(FinishedSegment { path: self.path, name: Name { hour: self.hour, first, last } }))
    }
}

/// A complete segment that is not visible yet.
#[must_use]
pub(crate) struct FinishedSegment {
    path: PathBuf,
    /// The name that matches its content.
    pub(crate) name: Name,
}

impl FinishedSegment {
    /// Renames it to its final name, which makes it visible.
    pub(crate) fn publish(self, name: Name) -> io::Result<()> {
        fs::rename(&self.path, self.path.with_file_name(name.to_string()))
    }
}
