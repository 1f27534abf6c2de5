//! The object store interface, and objects as files below one directory.
//!
//! The interface is blocking. An object appears atomically and never changes.
//!
//! On a disk a draft is written to a separate directory, locked by its writer, and renamed into place once it is on
//! disk. So a file under a key is always complete. Drafts of dead processes are removed at start-up; the lock
//! distinguishes them from those that another process is writing.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::key::Key;

pub type Reader = Box<dyn Read + Send>;

/// A store of objects: a disk, or an object storage service.
pub trait ObjectStore: Send + Sync + 'static {
    /// Starts a new object, which is not visible yet.
    fn draft(&self) -> io::Result<Box<dyn Draft>>;
    /// Opens an object; `None` if there is none.
    fn open(&self, key: &Key) -> io::Result<Option<Reader>>;
    /// The last key segments and the sizes of the objects directly below a key.
    fn list(&self, prefix: &Key) -> io::Result<Vec<(String, u64)>>;
    /// Deletes the object with this key and every object below it; they may be missing.
    fn delete_under(&self, prefix: &Key) -> io::Result<()>;
}

/// An object that is being written. Dropping it discards it.
pub trait Draft: Write + Send {
    /// Durably makes the object visible under its key, replacing an existing one.
    fn commit(self: Box<Self>, key: &Key) -> io::Result<()>;
}

/// No key begins with a dot, so no object is ever in here.
const DRAFTS: &str = ".drafts";

/// Objects as files below one directory.
pub struct LocalDisk {
    root: PathBuf,
    drafts: PathBuf,
    counter: AtomicU64,
}

impl LocalDisk {
    /// Opens the directory, creating it if needed, and removes unfinished drafts.
    pub fn open(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        let drafts = root.join(DRAFTS);
        fs::create_dir_all(&drafts)?;
        sweep(&drafts)?;
        Ok(Self { root, drafts, counter: AtomicU64::new(0) })
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.root.join(key.as_str())
    }

    /// A name in the directory of drafts that is probably free.
    fn unused(&self) -> PathBuf {
        let count = self.counter.fetch_add(1, Ordering::Relaxed);
        self.drafts.join(format!("{}-{count}", std::process::id()))
    }
}

impl ObjectStore for LocalDisk {
    fn draft(&self) -> io::Result<Box<dyn Draft>> {
        loop {
            let path = self.unused();
            let file = match File::create_new(&path) {
                Ok(file) => file,
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            file.lock()?;
            // Between its creation and the lock a sweep may have deleted it as abandoned.
            if file.metadata()?.nlink() > 0 {
                return Ok(Box::new(FileDraft { file, path, root: self.root.clone(), is_committed: false }));
            }
        }
    }

    fn open(&self, key: &Key) -> io::Result<Option<Reader>> {
        match if_there(File::open(self.path(key)))? {
            Some(file) if file.metadata()?.is_file() => Ok(Some(Box::new(file))),
            _ => Ok(None),
        }
    }

    fn list(&self, prefix: &Key) -> io::Result<Vec<(String, u64)>> {
        let mut found = Vec::new();
        for entry in if_there(fs::read_dir(self.path(prefix)))?.into_iter().flatten() {
            let entry = entry?;
            let Some(metadata) = if_there(entry.metadata())? else { continue };
            if let Ok(name) = entry.file_name().into_string()
                && metadata.is_file()
            {
                found.push((name, metadata.len()));
            }
        }
        Ok(found)
    }

    fn delete_under(&self, prefix: &Key) -> io::Result<()> {
        let path = self.path(prefix);
        // Renamed first, so that it disappears atomically, and swept by the next start if this process dies meanwhile.
        let away = loop {
            let away = self.unused();
            match fs::create_dir(&away) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            match fs::rename(&path, away.join("deleted")) {
                Ok(()) => break away,
                // A sweep deleted the new directory; the object still exists.
                Err(error) if error.kind() == ErrorKind::NotFound && path.exists() => {}
                Err(error) => {
                    remove(&away)?;
                    return if_there(Err(error)).map(|_: Option<()>| ());
                }
            }
        };
        if let Some(parent) = path.parent() {
            sync(parent)?;
        }
        remove(&away)
    }
}

struct FileDraft {
    file: File,
    path: PathBuf,
    root: PathBuf,
    is_committed: bool,
}

impl Write for FileDraft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Draft for FileDraft {
    fn commit(mut self: Box<Self>, key: &Key) -> io::Result<()> {
        self.file.sync_all()?;
        let target = self.root.join(key.as_str());
        let parent = target.parent().unwrap_or(&self.root);
        create_durably(parent, &self.root)?;
        fs::rename(&self.path, &target)?;
        self.is_committed = true;
        sync(parent)
    }
}

impl Drop for FileDraft {
    fn drop(&mut self) {
        if !self.is_committed
            && let Err(error) = fs::remove_file(&self.path)
        {
            tracing::warn!(%error, path = %self.path.display(), "a draft could not be removed");
        }
    }
}

/// Creates a directory below the root, syncing each level before the next.
fn create_durably(directory: &Path, root: &Path) -> io::Result<()> {
    if directory == root || directory.is_dir() {
        return Ok(());
    }
    let parent = directory.parent().unwrap_or(root);
    create_durably(parent, root)?;
    match fs::create_dir(directory) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => sync(parent),
    }
}

fn sync(directory: &Path) -> io::Result<()> {
    if_there(File::open(directory))?.map_or(Ok(()), |file| file.sync_all())
}

/// Removes abandoned drafts and the remains of deletions.
fn sweep(drafts: &Path) -> io::Result<()> {
    for entry in fs::read_dir(drafts)? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            remove(&path)?;
            continue;
        }
        let Some(file) = if_there(File::open(&path))? else { continue };
        match file.try_lock() {
            Ok(()) => remove(&path)?,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(())
}

/// Removes a file, or a directory and all below it.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    if_there(removed).map(drop)
}

/// `None` for a missing file or directory; other errors stay errors.
fn if_there<T>(found: io::Result<T>) -> io::Result<Option<T>> {
    match found {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        found => found.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    fn key(text: &str) -> Key {
        Key::parse(text).unwrap()
    }

    fn put(disk: &LocalDisk, at: &str, bytes: &[u8]) {
        let mut draft = disk.draft().unwrap();
        draft.write_all(bytes).unwrap();
        draft.commit(&key(at)).unwrap();
    }

    fn read(disk: &LocalDisk, at: &str) -> Option<String> {
        let mut text = String::new();
        disk.open(&key(at)).unwrap()?.read_to_string(&mut text).unwrap();
        Some(text)
    }

    fn drafts(directory: &Path) -> usize {
        fs::read_dir(directory.join(DRAFTS)).unwrap().count()
    }

    #[test]
    fn an_object_is_visible_once_it_is_committed() {
        let directory = tempfile::tempdir().unwrap();
        let disk = LocalDisk::open(directory.path()).unwrap();
        let mut draft = disk.draft().unwrap();
        draft.write_all(b"half").unwrap();
        assert_eq!((read(&disk, "a/b/c"), drafts(directory.path())), (None, 1));
        draft.commit(&key("a/b/c")).unwrap();
        assert_eq!((read(&disk, "a/b/c").as_deref(), drafts(directory.path())), (Some("half"), 0));
        put(&disk, "a/b/c", b"another");
        assert_eq!(read(&disk, "a/b/c").as_deref(), Some("another"));
        assert_eq!((read(&disk, "a/b"), read(&disk, "a/b/c/d")), (None, None));
    }

    #[test]
    fn a_dropped_draft_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let disk = LocalDisk::open(directory.path()).unwrap();
        drop(disk.draft().unwrap());
        assert_eq!(drafts(directory.path()), 0);
    }

    #[test]
    fn everything_below_a_key_is_listed_and_deleted() {
        let directory = tempfile::tempdir().unwrap();
        let disk = LocalDisk::open(directory.path()).unwrap();
        for at in ["a/1", "a/22", "a/b/3", "aa/4"] {
            put(&disk, at, at.as_bytes());
        }
        let mut listed = disk.list(&key("a")).unwrap();
        listed.sort();
        assert_eq!(listed, [("1".to_owned(), 3), ("22".to_owned(), 4)]);
        for _ in 0..2 {
            disk.delete_under(&key("a")).unwrap();
        }
        assert_eq!((read(&disk, "a/b/3"), read(&disk, "aa/4").as_deref()), (None, Some("aa/4")));
        disk.delete_under(&key("aa/4")).unwrap();
        assert_eq!((disk.list(&key("a")).unwrap(), disk.list(&key("aa")).unwrap()), (vec![], vec![]));
        assert_eq!(drafts(directory.path()), 0);
    }

    #[test]
    fn opening_the_store_removes_abandoned_drafts() {
        let directory = tempfile::tempdir().unwrap();
        let disk = LocalDisk::open(directory.path()).unwrap();
        let mut written = disk.draft().unwrap();
        fs::write(directory.path().join(DRAFTS).join("dead"), "left by a process that died").unwrap();
        fs::create_dir_all(directory.path().join(DRAFTS).join("deleted/half")).unwrap();
        LocalDisk::open(directory.path()).unwrap();
        assert_eq!(drafts(directory.path()), 1);
        written.write_all(b"whole").unwrap();
        written.commit(&key("a")).unwrap();
        assert_eq!(read(&disk, "a").as_deref(), Some("whole"));
    }
}
