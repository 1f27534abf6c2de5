//! Archives to upload.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;

const BLOCK: usize = 512;

/// A tar archive of these files, compressed with gzip.
pub fn archive(files: &[(&str, &[u8])]) -> Vec<u8> {
    gzip(&tar(files))
}

pub fn tar(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut tar = Vec::new();
    for (name, content) in files {
        tar.extend(header(name, content.len()));
        tar.extend_from_slice(content);
        tar.resize(tar.len().next_multiple_of(BLOCK), 0);
    }
    tar.extend([0; 2 * BLOCK]);
    tar
}

/// Bytes, compressed with gzip.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).expect("memory can be written")
}

fn header(name: &str, size: usize) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[148..156].fill(b' ');
    block[156] = b'0';
    block[257..265].copy_from_slice(b"ustar\x0000");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    block
}
