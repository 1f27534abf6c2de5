//! `podium serve`, and the commands of the operator on the server's own machine: they open an installation themselves.
//!
//! It takes nothing from the client: what both have in common is in `podium-terminal`.

#[cfg(target_os = "linux")]
mod backup;
#[cfg(target_os = "linux")]
mod confine;
mod data_dir;
mod data_plane;
#[cfg(target_os = "linux")]
mod environments;
mod failure;
mod ip_range;
mod joining;
mod limits;
mod log;
#[cfg(target_os = "linux")]
mod network;
mod node;
mod operator_socket;
mod owner_password;
mod owner_token;
#[cfg(target_os = "linux")]
mod restore;
mod serve;
mod settings;
mod signing_key;
mod sockets;
mod table;
mod tell;
mod work;

use std::pin::Pin;

use clap::Subcommand;

pub use data_dir::{OPERATOR_KEY, OWNER_TOKEN, SOCKET};
pub use failure::Failure;
pub use ip_range::Reset;

/// A command of the operator.
#[derive(Subcommand)]
pub enum Command {
    /// Serve the API.
    Serve(Box<serve::Serve>),
    /// Write a backup of an embedded installation to one file.
    #[cfg(target_os = "linux")]
    Backup(backup::Backup),
    /// Create an installation from a backup, in an empty directory.
    #[cfg(target_os = "linux")]
    Restore(restore::Restore),
    #[cfg(target_os = "linux")]
    Stop(environments::StopEnvironments),
    #[cfg(target_os = "linux")]
    Start(environments::StartEnvironments),
    /// The machines that run environments.
    #[command(subcommand)]
    Node(node::Node),
    OwnerPassword(owner_password::OwnerPassword),
    /// Another token for the owner, if the first one is lost.
    #[command(subcommand)]
    OwnerToken(owner_token::OwnerToken),
    /// Keys that sign tokens.
    #[command(subcommand)]
    SigningKey(signing_key::SigningKey),
    /// Confine this process to some directories and run another program in it.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    Confine(confine::Confine),
    /// Create the network of an environment, or its uplink.
    #[cfg(target_os = "linux")]
    #[command(subcommand, hide = true)]
    Network(network::Network),
    /// Show the pending work of the loops, and why it is not done.
    Work(work::Work),
}

impl Command {
    pub fn run(self) -> Result<(), Failure> {
        match self {
            // Before there are other threads: a multi-threaded process cannot enter other namespaces.
            #[cfg(target_os = "linux")]
            Self::Confine(command) => command.run(),
            #[cfg(target_os = "linux")]
            Self::Network(command) => command.run(),
            command => block_on(carry_out(command)),
        }
    }
}

/// Runs a future of an operator's command.
#[tokio::main]
pub async fn block_on(work: Pin<Box<dyn Future<Output = Result<(), Failure>>>>) -> Result<(), Failure> {
    work.await
}

/// Of an erased type: a runtime compiles every future that it blocks on three times.
fn carry_out(command: Command) -> Pin<Box<dyn Future<Output = Result<(), Failure>>>> {
    Box::pin(async {
        match command {
            Command::Serve(serve) => serve.run().await,
            #[cfg(target_os = "linux")]
            Command::Backup(command) => command.run().await,
            #[cfg(target_os = "linux")]
            Command::Restore(command) => command.run(),
            #[cfg(target_os = "linux")]
            Command::Stop(command) => command.run().await,
            #[cfg(target_os = "linux")]
            Command::Start(command) => command.run().await,
            Command::Node(command) => command.run().await,
            Command::OwnerPassword(command) => command.run().await,
            Command::OwnerToken(command) => command.run().await,
            Command::SigningKey(command) => command.run().await,
            #[cfg(target_os = "linux")]
            Command::Confine(command) => command.run(),
            #[cfg(target_os = "linux")]
            Command::Network(command) => command.run(),
            Command::Work(command) => command.run().await,
        }
    })
}
