//! Frames: what one write adds to a file.
//!
//! A frame carries its length and a checksum in front and its length again behind, so that a file can be read from its
//! end, and a frame that was cut off in the middle is told from a whole one. It also says how late the latest line
//! before it in the file is: lines are nearly in order, and this is what lets a search stop early and still be exact.

use podium_api::Timestamp;
use podium_api::enums::LogSource;
use xxhash_rust::xxh3::xxh3_64;

use crate::{Entry, Line};

/// Ends every frame.
pub(crate) const END: [u8; 4] = *b"lgE1";
const START: [u8; 4] = *b"lgS1";
/// Start mark, length, checksum.
const HEAD: usize = 4 + 4 + 8;
/// Length, end mark.
const TAIL: usize = 4 + 4;
/// How late the latest line before it is, and how many lines there are.
const PREFACE: usize = 8 + 4;
/// Time, source, length.
const LINE: usize = 8 + 1 + 4;

/// The longest text of one line; a longer one is kept as several.
pub(crate) const MAX_TEXT: usize = 64 * 1024;
/// A frame is closed once it is as long as this.
const FULL: usize = 256 * 1024;
/// No frame is longer.
pub(crate) const MAX_FRAME: usize = FULL + MAX_TEXT + HEAD + TAIL + PREFACE + LINE;

/// Where a source stands in a frame; the order never changes.
const SOURCES: [LogSource; 6] = [
    LogSource::Scheduler,
    LogSource::Webserver,
    LogSource::Triggerer,
    LogSource::Worker,
    LogSource::DagProcessor,
    LogSource::ApiServer,
];

/// A frame that is being filled.
pub(crate) struct Builder {
    bytes: Vec<u8>,
    count: u32,
    latest_before: i64,
    latest: i64,
}

impl Builder {
    /// An empty frame, after lines of which the latest is so late.
    pub(crate) fn new(latest_before: i64) -> Self {
        Self { bytes: vec![0; HEAD + PREFACE], count: 0, latest_before, latest: latest_before }
    }

    /// Adds a line whose text is no longer than [`MAX_TEXT`].
    fn push(&mut self, timestamp: Timestamp, source: LogSource, text: &str) {
        let source = SOURCES.iter().position(|known| *known == source).unwrap_or_default();
        self.bytes.extend_from_slice(&timestamp.millis().to_le_bytes());
        self.bytes.push(source as u8);
        self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
        self.bytes.extend_from_slice(text.as_bytes());
        self.count += 1;
        self.latest = self.latest.max(timestamp.millis());
    }

    fn finish(mut self) -> (Vec<u8>, i64) {
        let body = (self.bytes.len() - HEAD) as u32;
        self.bytes[HEAD..HEAD + 8].copy_from_slice(&self.latest_before.to_le_bytes());
        self.bytes[HEAD + 8..HEAD + PREFACE].copy_from_slice(&self.count.to_le_bytes());
        let sum = xxh3_64(&self.bytes[HEAD..]);
        self.bytes[..4].copy_from_slice(&START);
        self.bytes[4..8].copy_from_slice(&body.to_le_bytes());
        self.bytes[8..HEAD].copy_from_slice(&sum.to_le_bytes());
        self.bytes.extend_from_slice(&body.to_le_bytes());
        self.bytes.extend_from_slice(&END);
        (self.bytes, self.latest)
    }
}

/// Puts lines into frames; says how late the latest line is after each.
pub(crate) fn frames(lines: &[Line], mut latest: i64) -> Vec<(Vec<u8>, i64)> {
    let mut done = Vec::new();
    let mut builder = Builder::new(latest);
    for line in lines {
        for text in pieces(&line.text) {
            builder.push(line.timestamp, line.source, text);
            if builder.bytes.len() >= FULL {
                let full = builder.finish();
                latest = full.1;
                done.push(full);
                builder = Builder::new(latest);
            }
        }
    }
    if builder.count > 0 {
        done.push(builder.finish());
    }
    done
}

/// A text in pieces that are not too long; an empty one is one piece.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let (piece, more) = text.split_at(text.floor_char_boundary(MAX_TEXT));
        rest = (!more.is_empty()).then_some(more);
        Some(piece)
    })
}

/// A whole frame.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    /// How late the latest line before it in the file is.
    pub(crate) latest_before: i64,
    count: u32,
    lines: &'a [u8],
}

/// How long the frame is whose end `tail` shows; `None` where nothing ends there.
pub(crate) fn length(tail: &[u8]) -> Option<usize> {
    let tail = tail.get(tail.len().checked_sub(TAIL)?..)?;
    let body = number(&tail[..4])? as usize;
    let whole = HEAD + body + TAIL;
    (tail[4..] == END && body >= PREFACE && whole <= MAX_FRAME).then_some(whole)
}

/// How many bytes [`length`] needs to see.
pub(crate) const LENGTH_BYTES: usize = TAIL;

impl<'a> Frame<'a> {
    /// Reads exactly one frame; `None` where it is not whole.
    pub(crate) fn read(bytes: &'a [u8]) -> Option<Self> {
        let body = bytes.get(HEAD..bytes.len().checked_sub(TAIL)?)?;
        let whole = bytes[..4] == START
            && number(&bytes[4..8])? as usize == body.len()
            && length(bytes)? == bytes.len()
            && u64::from_le_bytes(bytes[8..HEAD].try_into().ok()?) == xxh3_64(body);
        if whole { Self::of_whole(bytes) } else { None }
    }

    /// Reads bytes that were a frame a moment ago.
    pub(crate) fn of_whole(bytes: &'a [u8]) -> Option<Self> {
        let body = bytes.get(HEAD..bytes.len().checked_sub(TAIL)?)?;
        let (preface, lines) = body.split_at_checked(PREFACE)?;
        let latest_before = i64::from_le_bytes(preface[..8].try_into().ok()?);
        Some(Self { latest_before, count: number(&preface[8..])?, lines })
    }

    /// How late the latest line of the file is once this frame is in it.
    pub(crate) fn latest(&self) -> i64 {
        self.lines().map(|line| line.timestamp.millis()).fold(self.latest_before, i64::max)
    }

    /// Its lines, in the order in which they were written.
    pub(crate) fn lines(&self) -> impl Iterator<Item = Seen<'a>> {
        let mut rest = self.lines;
        (0..self.count).map_while(move |_| {
            let (head, after) = rest.split_at_checked(LINE)?;
            let (text, after) = after.split_at_checked(number(&head[9..])? as usize)?;
            rest = after;
            let timestamp = Timestamp::from_millis(i64::from_le_bytes(head[..8].try_into().ok()?));
            let source = *SOURCES.get(usize::from(head[8]))?;
            Some(Seen { timestamp, source, text: std::str::from_utf8(text).ok()? })
        })
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.try_into().ok().map(u32::from_le_bytes)
}

/// A line inside a frame.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    pub(crate) timestamp: Timestamp,
    pub(crate) source: LogSource,
    pub(crate) text: &'a str,
}

impl From<Seen<'_>> for Entry {
    fn from(seen: Seen<'_>) -> Self {
        Self { timestamp: seen.timestamp, source: seen.source, text: seen.text.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use podium_api::Id;

    use super::*;

    fn line(at: i64, source: LogSource, text: &str) -> Line {
        let timestamp = Timestamp::from_millis(at);
        Line { deployment_id: Id::from_parts(0, 0, 0), source, timestamp, text: text.to_owned() }
    }

    #[test]
    fn a_frame_gives_back_what_was_put_in() {
        let lines: Vec<Line> =
            LogSource::ALL.iter().map(|source| line(7, *source, source.as_str())).collect();
        let made = frames(&lines, i64::MIN);
        let [(bytes, latest)] = made.as_slice() else { panic!("one frame") };
        let frame = Frame::read(bytes).unwrap();
        assert_eq!((*latest, frame.latest(), frame.latest_before), (7, 7, i64::MIN));
        let read: Vec<_> = frame.lines().map(|seen| (seen.source, seen.text.to_owned())).collect();
        let put: Vec<_> = lines.into_iter().map(|line| (line.source, line.text)).collect();
        assert_eq!(read, put);
    }

    #[test]
    fn a_frame_that_is_cut_or_damaged_is_none() {
        let (bytes, _) = frames(&[line(1, LogSource::Worker, "hello")], 0).remove(0);
        assert!(Frame::read(&bytes).is_some());
        for length in 0..bytes.len() {
            assert!(Frame::read(&bytes[..length]).is_none(), "cut at {length}");
        }
        for index in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[index] ^= 1;
            assert!(Frame::read(&damaged).is_none(), "damaged at {index}");
        }
    }

    #[test]
    fn long_texts_become_several_lines_and_many_lines_several_frames() {
        let text = "é".repeat(MAX_TEXT);
        let made = frames(&[line(1, LogSource::Worker, &text), line(2, LogSource::Worker, "")], 0);
        assert_eq!(made.len(), 1);
        let many: Vec<Line> = (0..8).map(|at| line(at, LogSource::Worker, &text)).collect();
        let made = frames(&many, 0);
        assert!(made.len() > 3);
        assert!(made.iter().all(|(bytes, _)| bytes.len() <= MAX_FRAME));
        let length = |(bytes, _): &(Vec<u8>, i64)| -> usize {
            Frame::read(bytes).unwrap().lines().map(|seen| seen.text.len()).sum()
        };
        assert_eq!(made.iter().map(length).sum::<usize>(), 8 * text.len());
        assert_eq!(made.last().unwrap().1, 7);
    }
}
