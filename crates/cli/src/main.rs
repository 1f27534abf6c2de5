//! `podium`: serve, and every command a person types.
//!
//! Commands of the operator (`podium-server`) open an installation on their own machine. All others ([`client`]) call the
//! API of a server, wherever it is, as anyone else could.

mod client;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use podium_server as server;

use crate::client::commands::allowed_ip_address_ranges::IpRanges;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const EXAMPLES: &str = "\
Examples:
  podium serve --listen 127.0.0.1:8080 --data-dir ./podium-data
  podium login http://127.0.0.1:8080 --token-file ./podium-data/owner-token
  podium init hello
  podium deploy hello --create
  podium logs --deployment hello --follow

Exit codes: 0 fine, 1 failed, 2 usage, 3 not found, 4 refused (not signed in, forbidden), 5 conflict, 6 unreachable, \
7 the operation failed.";

/// The open control plane for workflow orchestration.
#[derive(Parser)]
#[command(name = "podium", version, after_help = EXAMPLES)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(flatten)]
    Client(client::Command),
    /// Allowed address ranges; an operator who is locked out can reset them.
    #[command(subcommand, alias = "ip-ranges")]
    IpRange(IpRanges),
    #[command(flatten)]
    Server(server::Command),
}

fn main() -> ExitCode {
    if client::completing::answer() {
        return ExitCode::SUCCESS;
    }
    let done = match Cli::parse().command {
        Command::Client(command) => return client::run(command),
        Command::IpRange(IpRanges::Reset(reset)) => server::block_on(Box::pin(reset.run())),
        Command::IpRange(command) => return client::finish(client::block_on(Box::pin(command.run()))),
        Command::Server(command) => command.run(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("podium: {message}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod help_tests;
