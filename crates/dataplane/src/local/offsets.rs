//! Offsets up to which each log file was read. Nothing is skipped after a crash; lines that were stored just before a
//! crash of the machine, or while this journal could not be written, may be read twice.
//!
//! A journal with sixteen bytes for each step, the file and the offset. It is rewritten when it is opened, and after a
//! failed write, whose effect is unknown.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};

use super::layout::{missing_is_none, write_whole};
use crate::blocking::assert_may_block;

const RECORD: usize = 16;

/// The offsets of an environment's files.
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
        let bytes: Vec<u8> = steps.iter().flat_map(|(file, offset)| record(*file, *offset)).collect();
        journal.write_all(&bytes).inspect_err(|_| self.journal = None)
    }

    /// Writes everything that is known to a new journal.
    fn rewrite(&mut self) -> io::Result<()> {
        let whole: Vec<u8> = self.known.iter().flat_map(|(file, offset)| record(*file, *offset)).collect();
        write_whole(&self.path, &whole, 0o600)?;
        self.journal = Some(OpenOptions::new().append(true).open(&self.path)?);
        Ok(())
    }
}

fn record(file: u64, offset: u64) -> [u8; RECORD] {
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
