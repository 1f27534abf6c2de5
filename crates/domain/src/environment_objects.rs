//! Environment objects: what they may hold, whom they reach, and who may change them.
//!
//! What an object holds is kept as values by the names that `setFields` uses ([`values`]), whatever its type: so
//! secrecy, overrides, masking and merging are each said once. [`fields`] is the table of what each type has,
//! [`change`] turns a request into the object after it, [`resolve`] says what a deployment is given, [`show`] turns
//! values back into bodies. Nothing here encrypts or stores anything.

pub mod auth_types;
pub mod change;
pub mod environment;
pub mod fields;
pub mod keys;
mod metrics;
pub mod resolve;
mod rights;
pub mod show;
pub mod values;

pub use change::{Object, create, mentions, update};
pub use rights::{Verb, may};
pub use values::{Hidden, Secrecy, Values};

#[cfg(test)]
mod properties;
#[cfg(test)]
mod tests;
