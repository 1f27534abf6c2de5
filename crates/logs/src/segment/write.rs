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
/// So many words with their blocks keep their room for the next segment.
const KEPT_PAIRS: usize = 1 << 18;

/// What writing takes besides the file, kept from one segment to the next: small segments are many.
pub(crate) struct Press {
    collector: Collector,
    compressor: Compressor<'static>,
    packed: Vec<u8>,
    /// What has not been given to the operating system yet.
    bytes: Vec<u8>,
    directory: Vec<Header>,
    /// Words above, blocks below.
    pairs: Vec<u64>,
}

impl Press {
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

/// A segment that is being written.
pub(crate) struct Builder<'a> {
    hour: Hour,
    path: PathBuf,
    file: File,
    written: u64,
    press: &'a mut Press,
}

impl<'a> Builder<'a> {
    /// Begins a segment in the directory of a deployment.
    pub(crate) fn new(press: &'a mut Press, directory: &Path, hour: Hour) -> io::Result<Self> {
        let path = directory.join(format!("{hour}{UNFINISHED}"));
        let file = match File::create(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(directory)?;
                File::create(&path)?
            }
            created => created?,
        };
        press.bytes.clear();
        press.bytes.extend_from_slice(&MAGIC);
        press.directory.clear();
        press.pairs.clear();
        press.pairs.shrink_to(KEPT_PAIRS);
        Ok(Self { hour, path, file, written: 0, press })
    }

    /// Adds a block.
    pub(crate) fn add(&mut self, block: &Block) -> io::Result<()> {
        block.pack(&mut self.press.packed);
        let press = &mut *self.press;
        let stored = press.compressor.compress(&press.packed)?;
        let header = Header {
            stored: stored.len() as u32,
            packed: self.press.packed.len() as u32,
            summary: block.summary(),
            sum: xxh3_64(&stored),
        };
        let number = self.press.directory.len() as u64;
        let (pairs, collector) = (&mut self.press.pairs, &mut self.press.collector);
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
                *place = Some(self.press.directory.len() as u64);
                self.put(header, &stored)?;
            }
        }
        let pairs = &mut self.press.pairs;
        from.words(|word, blocks| {
            let here = (0..from.len()).filter(|number| blocks.has(*number));
            pairs.extend(here.filter_map(|number| Some(u64::from(word) << 32 | places[number]?)));
        })
    }

    fn put(&mut self, header: Header, stored: &[u8]) -> io::Result<()> {
        self.press.bytes.reserve(HEADER + stored.len());
        header.write(&mut self.press.bytes);
        self.press.bytes.extend_from_slice(stored);
        self.press.directory.push(header);
        if self.press.bytes.len() >= CHUNK {
            self.give()?;
        }
        Ok(())
    }

    fn give(&mut self) -> io::Result<()> {
        self.file.write_all(&self.press.bytes)?;
        self.written += self.press.bytes.len() as u64;
        self.press.bytes.clear();
        Ok(())
    }

    /// Ends the segment; `None` where there is nothing in it. A large one is brought to disk, and so is one that others
    /// are dropped for.
    pub(crate) fn finish(mut self, replaces_others: bool) -> io::Result<Option<Nameless>> {
        let numbers = self.press.directory.iter().map(|header| header.summary.numbers);
        let range = numbers.reduce(|all, own| (all.0.min(own.0), all.1.max(own.1)));
        let Some((first, last)) = range else {
            fs::remove_file(&self.path)?;
            return Ok(None);
        };
        self.press.pairs.sort_unstable();
        self.press.pairs.dedup();
        let index = self.written + self.press.bytes.len() as u64;
        let index_bits = index::write(&self.press.pairs, self.press.directory.len(), &mut self.press.bytes);
        let directory = self.written + self.press.bytes.len() as u64;
        let start = self.press.bytes.len();
        let press = &mut *self.press;
        press.directory.iter().for_each(|header| header.write(&mut press.bytes));
        let sum = xxh3_64(&self.press.bytes[start..]);
        let blocks = self.press.directory.len() as u32;
        Footer { index, directory, blocks, index_bits, sum }.write(&mut self.press.bytes);
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
