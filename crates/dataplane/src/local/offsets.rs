//! How far each file of logs was read, so that after any end nothing is read twice and nothing is left out.
//!
//! A journal: sixteen bytes for each step, the file and the offset. It is written anew when it is opened.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::Path;

use aws_lc_rs::digest::{SHA256, digest};

use super::layout::write_whole;

const RECORD: usize = 16;

/// The offsets of an environment's files.
pub(super) struct Offsets {
    journal: File,
    known: HashMap<u64, u64>,
}

impl Offsets {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let number = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().unwrap_or_default());
        // A torn record at the end was never acted upon.
        let records = bytes.chunks_exact(RECORD).map(|record| (number(&record[..8]), number(&record[8..])));
        let known: HashMap<u64, u64> = records.collect();
        let mut whole = Vec::with_capacity(known.len() * RECORD);
        known.iter().for_each(|(file, offset)| whole.extend(record(*file, *offset)));
        write_whole(path, &whole, 0o600)?;
        Ok(Self { journal: OpenOptions::new().append(true).open(path)?, known })
    }

    /// How far a file was read.
    pub(super) fn of(&self, file: u64) -> u64 {
        self.known.get(&file).copied().unwrap_or(0)
    }

    /// Remembers how far files were read.
    pub(super) fn advance(&mut self, steps: &[(u64, u64)]) -> io::Result<()> {
        let bytes: Vec<u8> = steps.iter().flat_map(|(file, offset)| record(*file, *offset)).collect();
        self.journal.write_all(&bytes)?;
        self.known.extend(steps.iter().copied());
        Ok(())
    }
}

fn record(file: u64, offset: u64) -> [u8; RECORD] {
    let mut record = [0; RECORD];
    record[..8].copy_from_slice(&file.to_le_bytes());
    record[8..].copy_from_slice(&offset.to_le_bytes());
    record
}

/// A file by its path below the environment's logs.
pub(super) fn key(path: &Path) -> u64 {
    let hash = digest(&SHA256, path.as_os_str().as_encoded_bytes());
    u64::from_le_bytes(hash.as_ref()[..8].try_into().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_survive_an_end_in_the_middle_of_writing() {
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
}
