//! `podium manual`: manual pages, for packagers.

use std::path::PathBuf;

use clap::{Args, CommandFactory as _};

use super::Outcome;

/// Write a manual page for every command to a directory.
#[derive(Args)]
#[command(after_help = "Example: podium manual ./man1")]
pub(crate) struct Manual {
    /// Directory to write to; it is created if needed.
    directory: PathBuf,
}

impl Manual {
    pub(crate) fn run(self) -> Outcome {
        std::fs::create_dir_all(&self.directory)?;
        Ok(clap_mangen::generate_to(crate::Cli::command(), &self.directory)?)
    }
}
