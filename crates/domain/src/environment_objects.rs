//! Environment objects: their values, the deployments that they apply to, and who may change them.
//!
//! An object's values are stored under the names that `setFields` uses ([`values`]), whatever its type, so secrecy,
//! overrides, masking and merging are each written once. [`fields`] is the table of each type's fields, [`change`]
//! applies a request to an object, [`resolve`] finds the objects of a deployment, [`show`] turns values back into
//! bodies. Nothing here encrypts or stores anything.

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
