//! Checks archives while they arrive: tar compressed with gzip.
//!
//! Bytes are pushed as they arrive, in pieces of any size; only the state needed to check the following ones is kept.
//! Another program unpacks the archive later, so anything that two programs could interpret differently is refused.

mod header;
mod listing;
mod tar;
#[cfg(test)]
mod tests;
mod tree;

pub use listing::{ArchivedFile, Listed};

use std::io::Write as _;

use flate2::write::MultiGzDecoder;
use listing::Listing;
use tar::Tar;

use crate::error::Refused;

const MAGIC: [u8; 2] = [0x1f, 0x8b];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contents {
    pub bytes: u64,
    pub unpacked: u64,
    /// Files, directories and links.
    pub entries: u64,
}

/// Checks an archive while it arrives.
pub struct Checker {
    gzip: MultiGzDecoder<Tar>,
    begins: Vec<u8>,
    bytes: u64,
    limits: Limits,
}

impl Checker {
    pub fn new(limits: Limits) -> Self {
        Self::with(limits, None)
    }

    /// Starts a check that also lists the files.
    pub fn listing(limits: Limits) -> Self {
        Self::with(limits, Some(Listing::default()))
    }

    fn with(limits: Limits, listing: Option<Listing>) -> Self {
        let gzip = MultiGzDecoder::new(Tar::new(limits, listing));
        Self { gzip, begins: Vec::with_capacity(MAGIC.len()), bytes: 0, limits }
    }

    /// Checks the next bytes. After a refusal it must not be used any more.
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

    pub fn finish(mut self) -> Result<Contents, Refused> {
        self.close()
    }

    /// Finishes the check, and lists at most this many files.
    pub fn finish_listing(mut self, most: usize) -> Result<Listed, Refused> {
        self.close()?;
        Ok(self.gzip.get_mut().listing.take().unwrap_or_default().finish(most))
    }

    fn close(&mut self) -> Result<Contents, Refused> {
        if self.begins.len() < MAGIC.len() {
            return Err(Refused::NotGzip);
        }
        self.gzip.try_finish().map_err(|_| self.reason())?;
        let tar = self.gzip.get_mut();
        tar.finish()?;
        // Checked at the end: which part compresses well does not matter.
        let most = self.limits.unpacked_of(self.bytes);
        if tar.bytes > most {
            return Err(Refused::UnpacksTooMuch { bytes: self.bytes, most });
        }
        Ok(Contents { bytes: self.bytes, unpacked: tar.bytes, entries: tar.entries })
    }

    /// Why writing failed: the tar's own refusal, otherwise a gzip error.
    fn reason(&mut self) -> Refused {
        self.gzip.get_mut().refusal.take().unwrap_or(Refused::BrokenGzip)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub bytes: u64,
    /// Bytes when unpacked: a small archive can contain a disk full of zeros.
    pub unpacked: u64,
    /// Unpacked bytes per sent byte, beyond `free`.
    pub ratio: u64,
    /// Bytes that any archive may unpack to, however small it is.
    pub free: u64,
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes of one path.
    pub path: usize,
}

impl Limits {
    /// The most that an archive of so many bytes may unpack to.
    pub fn unpacked_of(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.ratio).saturating_add(self.free).min(self.unpacked)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 1 << 30, unpacked: 4 << 30, ratio: 200, free: 32 << 20, entries: 100_000, path: 1024 }
    }
}
