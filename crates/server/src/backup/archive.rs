//! The backup file: a compressed tar that starts with a manifest and ends with the checksums of everything.
//!
//! A truncated file has no end, and a modified one has wrong checksums: both are refused.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use aws_lc_rs::digest::{Context, SHA256};
use podium_api::Timestamp;
use serde::{Deserialize, Serialize};
use tar::{EntryType, Header};

use crate::failure::Failure;

/// The first entry: the manifest.
pub(crate) const MANIFEST: &str = "manifest.json";
/// The last entry: the checksums of all others.
pub(crate) const CHECKSUMS: &str = "checksums.json";
const FORMAT: &str = "podium-backup";
/// The newest supported format version.
pub(crate) const VERSION: u32 = 1;
const LEVEL: i32 = 3;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Manifest {
    pub(crate) format: String,
    pub(crate) version: u32,
    /// The version of the program that wrote it.
    pub(crate) podium: String,
    pub(crate) taken_at: String,
}

#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checksums {
    pub(crate) files: BTreeMap<String, Checked>,
}

/// The expected checksum and size of a file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Checked {
    pub(crate) sha256: String,
    pub(crate) size: u64,
}

impl Manifest {
    pub(crate) fn new(now: Timestamp) -> Self {
        Self {
            format: FORMAT.into(),
            version: VERSION,
            podium: env!("CARGO_PKG_VERSION").into(),
            taken_at: now.to_string(),
        }
    }

    pub(crate) fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec_pretty(self).unwrap_or_default()
    }

    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Failure> {
        let manifest: Option<Self> = serde_json::from_slice(bytes).ok();
        match manifest.filter(|manifest| manifest.format == FORMAT) {
            None => Err("it is not a Podium backup".into()),
            Some(manifest) if manifest.version > VERSION => Err(format!(
                "it was made by a newer version, {}: restore it with that version",
                manifest.podium
            )
            .into()),
            Some(manifest) => Ok(manifest),
        }
    }
}

impl Checksums {
    pub(crate) fn bytes(&self) -> u64 {
        self.files.values().map(|checked| checked.size).sum()
    }

    pub(crate) fn add(&mut self, path: &Path, sha256: String, size: u64) {
        self.files.insert(name(path), Checked { sha256, size });
    }
}

/// A path as text, with other bytes escaped.
pub(crate) fn name(path: &Path) -> String {
    path.as_os_str().as_bytes().escape_ascii().to_string()
}

pub(crate) struct Writer {
    tar: tar::Builder<zstd::Encoder<'static, File>>,
    checksums: Checksums,
}

impl Writer {
    /// Creates a new file that only its owner can read.
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let _ = std::fs::remove_file(path);
        let file = File::options().write(true).create_new(true).mode(0o600).open(path)?;
        let mut encoder = zstd::Encoder::new(file, LEVEL)?;
        encoder.include_checksum(true)?;
        Ok(Self { tar: tar::Builder::new(encoder), checksums: Checksums::default() })
    }

    /// Adds bytes under a name.
    pub(crate) fn bytes(&mut self, path: impl AsRef<Path>, bytes: &[u8], mode: u32) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(mode);
        self.data(header, path.as_ref(), bytes, bytes.len() as u64)
    }

    /// Adds a file of ours under a name.
    pub(crate) fn file(&mut self, from: &Path, path: &Path) -> io::Result<()> {
        self.open_file(File::open(from)?, path)
    }

    /// Adds an open file under a name, as long as it is now.
    pub(crate) fn open_file(&mut self, file: File, path: &Path) -> io::Result<()> {
        let metadata = file.metadata()?;
        let size = metadata.len();
        let mut header = Header::new_gnu();
        header.set_mode(metadata.mode() & 0o777);
        header.set_mtime(u64::try_from(metadata.mtime()).unwrap_or(0));
        // A file that became shorter is padded, because its size comes before its bytes.
        self.data(header, path, file.chain(io::repeat(0)).take(size), size)
    }

    pub(crate) fn directory(&mut self, path: &Path, mode: u32) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Directory);
        header.set_mode(mode & 0o777);
        header.set_size(0);
        self.tar.append_data(&mut header, path, io::empty())?;
        self.checksums.add(path, "directory".into(), 0);
        Ok(())
    }

    /// Adds a symbolic link, as it is.
    pub(crate) fn link(&mut self, path: &Path, target: &OsStr) -> io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_entry_type(EntryType::Symlink);
        header.set_size(0);
        header.set_mode(0o777);
        // The tar library normalizes targets: `a//b` becomes `a/b`. A short one is written literally.
        let normal: std::path::PathBuf = Path::new(target).components().collect();
        let target = if header.set_link_name_literal(target.as_bytes()).is_ok() {
            self.tar.append_data(&mut header, path, io::empty())?;
            target
        } else {
            self.tar.append_link(&mut header, path, &normal)?;
            normal.as_os_str()
        };
        self.checksums.add(path, format!("link {}", target.as_bytes().escape_ascii()), 0);
        Ok(())
    }

    fn data(&mut self, mut header: Header, path: &Path, data: impl Read, size: u64) -> io::Result<()> {
        header.set_entry_type(EntryType::Regular);
        header.set_size(size);
        let mut hashing = Hashing::new(data);
        self.tar.append_data(&mut header, path, &mut hashing)?;
        let sha256 = hashing.finish();
        self.checksums.add(path, sha256, size);
        Ok(())
    }

    /// Whether there is an entry with this name.
    pub(crate) fn has(&self, path: &Path) -> bool {
        self.checksums.files.contains_key(&name(path))
    }

    /// Writes the checksums and syncs the file.
    pub(crate) fn finish(mut self) -> io::Result<Checksums> {
        let bytes = serde_json::to_vec(&self.checksums)?;
        let mut header = Header::new_gnu();
        header.set_mode(0o600);
        header.set_size(bytes.len() as u64);
        self.tar.append_data(&mut header, CHECKSUMS, bytes.as_slice())?;
        let mut file = self.tar.into_inner()?.finish()?;
        file.flush()?;
        file.sync_all()?;
        Ok(self.checksums)
    }
}

/// Passes bytes through and computes their checksum.
pub(crate) struct Hashing<R> {
    inner: R,
    context: Context,
}

impl<R: Read> Hashing<R> {
    pub(crate) fn new(inner: R) -> Self {
        Self { inner, context: Context::new(&SHA256) }
    }

    pub(crate) fn finish(self) -> String {
        podium_api::hex(self.context.finish().as_ref())
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.context.update(&buffer[..read]);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_restored_as_their_checksums_say() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("backup");
        let long = format!("{}//end", "a/".repeat(80));
        let mut writer = Writer::create(&path).unwrap();
        for (number, target) in ["/", "a//b", "./a", "a/./b", "../x", long.as_str()].iter().enumerate() {
            writer.link(Path::new(&format!("link-{number}")), OsStr::new(target)).unwrap();
        }
        let checksums = writer.finish().unwrap();
        let mut archive = tar::Archive::new(zstd::Decoder::new(File::open(&path).unwrap()).unwrap());
        let mut links = 0;
        for entry in archive.entries().unwrap().map(Result::unwrap) {
            let name = entry.path().unwrap().to_string_lossy().into_owned();
            let Some(target) = entry.link_name().unwrap() else { continue };
            let found = format!("link {}", target.as_os_str().as_bytes().escape_ascii());
            assert!(
                serde_json::to_string(&checksums.files[&name])
                    .unwrap()
                    .contains(&*serde_json::to_string(&found).unwrap()),
                "{name}: {found}"
            );
            links += 1;
        }
        assert_eq!(links, 6);
    }
}
