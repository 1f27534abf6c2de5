//! `podium confine`: how the local data plane starts programs that must not leave their own directories.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

/// Confines itself to some directories and becomes another program.
#[derive(Args)]
pub(crate) struct Confine {
    /// Directory that may be written; may be repeated.
    #[arg(long)]
    write: Vec<PathBuf>,
    /// Directory that may be read; may be repeated.
    #[arg(long)]
    read: Vec<PathBuf>,
    /// Directory to put in the place of /tmp, where the kernel allows it.
    #[arg(long)]
    temporary: Option<PathBuf>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

impl Confine {
    #[cfg(target_os = "linux")]
    pub(crate) fn run(&self) -> Result<(), String> {
        Err(podium_dataplane::local::confine(
            &self.write,
            &self.read,
            self.temporary.as_deref(),
            &self.program,
        ))
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn run(&self) -> Result<(), String> {
        let Self { write, read, program, .. } = self;
        Err(format!("{program:?} cannot be confined to {write:?} and {read:?} here: that needs Linux"))
    }
}
