//! `podium confine`: how the local data plane starts programs that must not leave their own directories.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;

use crate::data_plane::ports;
use crate::failure::Failure;

/// Confines this process to some directories and runs another program in it.
#[derive(Args)]
pub(crate) struct Confine {
    /// Directory that may be written; may be repeated.
    #[arg(long)]
    write: Vec<PathBuf>,
    /// Directory that may be read; may be repeated.
    #[arg(long)]
    read: Vec<PathBuf>,
    /// What may not be read although it is below a directory that may; may be repeated.
    #[arg(long)]
    kept: Vec<PathBuf>,
    /// Directory to put in the place of /tmp; nothing is run where the kernel does not allow that.
    #[arg(long)]
    temporary: Option<PathBuf>,
    /// Number of the user to become.
    #[arg(long)]
    user: Option<u32>,
    /// Leave files to whatever the user may do.
    #[arg(long)]
    any_file: bool,
    /// Ports to listen on, beside those that the kernel picks; may be repeated.
    #[arg(long, value_parser = ports)]
    ports: Vec<RangeInclusive<u16>>,
    /// Number of the network to enter; nothing is run where that is not possible.
    #[arg(long)]
    network: Option<u64>,
    /// Process that holds this network.
    #[arg(long)]
    holder: Option<i32>,
    /// Control group to join, before anything else; may be repeated. Nothing is run where that is not possible.
    #[arg(long)]
    group: Vec<PathBuf>,
    /// The program and its arguments.
    #[arg(last = true, required = true)]
    program: Vec<OsString>,
}

impl Confine {
    #[cfg(target_os = "linux")]
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { write, read, kept, temporary, user, any_file, ports, network, holder, group, program } =
            self;
        let confinement = podium_dataplane::local::Confinement {
            write,
            read,
            kept,
            temporary,
            user,
            any_file,
            ports,
            network,
            holder,
            groups: group,
        };
        Err(confinement.become_program(&program).into())
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn run(self) -> Result<(), Failure> {
        let Self { program, .. } = self;
        Err(format!("{program:?} cannot be confined here: that needs Linux"))
    }
}
