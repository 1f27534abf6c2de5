//! The object store interface.
//!
//! The interface is blocking. An object appears atomically and never changes.

use std::io::{self, Read, Write};

use crate::key::Key;

/// Reads an object from its beginning.
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
