//! `podium network`: helpers of the local data plane that create the networks of environments.

use clap::Subcommand;
use podium_dataplane::local::{DatabaseRelay, NetworkHolder, Uplink};

use crate::failure::Failure;

/// Creates the network of an environment, its uplink, or its way to the database server.
#[derive(Subcommand)]
pub enum Network {
    /// Create a network and hold it.
    Hold(NetworkHolder),
    /// Run the uplink of a network.
    Uplink(Uplink),
    /// Pass connections of one user on to the database server, up to a limit.
    Database(DatabaseRelay),
}

impl Network {
    pub(crate) fn run(self) -> Result<(), Failure> {
        let why = match self {
            Self::Hold(holder) => holder.hold(),
            Self::Uplink(uplink) => uplink.run(),
            Self::Database(relay) => relay.run(),
        };
        Err(why.into())
    }
}
