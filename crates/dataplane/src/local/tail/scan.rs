//! Finds what was written since the last scan, without reading everything every time.
//!
//! Runs that were active recently are scanned every time, new runs show in the modification time of their DAG's
//! directory, and the whole tree is walked now and then.
//!
//! Offsets up to which each file was read are kept in a journal with sixteen bytes for each step, the file and the
//! offset. It is rewritten when it is opened, and after a failed write, whose effect is unknown. Nothing is skipped
//! after a crash; lines that were stored just before a crash of the machine, or while this journal could not be
//! written, may be read twice.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use aws_lc_rs::digest::{SHA256, digest};
use rustix::fs::{CWD, FallocateFlags, Mode, OFlags, ResolveFlags, fallocate, openat2};

use crate::blocking::assert_may_block;
use crate::local::layout::{missing_is_none, write_whole};

/// The most that is read of one file at a time; a longer line is split.
const CHUNK: usize = 256 * 1024;
/// The most that is read at a time.
const BUDGET: usize = 4 * 1024 * 1024;
/// After this many scans the whole tree is walked.
const LOOKS_BETWEEN_WALKS: u32 = 60;
/// A run that was quiet for this many scans is left to the walks.
const QUIET_LOOKS: u32 = 600;
/// The read part of a component's file is released from disk in units of this size.
const RELEASED: u64 = 16 * 1024 * 1024;

/// A part of a file that was not read before.
pub(super) struct Chunk {
    pub(super) file: u64,
    pub(super) writer: Writer,
    pub(super) bytes: Vec<u8>,
    pub(super) end: u64,
}

/// Who wrote a file.
pub(super) enum Writer {
    Component(String),
    Task(String),
}

pub(super) struct Scanner {
    logs: PathBuf,
    tasks: PathBuf,
    offsets: Offsets,
    /// When a run was last added to a DAG.
    dags: HashMap<PathBuf, SystemTime>,
    runs: HashSet<PathBuf>,
    /// Active runs, with the number of scans since their last output.
    lively: HashMap<PathBuf, u32>,
    looks: u32,
    has_warned: bool,
}

impl Scanner {
    pub(super) fn new(logs: PathBuf, tasks: PathBuf, offsets: Offsets) -> Self {
        Self {
            logs,
            tasks,
            offsets,
            dags: HashMap::new(),
            runs: HashSet::new(),
            lively: HashMap::new(),
            looks: 0,
            has_warned: false,
        }
    }

    /// Returns new output, and whether that is all. What cannot be read is left for the next scan.
    pub(super) fn scan(&mut self) -> (Vec<Chunk>, bool) {
        assert_may_block();
        let mut found = Found::default();
        for path in entries(&self.logs, std::fs::FileType::is_file) {
            if let Some(name) = path.file_name().and_then(|name| name.to_str()?.strip_suffix(".log")) {
                self.try_to_read(&path, Writer::Component(name.to_owned()), &mut found);
            }
        }
        self.find_runs();
        let is_walk = self.looks.is_multiple_of(LOOKS_BETWEEN_WALKS);
        self.looks = self.looks.wrapping_add(1);
        let runs: Vec<PathBuf> =
            if is_walk { self.runs.iter().cloned().collect() } else { self.lively.keys().cloned().collect() };
        for run in runs {
            let before = found.chunks.len();
            self.walk(&run, 3, &mut found);
            if found.chunks.len() > before {
                self.lively.insert(run, 0);
            }
        }
        self.lively.retain(|_, quiet| {
            *quiet += 1;
            *quiet < QUIET_LOOKS
        });
        self.warn(found.unreadable.as_ref(), is_walk);
        (found.chunks, !found.is_cut)
    }

    /// Says once which file cannot be read, until all can be again: they may be many, and remain so.
    fn warn(&mut self, unreadable: Option<&(PathBuf, io::Error)>, has_seen_all: bool) {
        if let Some((path, error)) = unreadable.filter(|_| !self.has_warned) {
            tracing::warn!(?path, %error, "a log cannot be read yet, and possibly others of its environment");
        }
        self.has_warned = unreadable.is_some() || self.has_warned && !has_seen_all;
    }

    /// Records that chunks are stored.
    pub(super) fn remember(&mut self, steps: &[(u64, u64)]) -> io::Result<()> {
        self.offsets.advance(steps)
    }

    /// Finds runs that are new since the last scan.
    fn find_runs(&mut self) {
        for dag in entries(&self.tasks, std::fs::FileType::is_dir) {
            let Ok(changed) = fs::symlink_metadata(&dag).and_then(|metadata| metadata.modified()) else {
                continue;
            };
            if self.dags.insert(dag.clone(), changed) == Some(changed) {
                continue;
            }
            for run in entries(&dag, std::fs::FileType::is_dir) {
                if self.runs.insert(run.clone()) {
                    self.lively.insert(run, 0);
                }
            }
        }
        self.runs.retain(|run| run.parent().is_some_and(|dag| self.dags.contains_key(dag)));
    }

    fn walk(&self, directory: &Path, depth: u32, found: &mut Found) {
        for path in entries(directory, std::fs::FileType::is_file) {
            if path.file_name().and_then(|name| name.to_str()).is_some_and(|name| attempt(name).is_some()) {
                self.try_to_read(&path, Writer::Task(self.task(&path)), found);
            }
        }
        if depth > 0 {
            entries(directory, std::fs::FileType::is_dir)
                .for_each(|below| self.walk(&below, depth - 1, found));
        }
    }

    /// The task that a file belongs to, from its directory names.
    fn task(&self, path: &Path) -> String {
        let mut below = path.strip_prefix(&self.tasks).unwrap_or(path).to_owned();
        let name = path.file_name().and_then(|name| attempt(name.to_str()?)).unwrap_or_default().to_owned();
        below.set_file_name(name);
        let parts = below.iter().filter_map(|part| part.to_str()).filter(|part| part.contains('='));
        let parts: Vec<String> = parts.map(|part| part.replacen("attempt=", "try_number=", 1)).collect();
        parts.join(" ")
    }

    fn try_to_read(&self, path: &Path, writer: Writer, found: &mut Found) {
        if let Err(error) = missing_is_none(self.read(path, writer, found)) {
            found.unreadable.get_or_insert((path.to_owned(), error));
        }
    }

    fn read(&self, path: &Path, writer: Writer, found: &mut Found) -> io::Result<()> {
        let name = path.strip_prefix(&self.logs).unwrap_or(path);
        let (file, is_component) = (key(name), matches!(writer, Writer::Component(_)));
        let offset = self.offsets.of(file);
        // Most files have nothing new, which their length shows without opening them.
        if fs::symlink_metadata(path)?.len() == offset {
            return Ok(());
        }
        if found.bytes >= BUDGET {
            found.is_cut = true;
            return Ok(());
        }
        let opened = open_below(&self.logs, name)?;
        let metadata = opened.metadata()?;
        if !metadata.is_file() || metadata.nlink() > 1 {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let offset = if metadata.len() < offset { 0 } else { offset };
        let written = next_written(&opened, offset, metadata.len());
        if written > offset {
            // A hole: a file can be arbitrarily long without any data.
            found.is_cut |= written < metadata.len();
            found.chunks.push(Chunk { file, writer, bytes: Vec::new(), end: written });
            return Ok(());
        }
        let mut bytes = vec![0; CHUNK.min(usize::try_from(metadata.len() - offset).unwrap_or(CHUNK))];
        let length = opened.read_at(&mut bytes, offset)?;
        bytes.truncate(length);
        let is_full = length == CHUNK;
        match bytes.iter().rposition(|byte| *byte == b'\n') {
            Some(last) => bytes.truncate(last + 1),
            None if is_full => {}
            // The line is still being written.
            None => return Ok(()),
        }
        found.is_cut |= is_full;
        found.bytes += bytes.len();
        let end = offset + bytes.len() as u64;
        // Padding of the last written block before a hole.
        if bytes.iter().all(|byte| *byte == 0) {
            bytes.clear();
        }
        found.chunks.push(Chunk { file, writer, bytes, end });
        if is_component && offset / RELEASED > 0 {
            // It only saves space, and not every file system can.
            let _ = release(&self.logs.join(name), offset);
        }
        Ok(())
    }
}

/// The attempt that a file of this name belongs to; `None` if it is not a log. Triggers of a task write next to its
/// log: `attempt=1.log.trigger.5.log`, or without the suffix.
fn attempt(name: &str) -> Option<&str> {
    let (attempt, rest) = name.split_once(".log")?;
    let is_log = rest.is_empty() || rest == ".trigger" || rest.starts_with(".trigger.");
    is_log.then_some(attempt)
}

#[derive(Default)]
struct Found {
    chunks: Vec<Chunk>,
    bytes: usize,
    is_cut: bool,
    /// The first file that cannot be read, and why.
    unreadable: Option<(PathBuf, io::Error)>,
}

/// The offset of the next data in a file; its end if there is none.
fn next_written(file: &File, offset: u64, end: u64) -> u64 {
    match rustix::fs::seek(file, rustix::fs::SeekFrom::Data(offset)) {
        Ok(next) => next,
        Err(rustix::io::Errno::NXIO) => end,
        // Not every file system supports this.
        Err(_) => offset,
    }
}

/// Opens a file below a directory without following any link.
pub(in super::super) fn open_below(directory: &Path, name: &Path) -> io::Result<File> {
    let base = openat2(
        CWD,
        directory,
        OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
        ResolveFlags::empty(),
    )?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened =
        openat2(base, name, flags, Mode::empty(), ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS)?;
    Ok(opened.into())
}

/// Releases the read part of a component's file from disk. Its writer is not disturbed.
fn release(path: &Path, until: u64) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    let whole = until / RELEASED * RELEASED;
    Ok(fallocate(&file, FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE, 0, whole)?)
}

/// The entries of a directory of one type; links are neither files nor directories.
fn entries(directory: &Path, is_wanted: fn(&fs::FileType) -> bool) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter(move |entry| entry.file_type().is_ok_and(|kind| is_wanted(&kind)))
        .map(|entry| entry.path())
}

const RECORD: usize = 16;

pub(super) struct Offsets {
    path: PathBuf,
    /// `None` after a failed write.
    journal: Option<File>,
    known: HashMap<u64, u64>,
}

impl Offsets {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let bytes = missing_is_none(fs::read(path))?.unwrap_or_default();
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        // A torn record at the end was never acted upon.
        let records = bytes.chunks_exact(RECORD).map(|record| (number(&record[..8]), number(&record[8..])));
        let mut offsets = Self { path: path.to_owned(), journal: None, known: records.collect() };
        offsets.rewrite()?;
        Ok(offsets)
    }

    /// How far a file was read.
    pub(super) fn of(&self, file: u64) -> u64 {
        self.known.get(&file).copied().unwrap_or(0)
    }

    /// Records how far files were read. If that cannot be written, it is kept in memory and written with the next step.
    pub(super) fn advance(&mut self, steps: &[(u64, u64)]) -> io::Result<()> {
        assert_may_block();
        self.known.extend(steps.iter().copied());
        let Some(journal) = &mut self.journal else { return self.rewrite() };
        let bytes: Vec<u8> = steps.iter().flat_map(|(file, offset)| offset_record(*file, *offset)).collect();
        journal.write_all(&bytes).inspect_err(|_| self.journal = None)
    }

    /// Writes everything that is known to a new journal.
    fn rewrite(&mut self) -> io::Result<()> {
        let whole: Vec<u8> =
            self.known.iter().flat_map(|(file, offset)| offset_record(*file, *offset)).collect();
        write_whole(&self.path, &whole, 0o600)?;
        self.journal = Some(OpenOptions::new().append(true).open(&self.path)?);
        Ok(())
    }
}

fn offset_record(file: u64, offset: u64) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..8].copy_from_slice(&file.to_le_bytes());
    record[8..].copy_from_slice(&offset.to_le_bytes());
    record
}

/// The key of a file, from its path below the environment's logs.
pub(super) fn key(path: &Path) -> u64 {
    let hash = digest(&SHA256, path.as_os_str().as_encoded_bytes());
    u64::from_le_bytes(hash.as_ref()[..8].try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_a_torn_write() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("offsets");
        let (one, two) = (key(Path::new("a")), key(Path::new("b")));
        let mut offsets = Offsets::open(&path).unwrap();
        offsets.advance(&[(one, 5), (two, 7)]).unwrap();
        offsets.advance(&[(one, 9)]).unwrap();
        OpenOptions::new().append(true).open(&path).unwrap().write_all(&[1, 2, 3]).unwrap();
        let offsets = Offsets::open(&path).unwrap();
        assert_eq!((offsets.of(one), offsets.of(two), offsets.of(3)), (9, 7, 0));
        assert_eq!(fs::metadata(&path).unwrap().len(), 32);
    }

    #[test]
    fn a_failed_write_is_repeated_with_the_next_step() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("offsets");
        let mut offsets = Offsets::open(&path).unwrap();
        offsets.journal = Some(OpenOptions::new().write(true).open("/dev/full").unwrap());
        offsets.advance(&[(1, 5)]).unwrap_err();
        assert_eq!(offsets.of(1), 5, "it is not read again");
        offsets.advance(&[(2, 7)]).unwrap();
        let offsets = Offsets::open(&path).unwrap();
        assert_eq!((offsets.of(1), offsets.of(2)), (5, 7));
    }
}
