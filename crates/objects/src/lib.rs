//! Uploads and bundles: archives that are checked while they arrive, and kept only as a whole.
//!
//! An archive comes from outside and is unpacked later by something that trusts it. So [`Checker`] reads every byte of
//! it first and refuses what could write outside its own tree, fill a disk or be read in two ways. What is refused,
//! broken off or abandoned leaves nothing behind. The crate knows keys, bytes and limits; who may upload, and what an
//! upload is for, is decided elsewhere.

mod archive;
mod blocks;
mod error;
mod key;
mod limits;
mod local_disk;
#[cfg(test)]
mod sample;
mod store;
mod uploads;

pub use archive::{Checker, Contents};
pub use blocks::{BlockId, BlockList, Staging};
pub use error::{Error, Flaw, Refused, Result};
pub use key::Key;
pub use limits::Limits;
pub use local_disk::LocalDisk;
pub use store::{Draft, ObjectStore, Reader};
pub use uploads::{StoredObject, Upload, Uploads};
