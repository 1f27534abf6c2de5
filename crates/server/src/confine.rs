//! `podium confine`: starts a confined program for the local data plane.

use std::ffi::OsString;

use clap::Args;
use podium_dataplane::local::Confinement;

use crate::failure::Failure;

/// Confines this process to some directories and runs another program in it.
#[derive(Args)]
pub struct Confine {
    #[command(flatten)]
    confinement: Confinement,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

impl Confine {
    pub(crate) fn run(self) -> Result<(), Failure> {
        Err(self.confinement.become_program(&self.program).into())
    }
}
