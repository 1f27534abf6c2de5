//! `podium signing-key`: rotates the key that tokens are signed with.

use clap::Subcommand;
use podium_app::{Config, Started};

use crate::failure::Failure;
use crate::settings::Installation;

/// Keys that sign tokens.
#[derive(Subcommand)]
pub enum SigningKey {
    /// Sign new tokens with a new key. Tokens that were signed before stay valid until they expire.
    ///
    /// With the embedded database, stop the server first; replicas on PostgreSQL notice automatically.
    Rotate(Rotate),
}

/// Which installation.
#[derive(clap::Args)]
#[command(after_help = "Example: podium signing-key rotate --data-dir ./podium-data")]
pub struct Rotate {
    #[command(flatten)]
    installation: Installation,
}

impl SigningKey {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let Self::Rotate(rotate) = self;
        let Started { app, system, .. } =
            rotate.installation.open_existing(Config::new("http://127.0.0.1:8080")).await?;
        let id = app.rotate_signing_key(&system).await?;
        app.close().await;
        eprintln!("New tokens are signed with key {id}.");
        Ok(())
    }
}
