//! Archives, checked while they arrive: gzip outside, tar inside.
//!
//! Bytes are pushed in as they come, in pieces of any size, and nothing is kept of them but what the next ones are
//! judged by. Whoever unpacks the archive later reads it with another program, so whatever two programs could read
//! differently is refused, not guessed.

mod header;
mod paths;
mod pax;
mod tar;
#[cfg(test)]
mod tests;
mod tree;

use std::io::Write as _;

use flate2::write::MultiGzDecoder;

use crate::error::Refused;
use crate::limits::Limits;
use tar::Tar;

const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// What an archive that passed holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    /// Bytes as they were sent.
    pub bytes: u64,
    /// Bytes once they are unpacked.
    pub unpacked: u64,
    /// Files, directories and links.
    pub entries: u64,
}

/// Judges an archive while it arrives.
pub struct Checker {
    gzip: MultiGzDecoder<Tar>,
    begins: Vec<u8>,
    bytes: u64,
    limits: Limits,
}

impl Checker {
    /// Nothing has arrived yet.
    pub fn new(limits: Limits) -> Self {
        let gzip = MultiGzDecoder::new(Tar::new(limits));
        Self { gzip, begins: Vec::with_capacity(MAGIC.len()), bytes: 0, limits }
    }

    /// Takes the next bytes. After a refusal there is nothing more to ask.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Refused> {
        self.bytes += bytes.len() as u64;
        if self.bytes > self.limits.bytes {
            return Err(Refused::TooLarge(self.limits.bytes));
        }
        let missing = MAGIC.len() - self.begins.len();
        self.begins.extend(bytes.iter().take(missing));
        if !MAGIC.starts_with(&self.begins) {
            return Err(Refused::NotGzip);
        }
        self.gzip.write_all(bytes).map_err(|_| self.reason())
    }

    /// Judges the whole.
    pub fn finish(mut self) -> Result<Contents, Refused> {
        if self.begins.len() < MAGIC.len() {
            return Err(Refused::NotGzip);
        }
        self.gzip.try_finish().map_err(|_| self.reason())?;
        let tar = self.gzip.get_mut();
        tar.finish()?;
        // Judged by the whole: which part of it compresses well does not matter.
        let most = self.limits.unpacked_of(self.bytes);
        if tar.bytes() > most {
            return Err(Refused::UnpacksTooMuch { bytes: self.bytes, most });
        }
        Ok(Contents { bytes: self.bytes, unpacked: tar.bytes(), entries: tar.entries() })
    }

    /// Why writing failed: the tar inside says so itself, all else is the gzip around it.
    fn reason(&mut self) -> Refused {
        self.gzip.get_mut().take_refusal().unwrap_or(Refused::BrokenGzip)
    }
}
