//! Limits of archives.

/// Limits of archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes as they are sent.
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
