//! Finds what was written since the last scan, without reading everything every time.
//!
//! Runs that were active recently are scanned every time, new runs show in the modification time of their DAG's
//! directory, and the whole tree is walked now and then.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{CWD, FallocateFlags, Mode, OFlags, ResolveFlags, fallocate, openat2};

use crate::blocking::assert_may_block;
use crate::local::layout::missing_is_none;
use crate::local::offsets::{Offsets, key};

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
    /// The offset after this chunk.
    pub(super) end: u64,
}

/// Who wrote a file.
pub(super) enum Writer {
    /// The component of this name.
    Component(String),
    /// This task.
    Task(String),
}

/// Scans for new output.
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
