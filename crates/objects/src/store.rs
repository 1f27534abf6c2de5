//! Where objects are kept.
//!
//! The interface blocks: its callers are on threads that may. An object appears as a whole and never changes.

use std::io::{self, Read, Write};

use crate::key::Key;

/// Reads an object from its beginning.
pub type Reader = Box<dyn Read + Send>;

/// Where objects are kept: a disk, or an object storage.
pub trait ObjectStore: Send + Sync + 'static {
    /// Begins a new object that nobody sees yet.
    fn draft(&self) -> io::Result<Box<dyn Draft>>;
    /// Opens an object; nothing if there is none.
    fn open(&self, key: &Key) -> io::Result<Option<Reader>>;
    /// The last words and the sizes of the objects directly below a key.
    fn list(&self, prefix: &Key) -> io::Result<Vec<(String, u64)>>;
    /// Removes the object with this key and every object below it; none is fine.
    fn delete_under(&self, prefix: &Key) -> io::Result<()>;
}

/// An object that is being written. Dropped, it was never there.
pub trait Draft: Write + Send {
    /// Makes the object visible under its key, on disk for good, in place of one that was there.
    fn commit(self: Box<Self>, key: &Key) -> io::Result<()>;
}
