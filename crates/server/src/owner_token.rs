//! `podium owner-token`: another token for the owner, if the first one is lost.

use clap::Subcommand;
use podium_app::{Config, Started};

use crate::failure::Failure;
use crate::settings::Installation;

/// The owner's token.
#[derive(Subcommand)]
pub enum OwnerToken {
    /// Create another token for the oldest owner, print it and store it in the data directory.
    ///
    /// With the embedded database, stop the server first. Earlier tokens stay valid until they are signed out.
    New(New),
}

/// Which installation.
#[derive(clap::Args)]
#[command(after_help = "Example: podium owner-token new --data-dir ./podium-data")]
pub struct New {
    #[command(flatten)]
    installation: Installation,
    /// URL under which clients reach the server: the issuer that the token names.
    #[arg(long, env = "PODIUM_PUBLIC_URL", default_value = "http://127.0.0.1:8080")]
    public_url: String,
}

impl OwnerToken {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let Self::New(new) = self;
        let Started { app, system, .. } =
            new.installation.open_existing(Config::new(new.public_url.trim_end_matches('/'))).await?;
        let token = app.new_owner_token(&system).await?;
        app.close().await;
        let token = token.ok_or("there is no active owner who holds the role directly")?;
        new.installation.show_owner_token(&token)
    }
}
