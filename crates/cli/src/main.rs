//! `podium`: serve, and every command a person types.

#[cfg(target_os = "linux")]
mod backup;
mod confine;
mod data_dir;
mod data_plane;
mod failure;
mod ip_range;
mod joining;
mod limits;
mod log;
#[cfg(target_os = "linux")]
mod network;
mod node;
mod owner_password;
mod owner_token;
#[cfg(target_os = "linux")]
mod restore;
mod serve;
mod settings;
mod signing_key;
mod sockets;
mod table;
mod work;

use std::pin::Pin;

use clap::{Parser, Subcommand};

use crate::failure::Failure;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The open control plane for workflow orchestration.
#[derive(Parser)]
#[command(
    name = "podium",
    version,
    after_help = "Example: podium serve --listen 127.0.0.1:8080 --data-dir ./podium-data"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the API.
    Serve(Box<serve::Serve>),
    /// Write a backup of an embedded installation to one file.
    #[cfg(target_os = "linux")]
    Backup(backup::Backup),
    /// Create an installation from a backup, in an empty directory.
    #[cfg(target_os = "linux")]
    Restore(restore::Restore),
    /// Allowed address ranges, for an operator who is locked out.
    #[command(subcommand)]
    IpRange(ip_range::IpRange),
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
    #[command(hide = true)]
    Confine(confine::Confine),
    /// Create the network of an environment, or its uplink.
    #[cfg(target_os = "linux")]
    #[command(subcommand, hide = true)]
    Network(network::Network),
    /// Show the pending work of the loops, and why it is not done.
    Work(work::Work),
}

fn main() -> std::process::ExitCode {
    let done = match Cli::parse().command {
        // Before there are other threads: a multi-threaded process cannot enter other namespaces.
        Command::Confine(command) => command.run(),
        #[cfg(target_os = "linux")]
        Command::Network(command) => command.run(),
        command => run(command),
    };
    match done {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("podium: {message}");
            std::process::ExitCode::FAILURE
        }
    }
}

#[tokio::main]
async fn run(command: Command) -> Result<(), Failure> {
    carry_out(command).await
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
            Command::IpRange(command) => command.run().await,
            Command::Node(command) => command.run().await,
            Command::OwnerPassword(command) => command.run().await,
            Command::OwnerToken(command) => command.run().await,
            Command::SigningKey(command) => command.run().await,
            Command::Confine(command) => command.run(),
            #[cfg(target_os = "linux")]
            Command::Network(command) => command.run(),
            Command::Work(command) => command.run().await,
        }
    })
}
