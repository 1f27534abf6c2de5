//! Uploads and bundles: archives that are checked while they arrive, and stored only as a whole.
//!
//! An archive comes from outside and is unpacked later by a program that trusts it. So [`Checker`] reads every byte
//! first and refuses archives that could write outside their own tree, fill a disk or be interpreted in two ways. A
//! refused, aborted or abandoned upload leaves nothing behind. The crate deals with keys, bytes and limits; who may
//! upload, and what for, is decided elsewhere.

mod archive;
mod blocks;
mod error;
mod key;
#[cfg(test)]
mod sample;
mod store;
mod uploads;

pub use archive::{ArchivedFile, Checker, Contents, Limits, Listed};
pub use blocks::{BlockId, BlockList, Staging};
pub use error::{Error, Flaw, Refused, Result};
pub use key::Key;
pub use store::{Draft, LocalDisk, ObjectStore, Reader};
pub use uploads::{StoredObject, Upload, Uploads};
