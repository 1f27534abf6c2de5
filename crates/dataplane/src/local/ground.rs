//! What this machine has to run environments with: interpreters, and what keeps environments apart.

use std::fs;
use std::path::{Path, PathBuf};

use super::isolation::Mode;
use super::options::Options;
use super::python::{Python, find};

/// What environments stand on.
#[derive(Debug)]
pub(super) struct Ground {
    /// The interpreter of all runtimes.
    pub(super) python: Python,
    /// Every interpreter that there is: any of them can fetch the installer.
    pub(super) pythons: Vec<Python>,
    /// The directory that the interpreter's library is in.
    pub(super) python_home: PathBuf,
    /// How environments are kept apart.
    pub(super) mode: Mode,
}

impl Ground {
    /// Looks for it; an error says what to install.
    pub(super) async fn find(options: &Options, first_user: u32) -> Result<Self, String> {
        let pythons = find(options.python.as_deref()).await?;
        let mode = |python: &Python| {
            Mode::of_this_machine(&python.path, &options.directory, options.launcher.as_deref(), first_user)
        };
        // The first that keeps environments apart best.
        let best =
            pythons.iter().find(|python| matches!(mode(python), Mode::Users { .. })).or(pythons.first());
        let python = best.cloned().ok_or("no Python was found")?;
        Ok(Self { mode: mode(&python), python_home: home_of(&python.path), pythons, python })
    }
}

/// The directory above an interpreter's programs, with its library.
fn home_of(python: &Path) -> PathBuf {
    let real = fs::canonicalize(python).unwrap_or_else(|_| python.to_owned());
    real.ancestors().nth(2).unwrap_or(Path::new("/")).to_owned()
}
