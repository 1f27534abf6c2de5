//! `podium version`.

use std::io::Write as _;

use clap::Args;
use serde_json::json;

use super::Outcome;

/// Show the version of this program.
#[derive(Args)]
#[command(after_help = "Example: podium version --json")]
pub(crate) struct Version {
    /// As JSON, for programs.
    #[arg(long)]
    json: bool,
}

impl Version {
    pub(crate) fn run(self) -> Outcome {
        let version = env!("CARGO_PKG_VERSION");
        let mut out = std::io::stdout().lock();
        match self.json {
            true => {
                let (os, architecture) = (std::env::consts::OS, std::env::consts::ARCH);
                let about =
                    json!({ "version": version, "api": "v1", "os": os, "architecture": architecture });
                writeln!(out, "{about:#}")?;
            }
            false => writeln!(out, "podium {version}")?,
        }
        Ok(())
    }
}
