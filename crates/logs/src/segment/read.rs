//! Reading of segments.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use memchr::memmem;
use xxhash_rust::xxh3::xxh3_64;
use zstd::bulk::Decompressor;

use super::MAX_BLOCKS;
use super::index::{Blocks, Index};
use super::layout::{FIRST_HEADER, FOOTER, Footer, HEADER, Header, MAGIC, MARK};
use crate::block::{Block, MAX_PACKED};

/// How much is scanned at once if the directory is damaged.
const CHUNK: usize = 256 * 1024;

pub(crate) struct Segment {
    file: File,
    blocks: Vec<(Header, u64)>,
    /// `None` if it is damaged.
    index: Option<Index>,
}

impl Segment {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        if let Some((footer, headers)) = directory(&file, length)? {
            let mut at = MAGIC.len() as u64;
            let mut blocks = Vec::with_capacity(headers.len());
            for (header, length) in headers {
                at += length as u64;
                blocks.push((header, at));
                at += u64::from(header.stored);
            }
            let index = Index {
                at: footer.index,
                end: footer.directory,
                bits: footer.index_bits,
                blocks: blocks.len(),
            };
            return Ok(Self { file, blocks, index: Some(index) });
        }
        tracing::warn!(path = %path.display(), "a log segment is damaged; its intact blocks are read");
        let blocks = salvage(&file, length)?;
        Ok(Self { file, blocks, index: None })
    }

    pub(crate) fn len(&self) -> usize {
        self.blocks.len()
    }

    pub(crate) fn headers(&self) -> impl Iterator<Item = &Header> {
        self.blocks.iter().map(|(header, _)| header)
    }

    /// The blocks that may hold all of these words.
    pub(crate) fn holding(&self, words: &[u32]) -> io::Result<Blocks> {
        let mut all = Blocks::ALL;
        let Some(index) = &self.index else { return Ok(all) };
        for word in words {
            all.and(&index.look_up(&self.file, *word)?);
            if all.is_empty() {
                break;
            }
        }
        Ok(all)
    }

    /// Whether the whole index is intact.
    pub(crate) fn is_sound(&self) -> io::Result<bool> {
        self.index.as_ref().map_or(Ok(false), |index| index.all(&self.file, |_, _| {}))
    }

    /// Every word with the blocks that hold it.
    pub(super) fn words(&self, each: impl FnMut(u32, Blocks)) -> io::Result<()> {
        let whole = self.index.as_ref().map_or(Ok(false), |index| index.all(&self.file, each))?;
        if whole { Ok(()) } else { Err(io::Error::other("the index of a log segment is damaged")) }
    }

    /// A block as it is stored; `None` if it is damaged.
    pub(super) fn stored(&self, number: usize) -> io::Result<Option<(Header, Vec<u8>)>> {
        let Some((header, at)) = self.blocks.get(number) else { return Ok(None) };
        let mut bytes = vec![0; header.stored as usize];
        match self.file.read_exact_at(&mut bytes, *at) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read?,
        }
        Ok((xxh3_64(&bytes) == header.sum).then_some((*header, bytes)))
    }

    /// A block; `None` if it is damaged.
    pub(crate) fn block(&self, number: usize, unpacker: &mut Unpacker) -> io::Result<Option<Block>> {
        self.block_if(number, unpacker, |_| true)
    }

    /// A block that is wanted once its packed bytes are known; also `None` if it is damaged.
    pub(crate) fn block_if(
        &self,
        number: usize,
        unpacker: &mut Unpacker,
        is_wanted: impl FnOnce(&[u8]) -> bool,
    ) -> io::Result<Option<Block>> {
        let Some((header, stored)) = self.stored(number)? else {
            tracing::warn!(number, "a block of a log segment is damaged; it is skipped");
            return Ok(None);
        };
        let packed = unpacker.unpack(&stored)?.filter(|packed| is_wanted(packed));
        let block = packed.and_then(Block::unpack);
        Ok(block.filter(|block| block.summary() == header.summary))
    }
}

/// Decompresses blocks with a reusable buffer, which is allocated on first use.
#[derive(Default)]
pub(crate) struct Unpacker(Option<(Decompressor<'static>, Vec<u8>)>);

impl Unpacker {
    fn unpack(&mut self, stored: &[u8]) -> io::Result<Option<&[u8]>> {
        let (decompressor, packed) = match &mut self.0 {
            Some(memory) => memory,
            none => none.insert((Decompressor::new()?, Vec::with_capacity(MAX_PACKED))),
        };
        packed.clear();
        Ok(decompressor.decompress_to_buffer(stored, packed).is_ok().then_some(packed))
    }
}

/// The footer, and headers with the length of each.
type Directory = (Footer, Vec<(Header, usize)>);

/// The footer and the directory, if both are whole.
fn directory(file: &File, length: u64) -> io::Result<Option<Directory>> {
    let Some(at) = length.checked_sub(FOOTER as u64) else { return Ok(None) };
    let mut bytes = [0; FOOTER];
    file.read_exact_at(&mut bytes, at)?;
    let Some(footer) = Footer::read(&bytes) else { return Ok(None) };
    let blocks = footer.blocks as usize;
    let fits = blocks <= MAX_BLOCKS && footer.index_bits < 32 && footer.index <= footer.directory;
    let ends_here = |header: &usize| footer.directory.checked_add((blocks * header) as u64) == Some(at);
    let Some(header) = [HEADER, FIRST_HEADER].into_iter().find(|header| fits && ends_here(header)) else {
        return Ok(None);
    };
    let mut bytes = vec![0; blocks * header];
    file.read_exact_at(&mut bytes, footer.directory)?;
    if xxh3_64(&bytes) != footer.sum {
        return Ok(None);
    }
    let headers: Option<Vec<_>> = bytes.chunks_exact(header).map(Header::read).collect();
    Ok(headers.map(|headers| (footer, headers)))
}

/// The blocks that can be found by their headers.
fn salvage(file: &File, length: u64) -> io::Result<Vec<(Header, u64)>> {
    let mut found: Vec<(Header, u64)> = Vec::new();
    let mut chunk = Vec::new();
    let mut at = 0;
    while at < length && found.len() < MAX_BLOCKS {
        chunk.resize(CHUNK.min((length - at) as usize), 0);
        file.read_exact_at(&mut chunk, at)?;
        let hit = memmem::find_iter(&chunk, &MARK).find_map(|place| {
            let (header, length) = Header::read(chunk.get(place..)?)?;
            Some((header, at + (place + length) as u64))
        });
        match hit {
            // The directory repeats headers; no block lies behind those.
            Some((header, _)) if found.iter().any(|(known, _)| *known == header) => break,
            Some((header, place)) => {
                found.push((header, place));
                at = place.saturating_add(u64::from(header.stored));
            }
            None if chunk.len() <= HEADER => break,
            // A header may lie across the border of two chunks.
            None => at += (chunk.len() - HEADER + 1) as u64,
        }
    }
    Ok(found)
}
