//! `podium confine`: starts a confined program for the local data plane.

use std::ffi::OsString;
use std::ops::RangeInclusive;
use std::path::PathBuf;

use clap::Args;

use crate::data_plane::ports;
use crate::failure::Failure;

/// Confines this process to some directories and runs another program in it.
#[derive(Args)]
pub struct Confine {
    /// Directory that may be written; may be repeated.
    #[arg(long)]
    write: Vec<PathBuf>,
    /// Directory that may be read; may be repeated.
    #[arg(long)]
    read: Vec<PathBuf>,
    /// Path that may not be read, even below a readable directory; may be repeated.
    #[arg(long)]
    kept: Vec<PathBuf>,
    /// Directory to mount as /tmp; if the kernel does not allow that, nothing is run.
    #[arg(long)]
    temporary: Option<PathBuf>,
    /// Id of the user to run as.
    #[arg(long)]
    user: Option<u32>,
    /// Leave file access to the permissions of the user.
    #[arg(long)]
    any_file: bool,
    /// Ports to listen on, in addition to ephemeral ones; may be repeated.
    #[arg(long, value_parser = ports)]
    ports: Vec<RangeInclusive<u16>>,
    /// Inode number of the network namespace to enter; if that is not possible, nothing is run.
    #[arg(long)]
    network: Option<u64>,
    /// Holder process of this network.
    #[arg(long)]
    holder: Option<i32>,
    /// Control group to join before anything else; may be repeated. If that is not possible, nothing is run.
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
            protected: kept,
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
