//! `podium network`: how the local data plane makes networks of environments' own.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Subcommand;
use podium_dataplane::local::{Forward, NetworkHolder, Uplink};

use crate::failure::Failure;

/// Creates the network of an environment, or its uplink.
#[derive(Subcommand)]
pub(crate) enum Network {
    /// Make a network and hold it.
    Hold {
        /// Number of the user to become.
        #[arg(long)]
        user: Option<u32>,
        /// Where to listen in it.
        #[arg(long)]
        listen: SocketAddr,
        /// Where to listen in it for the outside, such as tcp:127.0.0.1:5432; may be repeated.
        #[arg(long = "forward")]
        forwards: Vec<Forward>,
    },
    /// Lead out of a network that a process holds.
    Uplink {
        /// Number of the user to become.
        #[arg(long)]
        user: Option<u32>,
        /// Process that holds it.
        #[arg(long)]
        holder: i32,
        /// What is reached of this machine's loopback, such as tcp:127.0.0.1:5432; may be repeated.
        #[arg(long = "forward")]
        forwards: Vec<Forward>,
        /// The network stack.
        #[arg(long)]
        pasta: PathBuf,
    },
}

impl Network {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let why = match self {
            Self::Hold { user, listen, forwards } => NetworkHolder { user, listen, forwards }.hold(),
            Self::Uplink { user, holder, forwards, pasta } => Uplink { user, holder, forwards, pasta }.run(),
        };
        Err(why.into())
    }
}
