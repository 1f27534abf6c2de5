//! Reads a file from its end, frame by frame, a chunk at a time.
//!
//! Whatever is not a whole frame (a tail that was torn off by a crash, a damaged spot) is stepped over: the next whole
//! frame before it is looked for, so nothing else is lost.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use crate::frame::{END, Frame, LENGTH_BYTES, MAX_FRAME, length};

const CHUNK: u64 = 256 * 1024;

/// A file that is read from its end.
pub(crate) struct Backwards<'a> {
    file: &'a File,
    /// What of the file is at hand, and where it begins.
    chunk: Vec<u8>,
    chunk_start: u64,
    /// Everything from here on has been read.
    end: u64,
}

/// Where a frame stands in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl<'a> Backwards<'a> {
    /// Begins before `end`, which may lie beyond the end of the file.
    pub(crate) fn from(file: &'a File, end: u64) -> io::Result<Self> {
        let end = end.min(file.metadata()?.len());
        Ok(Self { file, chunk: Vec::new(), chunk_start: end, end })
    }

    /// The frame before the last one that was given; the last of the file at first.
    pub(crate) fn next(&mut self) -> io::Result<Option<(Place, Frame<'_>)>> {
        let Some(place) = self.place()? else { return Ok(None) };
        self.end = place.start;
        let bytes = self.at_hand(place)?;
        Ok(Frame::of_whole(bytes).map(|frame| (place, frame)))
    }

    fn place(&mut self) -> io::Result<Option<Place>> {
        let mut end = self.end;
        let mut steps_over = false;
        while end > 0 {
            if let Some(place) = self.frame_ending_at(end)? {
                return Ok(Some(place));
            }
            if !steps_over {
                tracing::warn!(end, "a log file holds something that is not whole; it is left out");
                steps_over = true;
            }
            let Some(earlier) = self.mark_ending_before(end)? else { break };
            end = earlier;
        }
        self.end = 0;
        Ok(None)
    }

    fn frame_ending_at(&mut self, end: u64) -> io::Result<Option<Place>> {
        let Some(tail) = end.checked_sub(LENGTH_BYTES as u64) else { return Ok(None) };
        let Some(length) = length(self.at_hand(Place { start: tail, end })?) else { return Ok(None) };
        let Some(start) = end.checked_sub(length as u64) else { return Ok(None) };
        let place = Place { start, end };
        Ok(Frame::read(self.at_hand(place)?).map(|_| place))
    }

    /// Where the last end mark before `end` ends.
    fn mark_ending_before(&mut self, end: u64) -> io::Result<Option<u64>> {
        let mut end = end - 1;
        while end >= END.len() as u64 {
            let start = end.saturating_sub(CHUNK);
            let bytes = self.at_hand(Place { start, end })?;
            if let Some(found) = bytes.windows(END.len()).rposition(|window| window == END) {
                return Ok(Some(start + (found + END.len()) as u64));
            }
            if start == 0 {
                break;
            }
            // A mark may lie across the border of two chunks.
            end = start + END.len() as u64 - 1;
        }
        Ok(None)
    }

    /// These bytes of the file, together with a good part of what lies before them.
    fn at_hand(&mut self, place: Place) -> io::Result<&[u8]> {
        let chunk_end = self.chunk_start + self.chunk.len() as u64;
        if place.start < self.chunk_start || place.end > chunk_end {
            let start = place.start.min(place.end.saturating_sub(CHUNK));
            debug_assert!(place.end - start <= CHUNK.max(MAX_FRAME as u64));
            self.chunk.resize((place.end - start) as usize, 0);
            self.chunk_start = start;
            if let Err(error) = self.file.read_exact_at(&mut self.chunk, start) {
                self.chunk.clear();
                return Err(error);
            }
        }
        let from = (place.start - self.chunk_start) as usize;
        Ok(&self.chunk[from..from + (place.end - place.start) as usize])
    }
}

/// How long a file is up to its last whole frame, and how late its latest line is.
pub(crate) fn whole(file: &File) -> io::Result<(u64, i64)> {
    let mut frames = Backwards::from(file, u64::MAX)?;
    let last = frames.next()?;
    Ok(last.map_or((0, i64::MIN), |(place, frame)| (place.end, frame.latest())))
}
