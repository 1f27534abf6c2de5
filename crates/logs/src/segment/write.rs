//! Writes a segment, block by block.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Compressor;

use super::index::{self, Blocks};
use super::layout::{Footer, HEADER, Header, MAGIC};
use super::name::UNFINISHED;
use super::{MAX_BLOCKS, Name, Segment};
use crate::block::Block;
use crate::hour::Hour;
use crate::tokens::Collector;

const LEVEL: i32 = 3;
/// So much is collected before it is given to the operating system.
const CHUNK: usize = 1 << 20;
/// A segment that is worth a wait for the disk.
const LARGE: u64 = 512 * 1024;

/// A segment that is being written.
pub(crate) struct Builder {
    hour: Hour,
    path: PathBuf,
    file: File,
    /// What has not been given to the operating system yet.
    bytes: Vec<u8>,
    written: u64,
    directory: Vec<Header>,
    /// Words above, blocks below.
    pairs: Vec<u64>,
    collector: Collector,
    compressor: Compressor<'static>,
    packed: Vec<u8>,
}

impl Builder {
    /// Begins a segment in the directory of a deployment.
    pub(crate) fn new(directory: &Path, hour: Hour) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        let path = directory.join(format!("{hour}{UNFINISHED}"));
        let file = File::create(&path)?;
        Ok(Self {
            hour,
            path,
            file,
            bytes: MAGIC.to_vec(),
            written: 0,
            directory: Vec::new(),
            pairs: Vec::new(),
            collector: Collector::new(),
            compressor: Compressor::new(LEVEL)?,
            packed: Vec::new(),
        })
    }

    /// Adds a block.
    pub(crate) fn add(&mut self, block: &Block) -> io::Result<()> {
        block.pack(&mut self.packed);
        let stored = self.compressor.compress(&self.packed)?;
        let header = Header {
            stored: stored.len() as u32,
            packed: self.packed.len() as u32,
            summary: block.summary(),
            sum: xxh3_64(&stored),
        };
        let number = self.directory.len() as u64;
        let pairs = &mut self.pairs;
        self.collector.collect(block, |word| pairs.push(u64::from(word) << 32 | number));
        self.put(header, &stored)
    }

    /// Adds blocks of another segment as they are stored.
    pub(crate) fn copy(&mut self, from: &Segment, which: &Blocks) -> io::Result<()> {
        let mut places = [None; MAX_BLOCKS];
        for (number, place) in places.iter_mut().enumerate().take(from.len()) {
            if which.has(number)
                && let Some((header, stored)) = from.stored(number)?
            {
                *place = Some(self.directory.len() as u64);
                self.put(header, &stored)?;
            }
        }
        let pairs = &mut self.pairs;
        from.words(|word, blocks| {
            let here = (0..from.len()).filter(|number| blocks.has(*number));
            pairs.extend(here.filter_map(|number| Some(u64::from(word) << 32 | places[number]?)));
        })
    }

    fn put(&mut self, header: Header, stored: &[u8]) -> io::Result<()> {
        self.bytes.reserve(HEADER + stored.len());
        header.write(&mut self.bytes);
        self.bytes.extend_from_slice(stored);
        self.directory.push(header);
        if self.bytes.len() >= CHUNK {
            self.give()?;
        }
        Ok(())
    }

    fn give(&mut self) -> io::Result<()> {
        self.file.write_all(&self.bytes)?;
        self.written += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    /// Ends the segment; `None` where there is nothing in it. A large one is brought to disk, and so is one that others
    /// are dropped for.
    pub(crate) fn finish(mut self, replaces_others: bool) -> io::Result<Option<Nameless>> {
        let numbers = self.directory.iter().map(|header| header.summary.numbers);
        let range = numbers.reduce(|all, own| (all.0.min(own.0), all.1.max(own.1)));
        let Some((first, last)) = range else {
            fs::remove_file(&self.path)?;
            return Ok(None);
        };
        self.pairs.sort_unstable();
        self.pairs.dedup();
        let index = self.written + self.bytes.len() as u64;
        let index_bits = index::write(&self.pairs, self.directory.len(), &mut self.bytes);
        let directory = self.written + self.bytes.len() as u64;
        let start = self.bytes.len();
        self.directory.iter().for_each(|header| header.write(&mut self.bytes));
        let sum = xxh3_64(&self.bytes[start..]);
        let blocks = self.directory.len() as u32;
        Footer { index, directory, blocks, index_bits, sum }.write(&mut self.bytes);
        self.give()?;
        if replaces_others || self.written >= LARGE {
            self.file.sync_data()?;
        }
        Ok(Some(Nameless { path: self.path, name: Name { hour: self.hour, first, last } }))
    }
}

/// A segment that is whole and cannot be found yet.
#[must_use]
pub(crate) struct Nameless {
    path: PathBuf,
    /// The name that fits what is in it.
    pub(crate) name: Name,
}

impl Nameless {
    /// Gives it a name: from now on it is found.
    pub(crate) fn call(self, name: Name) -> io::Result<()> {
        fs::rename(&self.path, self.path.with_file_name(name.to_string()))
    }
}
