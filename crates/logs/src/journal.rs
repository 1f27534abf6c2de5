//! The journal: lines of all deployments that are in no segment yet, in the order of writing.
//!
//! It is only read when the store is opened. A write appends one or more frames, each with its length and a checksum; a
//! truncated or damaged frame is skipped, so that nothing else is lost. The journal is a sequence of files; a file is
//! deleted once everything in it is in segments.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use memchr::memmem;
use podium_api::DeploymentId;
use podium_api::enums::LogSource;
use xxhash_rust::xxh3::xxh3_64;

use crate::block::{MAX_TEXT, number_of, pieces, source_of};
use crate::bytes::Reader;
use crate::{Line, Origin, missing_is_none};

const ENDING: &str = ".journal";
const START: [u8; 4] = *b"lgJ1";
/// Start mark, length, checksum.
const HEAD: usize = 4 + 4 + 8;
/// A frame is closed once it is as long as this.
const FULL: usize = 1 << 20;
/// No frame is longer.
const MAX_BODY: usize = FULL + MAX_TEXT + MAX_BATCH + 128;
const LINES: u8 = 1;
const REMOVAL: u8 = 2;
const BATCH: u8 = 3;
/// The longest batch of a sender: it is one frame, so that it is atomic.
pub(crate) const MAX_BATCH: usize = 8 << 20;
/// As long as any id.
const ID: usize = 25;

/// The content of a frame.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Record<'a> {
    Line {
        number: u64,
        deployment_id: DeploymentId,
        millis: i64,
        source: LogSource,
        text: &'a str,
    },
    /// Everything of a deployment below this number is deleted.
    Removal {
        number: u64,
        deployment_id: DeploymentId,
    },
    /// The lines from this number on are a batch of a sender.
    Batch {
        number: u64,
        origin: Origin,
    },
}

/// Encodes frames in memory.
pub(crate) struct Frames {
    bytes: Vec<u8>,
    /// Where the open frame begins; it holds lines from this number on.
    open: Option<usize>,
    deployment_id: Option<DeploymentId>,
}

impl Frames {
    pub(crate) fn new() -> Self {
        Self { bytes: Vec::new(), open: None, deployment_id: None }
    }

    /// Adds a line, split if it is too long; each piece takes the next number.
    pub(crate) fn line(&mut self, number: &mut u64, line: &Line) {
        for text in pieces(&line.text) {
            if self.open.is_some_and(|start| self.bytes.len() - start >= FULL) {
                self.close();
            }
            if self.open.is_none() {
                self.begin(LINES, *number);
            }
            self.piece(line, text);
            *number += 1;
        }
    }

    /// Adds the lines of a batch, which are not longer than [`MAX_BATCH`] together.
    pub(crate) fn batch(&mut self, number: &mut u64, origin: &Origin, lines: &[Line]) {
        self.close();
        self.begin(BATCH, *number);
        self.bytes.extend_from_slice(origin.deployment_id.as_str().as_bytes());
        self.bytes.extend_from_slice(&origin.sender.to_le_bytes());
        self.bytes.extend_from_slice(&origin.sequence.to_le_bytes());
        for line in lines {
            for text in pieces(&line.text) {
                self.piece(line, text);
                *number += 1;
            }
        }
        self.close();
    }

    fn piece(&mut self, line: &Line, text: &str) {
        // A line of the same deployment as the one before does not repeat its id.
        let is_same = self.deployment_id == Some(line.deployment_id);
        self.bytes.push(number_of(line.source) << 1 | u8::from(is_same));
        if !is_same {
            self.bytes.extend_from_slice(line.deployment_id.as_str().as_bytes());
            self.deployment_id = Some(line.deployment_id);
        }
        self.bytes.extend_from_slice(&line.timestamp.millis().to_le_bytes());
        self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
    }

    pub(crate) fn removal(&mut self, number: u64, deployment_id: DeploymentId) {
        self.close();
        self.begin(REMOVAL, number);
        self.bytes.extend_from_slice(deployment_id.as_str().as_bytes());
        self.close();
    }

    fn begin(&mut self, kind: u8, number: u64) {
        self.open = Some(self.bytes.len());
        self.deployment_id = None;
        self.bytes.resize(self.bytes.len() + HEAD, 0);
        self.bytes.push(kind);
        self.bytes.extend_from_slice(&number.to_le_bytes());
    }

    fn close(&mut self) {
        let Some(start) = self.open.take() else { return };
        let body = start + HEAD;
        let length = (self.bytes.len() - body) as u32;
        let sum = xxh3_64(&self.bytes[body..]);
        self.bytes[start..start + 4].copy_from_slice(&START);
        self.bytes[start + 4..start + 8].copy_from_slice(&length.to_le_bytes());
        self.bytes[start + 8..body].copy_from_slice(&sum.to_le_bytes());
    }

    /// The encoded frames.
    fn take(&mut self) -> &[u8] {
        self.close();
        &self.bytes
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(4 * FULL);
    }
}

pub(crate) struct Journal {
    directory: PathBuf,
    /// The number of the file that is written.
    generation: u64,
    file: Option<File>,
    /// How long the file that is written is.
    pub(crate) length: u64,
}

impl Journal {
    /// Opens the journal in a directory; existing files stay until they are deleted.
    pub(crate) fn open(directory: PathBuf) -> io::Result<Self> {
        let generation = files(&directory)?.last().map_or(1, |last| last + 1);
        Ok(Self { directory, generation, file: None, length: 0 })
    }

    /// Writes frames. If that fails, a partial write is truncated.
    pub(crate) fn write(&mut self, frames: &mut Frames) -> io::Result<()> {
        let outcome = self.write_bytes(frames.take());
        frames.clear();
        outcome
    }

    fn write_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.file.is_none() {
            fs::create_dir_all(&self.directory)?;
            let path = self.path(self.generation);
            self.file = Some(OpenOptions::new().append(true).create_new(true).open(path)?);
        }
        let Some(file) = &mut self.file else { return Ok(()) };
        if let Err(error) = file.write_all(bytes) {
            file.set_len(self.length)?;
            return Err(error);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    /// Starts another file; returns the number of the last complete one.
    pub(crate) fn rotate(&mut self) -> u64 {
        let complete = self.generation;
        self.generation += 1;
        (self.file, self.length) = (None, 0);
        complete
    }

    fn path(&self, generation: u64) -> PathBuf {
        self.directory.join(format!("{generation:016x}{ENDING}"))
    }
}

pub(crate) fn drop_up_to(directory: &Path, generation: u64) -> io::Result<()> {
    for number in files(directory)?.into_iter().filter(|number| *number <= generation) {
        missing_is_none(fs::remove_file(directory.join(format!("{number:016x}{ENDING}"))))?;
    }
    Ok(())
}

fn files(directory: &Path) -> io::Result<Vec<u64>> {
    let Some(entries) = missing_is_none(fs::read_dir(directory))? else { return Ok(Vec::new()) };
    let mut numbers = Vec::new();
    for entry in entries {
        let name = entry?.file_name();
        let number = name.to_str().and_then(|name| name.strip_suffix(ENDING));
        numbers.extend(number.and_then(|number| u64::from_str_radix(number, 16).ok()));
    }
    numbers.sort_unstable();
    Ok(numbers)
}

/// Reads all records of the journal, in the order of writing.
pub(crate) fn replay(directory: &Path, mut each: impl FnMut(Record<'_>) -> io::Result<()>) -> io::Result<()> {
    for number in files(directory)? {
        let bytes = fs::read(directory.join(format!("{number:016x}{ENDING}")))?;
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            if let Some((body, after)) = frame(rest) {
                records(body, &mut each)?;
                rest = after;
                continue;
            }
            tracing::warn!(number, "the log journal contains a damaged frame; it is skipped");
            let next = memmem::find_iter(&rest[1..], &START).find(|at| frame(&rest[at + 1..]).is_some());
            rest = next.map_or(&[][..], |at| &rest[at + 1..]);
        }
    }
    Ok(())
}

/// The body of an intact frame, and what follows it.
fn frame(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader::new(bytes);
    let is_frame = reader.take(4)? == START;
    let length = reader.u32()? as usize;
    let sum = reader.u64()?;
    if !is_frame || length > MAX_BODY {
        return None;
    }
    let body = reader.take(length)?;
    (xxh3_64(body) == sum).then_some((body, reader.rest()))
}

fn records(body: &[u8], each: &mut impl FnMut(Record<'_>) -> io::Result<()>) -> io::Result<()> {
    let mut reader = Reader::new(body);
    let (Some(kind), Some(mut number)) = (reader.u8(), reader.u64()) else { return Ok(()) };
    if kind == REMOVAL {
        let Some(deployment_id) = id(&mut reader) else { return Ok(()) };
        return each(Record::Removal { number, deployment_id });
    }
    if kind == BATCH {
        let Some(origin) = origin(&mut reader) else { return Ok(()) };
        each(Record::Batch { number, origin })?;
    }
    let mut deployment_id = None;
    while matches!(kind, LINES | BATCH) && !reader.is_at_end() {
        let Some(record) = line(&mut reader, number, &mut deployment_id) else { return Ok(()) };
        each(record)?;
        number += 1;
    }
    Ok(())
}

fn origin(reader: &mut Reader<'_>) -> Option<Origin> {
    Some(Origin { deployment_id: id(reader)?, sender: reader.u64()?, sequence: reader.u64()? })
}

fn line<'a>(
    reader: &mut Reader<'a>,
    number: u64,
    deployment_id: &mut Option<DeploymentId>,
) -> Option<Record<'a>> {
    let kind = reader.u8()?;
    if kind & 1 == 0 {
        *deployment_id = Some(id(reader)?);
    }
    let millis = reader.i64()?;
    let length = reader.u32()? as usize;
    let text = std::str::from_utf8(reader.take(length)?).ok()?;
    Some(Record::Line {
        number,
        deployment_id: (*deployment_id)?,
        millis,
        source: source_of(kind >> 1)?,
        text,
    })
}

fn id(reader: &mut Reader<'_>) -> Option<DeploymentId> {
    std::str::from_utf8(reader.take(ID)?).ok()?.parse().ok()
}
