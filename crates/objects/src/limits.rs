//! How much an archive may ask of the machine that checks and unpacks it.

/// How much an archive may ask of the machine that checks and unpacks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes as they are sent.
    pub bytes: u64,
    /// Bytes once they are unpacked: a small archive can hold a disk full of zeros.
    pub unpacked: u64,
    /// Files, directories and links.
    pub entries: u64,
    /// Bytes of one path.
    pub path: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { bytes: 1 << 30, unpacked: 4 << 30, entries: 100_000, path: 1024 }
    }
}
