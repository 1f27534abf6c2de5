//! The files of an archive with their hashes, taken while it is read; contents are never kept.

use std::collections::BTreeMap;

use aws_lc_rs::digest;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedFile {
    /// Its path, without `.` and empty parts.
    pub path: String,
    pub size: u64,
    /// The SHA-256 of its content.
    pub sha256: [u8; 32],
}

/// The first files of an archive in the order of their paths, and how many there are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listed {
    pub files: Vec<ArchivedFile>,
    pub total: u64,
}

#[derive(Default)]
pub(super) struct Listing {
    files: BTreeMap<String, (u64, [u8; 32])>,
    reading: Option<Reading>,
}

struct Reading {
    path: String,
    size: u64,
    left: u64,
    sha256: digest::Context,
}

impl Listing {
    /// A file begins, whose content comes next.
    pub(super) fn begin(&mut self, path: String, size: u64) {
        let sha256 = digest::Context::new(&digest::SHA256);
        self.reading = Some(Reading { path, size, left: size, sha256 });
        self.content(&[]);
    }

    /// Takes bytes of the current file; what fills its last block is passed over.
    pub(super) fn content(&mut self, bytes: &[u8]) {
        let Some(mut reading) = self.reading.take() else { return };
        let taken = usize::try_from(reading.left).unwrap_or(usize::MAX).min(bytes.len());
        reading.sha256.update(&bytes[..taken]);
        reading.left -= taken as u64;
        if reading.left > 0 {
            self.reading = Some(reading);
            return;
        }
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(reading.sha256.finish().as_ref());
        // The last one counts.
        self.files.insert(reading.path, (reading.size, sha256));
    }

    /// A second name of an earlier file.
    pub(super) fn link(&mut self, path: String, target: &str) {
        if let Some(known) = self.files.get(target).copied() {
            self.files.insert(path, known);
        }
    }

    pub(super) fn finish(self, most: usize) -> Listed {
        let total = self.files.len() as u64;
        let shown = self.files.into_iter().take(most);
        let files = shown.map(|(path, (size, sha256))| ArchivedFile { path, size, sha256 }).collect();
        Listed { files, total }
    }
}
