//! `podium network`: helpers of the local data plane that create the networks of environments.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::Subcommand;
use podium_dataplane::local::{DatabaseRelay, Forward, NetworkHolder, Uplink};

use crate::failure::Failure;

/// Creates the network of an environment, its uplink, or its way to the database server.
#[derive(Subcommand)]
pub enum Network {
    /// Create a network and hold it.
    Hold {
        /// Id of the user to run as.
        #[arg(long)]
        user: Option<u32>,
        /// Address to listen on in it.
        #[arg(long)]
        listen: SocketAddr,
        /// Address to listen on in it for the relay, such as tcp:127.0.0.1:5432; may be repeated.
        #[arg(long = "forward")]
        forwards: Vec<Forward>,
    },
    /// Run the uplink of a network.
    Uplink {
        /// Id of the user to run as.
        #[arg(long)]
        user: Option<u32>,
        /// Holder process of the network.
        #[arg(long)]
        holder: i32,
        /// Address on this machine's loopback interface to forward to, such as tcp:127.0.0.1:5432; may be repeated.
        #[arg(long = "forward")]
        forwards: Vec<Forward>,
        /// The network stack.
        #[arg(long)]
        pasta: PathBuf,
    },
    /// Pass connections of one user on to the database server, up to a limit.
    Database {
        /// Id of the user to run as.
        #[arg(long)]
        user: u32,
        /// Id of the user whose connections are passed on.
        #[arg(long)]
        client: u32,
        /// How many connections there may be at once.
        #[arg(long)]
        most: usize,
        /// Socket to listen on.
        #[arg(long)]
        listen: PathBuf,
        /// Socket of the server; may be repeated: the first that accepts a connection gets it.
        #[arg(long)]
        to: Vec<PathBuf>,
    },
}

impl Network {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let why = match self {
            Self::Hold { user, listen, forwards } => NetworkHolder { user, listen, forwards }.hold(),
            Self::Uplink { user, holder, forwards, pasta } => Uplink { user, holder, forwards, pasta }.run(),
            Self::Database { user, client, most, listen, to } => {
                DatabaseRelay { user, client, listen, to, most }.run()
            }
        };
        Err(why.into())
    }
}
