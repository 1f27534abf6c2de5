//! The catalogue of connection types, written from the provider packages on PyPI.
//!
//! The packages are downloaded by pip and read by a script. Nothing in them is installed or run.

use std::process::Command;

use crate::outcome::Outcome;
use crate::workspace::{must, root, scratch};

const CATALOGUE: &str = "crates/domain/data/auth-types-of-providers.json";

/// Writes it; takes some minutes, and a network.
pub(crate) fn write() -> Outcome {
    let mut script = Command::new("python3");
    script.arg(root().join("xtask/python/auth_types.py"));
    script.arg(scratch()?.join("providers")).arg(root().join(CATALOGUE)).env("PYTHONDONTWRITEBYTECODE", "1");
    must(&mut script).map_err(|failure| format!("the provider packages could not be read: {failure}"))
}
