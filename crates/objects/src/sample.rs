//! Archives for tests, honest and hostile: every field can be set to anything.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

const BLOCK: usize = 512;

/// A tar archive that is being put together.
#[derive(Clone, Default)]
pub(crate) struct Archive(Vec<u8>);

impl Archive {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn file(self, name: &str, content: &[u8]) -> Self {
        self.entry(b'0', name.as_bytes(), b"", content)
    }

    pub(crate) fn directory(self, name: &str) -> Self {
        self.entry(b'5', name.as_bytes(), b"", b"")
    }

    pub(crate) fn symlink(self, name: &str, target: &str) -> Self {
        self.entry(b'2', name.as_bytes(), target.as_bytes(), b"")
    }

    pub(crate) fn hardlink(self, name: &str, target: &str) -> Self {
        self.entry(b'1', name.as_bytes(), target.as_bytes(), b"")
    }

    pub(crate) fn pax(self, records: &[(&str, &str)]) -> Self {
        let content: String = records.iter().map(|(key, value)| record(key, value)).collect();
        self.entry(b'x', b"PaxHeaders/x", b"", content.as_bytes())
    }

    /// An entry of any kind, its name and link cut off where the header ends.
    pub(crate) fn entry(self, kind: u8, name: &[u8], link: &[u8], content: &[u8]) -> Self {
        self.raw(&header(kind, name, link, content.len() as u64)).raw(&padded(content))
    }

    pub(crate) fn raw(mut self, bytes: &[u8]) -> Self {
        self.0.extend_from_slice(bytes);
        self
    }

    pub(crate) fn tar(self) -> Vec<u8> {
        self.raw(&[0; 2 * BLOCK]).0
    }

    /// The same, compressed.
    pub(crate) fn gz(self) -> Vec<u8> {
        gzip(&self.tar())
    }
}

pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn header(kind: u8, name: &[u8], link: &[u8], size: u64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let put = |block: &mut [u8; BLOCK], at: usize, most: usize, bytes: &[u8]| {
        let length = bytes.len().min(most);
        block[at..at + length].copy_from_slice(&bytes[..length]);
    };
    put(&mut block, 0, 100, name);
    put(&mut block, 100, 8, b"0000644\0");
    put(&mut block, 124, 12, format!("{size:011o}\0").as_bytes());
    put(&mut block, 156, 1, &[kind]);
    put(&mut block, 157, 100, link);
    put(&mut block, 257, 8, b"ustar\x0000");
    checksummed(block)
}

pub(crate) fn checksummed(mut block: [u8; BLOCK]) -> [u8; BLOCK] {
    block[148..156].copy_from_slice(b"        ");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

/// A record of an extended header, whose length counts itself.
pub(crate) fn record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len() + 1;
    while length.to_string().len() + rest.len() != length {
        length += 1;
    }
    format!("{length}{rest}")
}

fn padded(content: &[u8]) -> Vec<u8> {
    let mut content = content.to_vec();
    content.resize(content.len().next_multiple_of(BLOCK), 0);
    content
}

/// Bytes that do not compress.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}
