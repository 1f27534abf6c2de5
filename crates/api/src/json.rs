//! The JSON of replies and inputs, read and written where their types are declared.
//!
//! What reads and writes a type is a good part of the machine code of the program. The macros that declare endpoints and types
//! make plain functions of it, which are compiled here once and not again in each crate that calls them.

pub use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::de::DeserializeOwned;
pub use serde_json::{Result, Value};

use crate::{Endpoint, Reply};

/// The body of the reply of an endpoint.
pub type BodyOf<E> = <<E as Endpoint>::Reply as Reply>::Body;

/// Something that can be the body of a reply.
pub trait Written {
    /// Appends its JSON.
    fn write(&self, to: &mut Vec<u8>) -> Result<()>;
}

impl<T: serde::Serialize> Written for Vec<T> {
    fn write(&self, to: &mut Vec<u8>) -> Result<()> {
        serde_json::to_writer(to, self)
    }
}

/// Reads the body of a reply; one without bytes is `null`.
pub fn read<T: DeserializeOwned>(json: &[u8]) -> Result<T> {
    serde_json::from_slice(if json.is_empty() { b"null" } else { json })
}
