//! Finds what is new in a spool.
//!
//! A spool consists of numbered segments, which are appended to. Once there is a newer one and the last writers have had
//! the time to finish, a segment is complete; it is removed when it was read and that is stored. Untrusted code owns the
//! directory: files are opened without following links, and only regular ones; no more is read of one than a listener
//! writes to it; what no listener writes is counted and passed over.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;

use podium_api::Timestamp;
use podium_domain::events::{Claim, SpoolPosition};
use rustix::io::Errno;

use crate::blocking::assert_may_block;
use crate::local::tail::open_below;
use crate::local::trees;

/// The most that is read at a time.
const CHUNK: u64 = 128 * 1024;
/// The most lines that are read at a time.
const MOST_LINES: usize = 500;
/// No listener writes to a segment of this size: the rest of a longer one is passed over.
const MOST_SEGMENT: u64 = 1024 * 1024;
/// A spool with more entries than this was not filled by a listener, and is emptied.
const MOST_ENTRIES: usize = 1024;
/// How many entries are removed at a time.
const REMOVED: u64 = 20_000;
/// How many milliseconds the last writers of a segment have to finish once there is a newer one.
const GRACE: i64 = 10_000;
/// The file whose size is the number of dropped events.
const DROPPED: &str = "dropped";
/// The size from which that file is begun anew.
const MUCH_DROPPED: u64 = 512 * 1024;
/// The size that no listener lets it exceed.
const MOST_DROPPED: u64 = 1024 * 1024;
/// How many digits the name of a segment has.
const DIGITS: usize = 16;

/// What is new.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) to: SpoolPosition,
    pub(super) claims: Vec<Claim>,
    pub(super) dropped: u64,
}

/// How a scan continues after a segment.
#[derive(PartialEq, Eq)]
enum Next {
    /// With the next segment: this one is complete and was read.
    Segment,
    /// Later, with what follows in this one.
    Later,
}

/// Reads at most so many lines from a position on, and removes what is before it. What cannot be read now is left for later.
pub(super) fn scan(spool: &Path, from: SpoolPosition, most: usize, now: Timestamp) -> Found {
    assert_may_block();
    let mut found = Found { to: from, ..Found::default() };
    if let Err(error) = find(spool, from, most.min(MOST_LINES), now, &mut found)
        && error.kind() != ErrorKind::NotFound
    {
        tracing::warn!(path = %spool.display(), %error, "a spool cannot be read yet");
    }
    found
}

fn find(spool: &Path, from: SpoolPosition, most: usize, now: Timestamp, found: &mut Found) -> io::Result<()> {
    let Some(segments) = segments(spool)? else {
        trees::clear(spool, None, REMOVED)?;
        found.dropped += 1;
        return Ok(());
    };
    count_dropped(spool, found)?;
    let Some(newest) = segments.last().copied() else { return Ok(()) };
    // The spool was emptied, and its numbers have begun anew.
    let from = if newest < from.segment { SpoolPosition::default() } else { from };
    for segment in segments {
        let path = spool.join(format!("{segment:0DIGITS$}"));
        if segment < from.segment {
            trees::remove(&path)?;
            continue;
        }
        let Some((file, metadata)) = open(spool, &path)? else {
            trees::remove(&path)?;
            found.dropped += 1;
            continue;
        };
        let offset = if segment == from.segment { from.read_bytes } else { 0 };
        let changed = metadata.mtime().saturating_mul(1000);
        // A time to come was set by somebody.
        let is_settled = !(0..GRACE).contains(&now.millis().saturating_sub(changed));
        let open =
            Segment { number: segment, length: metadata.len(), is_complete: segment < newest && is_settled };
        if open.read(&file, offset, most, found)? == Next::Later {
            break;
        }
    }
    Ok(())
}

/// The numbers of the segments in order; `None` if there is more than a listener makes.
fn segments(spool: &Path) -> io::Result<Option<Vec<u64>>> {
    let (mut numbers, mut count) = (Vec::new(), 0);
    for entry in fs::read_dir(spool)? {
        let name = entry?.file_name();
        let digits =
            name.to_str().filter(|name| name.len() == DIGITS && name.bytes().all(|it| it.is_ascii_digit()));
        numbers.extend(digits.and_then(|digits| digits.parse::<u64>().ok()));
        count += 1;
        if count > MOST_ENTRIES {
            return Ok(None);
        }
    }
    numbers.sort_unstable();
    Ok(Some(numbers))
}

/// Notes how many events were dropped since the last time.
fn count_dropped(spool: &Path, found: &mut Found) -> io::Result<()> {
    let (path, known) = (spool.join(DROPPED), found.to.dropped);
    let count = match fs::symlink_metadata(&path) {
        Ok(metadata) if metadata.is_file() => metadata.len().min(MOST_DROPPED),
        Ok(_) => 0,
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        Err(error) => return Err(error),
    };
    if count == known && count >= MUCH_DROPPED {
        return trees::remove(&path);
    }
    // It was begun anew if it is shorter.
    found.dropped += if count < known { count } else { count - known };
    found.to.dropped = count;
    Ok(())
}

/// Opens a segment; `None` if it is none that a listener has written.
fn open(spool: &Path, path: &Path) -> io::Result<Option<(File, Metadata)>> {
    let name = path.strip_prefix(spool).unwrap_or(path);
    let opened = match open_below(spool, name) {
        Ok(opened) => opened,
        Err(error) => {
            let foreign = [Errno::LOOP, Errno::NXIO, Errno::ACCESS, Errno::PERM].map(Errno::raw_os_error);
            return if error.raw_os_error().is_some_and(|it| foreign.contains(&it)) {
                Ok(None)
            } else {
                Err(error)
            };
        }
    };
    let metadata = opened.metadata()?;
    Ok((metadata.is_file() && metadata.nlink() == 1).then_some((opened, metadata)))
}

struct Segment {
    number: u64,
    length: u64,
    /// Whether nothing is appended to it any more.
    is_complete: bool,
}

impl Segment {
    fn read(&self, file: &File, offset: u64, most: usize, found: &mut Found) -> io::Result<Next> {
        // It was begun anew if it is shorter.
        let offset = if self.length < offset { 0 } else { offset };
        if offset == self.length {
            return Ok(if self.is_complete { Next::Segment } else { Next::Later });
        }
        if offset >= MOST_SEGMENT {
            return Ok(self.pass_over(self.length, found));
        }
        let mut bytes = vec![0; usize::try_from(CHUNK.min(self.length - offset)).unwrap_or_default()];
        let length = file.read_at(&mut bytes, offset)?;
        bytes.truncate(length);
        let mut rest = bytes.as_slice();
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line = &rest[..end];
            match Claim::parse(line) {
                _ if line.is_empty() => {}
                Some(_) if found.claims.len() >= most => break,
                Some(claim) => found.claims.push(claim),
                None => found.dropped += 1,
            }
            rest = &rest[end + 1..];
        }
        let read = (length - rest.len()) as u64;
        let (is_stuck, is_end) =
            (read == 0 && found.claims.len() < most, offset + length as u64 >= self.length);
        if is_stuck && (length as u64 == CHUNK || is_end && self.is_complete) {
            return Ok(self.pass_over(offset + length as u64, found));
        }
        if read > 0 {
            found.to = SpoolPosition { segment: self.number, read_bytes: offset + read, ..found.to };
        }
        Ok(Next::Later)
    }

    /// Counts what is before a position and is no line.
    fn pass_over(&self, read_bytes: u64, found: &mut Found) -> Next {
        found.dropped += 1;
        found.to = SpoolPosition { segment: self.number, read_bytes, ..found.to };
        Next::Later
    }
}
