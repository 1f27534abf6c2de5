//! The spool: where an environment's listener writes what it says about its DAG runs and tasks, and how that is read.
//!
//! A spool consists of numbered segments, which are appended to. Once there is a newer one and the last writers have
//! had the time to finish, a segment is complete. Untrusted code may have written them: no more is read of one than a
//! listener writes to it, and what no listener writes is counted and passed over. How far a spool was read is stored
//! with what was found in it, so that each line is stored once.

use std::ops::Range;

use podium_api::Timestamp;
use podium_domain::events::{Claim, SpoolBatch, SpoolPosition, SpoolState};

/// The most that is read at a time.
const CHUNK: u64 = 128 * 1024;
/// The most lines that are read at a time.
const MOST_LINES: usize = 500;
/// No listener writes to a segment of this size: the rest of a longer one is passed over.
const MOST_SEGMENT: u64 = 1024 * 1024;
/// A spool with more entries than this was not filled by a listener, and is emptied.
pub const MOST_ENTRIES: usize = 1024;
/// How many milliseconds the last writers of a segment have to finish once there is a newer one.
const GRACE: i64 = 10_000;
/// The file whose size is the number of dropped events.
pub const DROPPED: &str = "dropped";
/// The size from which that file is begun anew.
const MUCH_DROPPED: u64 = 512 * 1024;
/// The size that no listener lets it exceed.
const MOST_DROPPED: u64 = 1024 * 1024;
/// How many digits the name of a segment has.
const DIGITS: usize = 16;

pub fn segment_name(number: u64) -> String {
    format!("{number:0DIGITS$}")
}

/// The number of a segment with this name; `None` if the file is no segment.
pub fn segment_number(name: &str) -> Option<u64> {
    let is_segment = name.len() == DIGITS && name.bytes().all(|byte| byte.is_ascii_digit());
    is_segment.then(|| name.parse().ok()).flatten()
}

/// How many events an environment may cause now.
pub fn allowed_events(state: &SpoolState, now: Timestamp) -> usize {
    usize::try_from(state.allowance.at(now).left).unwrap_or(0)
}

/// How many lines are read where so many events are allowed: one is left for what was dropped.
pub fn most_lines(allowed: usize) -> usize {
    allowed.saturating_sub(1).min(MOST_LINES)
}

#[derive(Debug, Default)]
pub struct Found {
    /// Up to where it was read.
    pub to: SpoolPosition,
    /// What the environment says.
    pub claims: Vec<Claim>,
    /// How many events it dropped, or wrote so that they cannot be read.
    pub dropped: u64,
}

/// How reading continues after a segment.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// With the next segment: this one is complete and was read.
    Segment,
    /// Later, with what follows in this one.
    Later,
}

impl Found {
    /// Nothing yet, from this position on.
    pub fn from(position: SpoolPosition) -> Self {
        Self { to: position, ..Self::default() }
    }

    pub fn has_events(&self) -> bool {
        !self.claims.is_empty() || self.dropped > 0
    }

    /// What is to be stored of it; `None` if nothing is new since that position.
    pub fn batch(self, from: SpoolPosition) -> Option<SpoolBatch> {
        let is_new = self.to != from || self.has_events();
        let Self { to, claims, dropped } = self;
        is_new.then_some(SpoolBatch { from, to, claims, dropped })
    }

    /// Notes how many events were dropped since the last time, given the size of [`DROPPED`]; returns whether that file is to
    /// be begun anew instead, because it was read and is long.
    pub fn count_dropped(&mut self, size: u64) -> bool {
        let (count, known) = (size.min(MOST_DROPPED), self.to.dropped);
        if count == known && count >= MUCH_DROPPED {
            return true;
        }
        // It was begun anew if it is shorter.
        self.dropped += if count < known { count } else { count - known };
        self.to.dropped = count;
        false
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Segment {
    pub number: u64,
    /// Its length in bytes.
    pub length: u64,
    /// Whether nothing is appended to it any more.
    pub is_complete: bool,
}

impl Segment {
    /// A segment that was last changed at this time; `newest` is the number of the newest one.
    pub fn new(number: u64, length: u64, changed: Timestamp, newest: u64, now: Timestamp) -> Self {
        // A time to come was set by somebody.
        let is_settled = !(0..GRACE).contains(&now.millis().saturating_sub(changed.millis()));
        Self { number, length, is_complete: number < newest && is_settled }
    }

    /// Reads at most so many lines of it from an offset on; `bytes` reads a part of it, or less of that part.
    pub fn read<E>(
        &self,
        offset: u64,
        most: usize,
        found: &mut Found,
        bytes: impl FnOnce(Range<u64>) -> Result<Vec<u8>, E>,
    ) -> Result<Next, E> {
        // It was begun anew if it is shorter.
        let offset = if self.length < offset { 0 } else { offset };
        if offset == self.length {
            return Ok(if self.is_complete { Next::Segment } else { Next::Later });
        }
        if offset >= MOST_SEGMENT {
            return Ok(self.pass_over(self.length, found));
        }
        let bytes = bytes(offset..offset + CHUNK.min(self.length - offset))?;
        let length = bytes.len();
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: i64 = 4_000_000_000_000;

    fn segment(number: u64, text: &[u8], is_complete: bool) -> Segment {
        Segment { number, length: text.len() as u64, is_complete }
    }

    fn read(segment: Segment, text: &[u8], offset: u64, most: usize, found: &mut Found) -> Next {
        let part = |part: Range<u64>| {
            let at = |offset: u64| usize::try_from(offset).unwrap();
            Ok::<_, std::convert::Infallible>(text[at(part.start)..at(part.end)].to_vec())
        };
        segment.read(offset, most, found, part).unwrap()
    }

    fn line(run: &str) -> String {
        format!("{{\"event\":\"dag_run.failed\",\"dag_id\":\"daily\",\"run_id\":\"{run}\"}}\n")
    }

    #[test]
    fn whole_lines_are_read_up_to_what_is_allowed() {
        let text = format!("{}rubbish\n{}{{", line("a"), line("b"));
        let text = text.as_bytes();
        let mut found = Found::from(SpoolPosition::default());
        assert_eq!(read(segment(1, text, false), text, 0, 1, &mut found), Next::Later);
        assert_eq!((found.claims.len(), found.dropped), (1, 1));
        let mut rest = Found::from(found.to);
        read(segment(1, text, false), text, found.to.read_bytes, 5, &mut rest);
        assert_eq!((rest.claims.len(), rest.dropped, rest.to.read_bytes), (1, 0, text.len() as u64 - 1));
        let position = rest.to;
        let mut nothing = Found::from(position);
        read(segment(1, text, false), text, position.read_bytes, 5, &mut nothing);
        assert!(
            !nothing.has_events() && nothing.batch(position).is_none(),
            "half a line waits for its other half"
        );
        let mut last = Found::from(position);
        read(segment(1, text, true), text, position.read_bytes, 5, &mut last);
        assert_eq!(last.batch(position).unwrap().dropped, 1, "nobody will write its other half");
        let end = text.len() as u64;
        assert_eq!(read(segment(1, text, true), text, end, 5, &mut Found::default()), Next::Segment);
    }

    #[test]
    fn segments_are_complete_once_there_is_a_newer_one_and_some_time_has_passed() {
        let is_complete = |number: u64, changed: i64| {
            let (changed, now) = (Timestamp::from_millis(changed), Timestamp::from_millis(NOW));
            Segment::new(number, 0, changed, 2, now).is_complete
        };
        assert!(is_complete(1, NOW - GRACE) && !is_complete(1, NOW - GRACE + 1));
        assert!(is_complete(1, NOW + 1), "a time to come was set by somebody");
        assert!(!is_complete(2, 0));
    }

    #[test]
    fn segments_are_told_by_their_names() {
        assert_eq!(segment_name(7), "0000000000000007");
        assert_eq!(segment_number(&segment_name(7)), Some(7));
        for other in ["7", "dropped", "00000000000000007", "000000000000000x", "+000000000000007"] {
            assert_eq!(segment_number(other), None, "{other}");
        }
    }
}
