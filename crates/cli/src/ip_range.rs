//! `podium ip-range`: lets an operator back in who locked everybody out.

use clap::Subcommand;
use podium_app::{Config, Started};

use crate::failure::Failure;
use crate::settings::Installation;

/// Allowed address ranges, for an operator who is locked out.
#[derive(Subcommand)]
pub(crate) enum IpRange {
    /// Remove every allowed address range, so that the API can be reached from anywhere again.
    ///
    /// With the embedded database, stop the server first.
    Reset(Reset),
}

/// Which installation.
#[derive(clap::Args)]
#[command(after_help = "Example: podium ip-range reset --data-dir ./podium-data")]
pub(crate) struct Reset {
    #[command(flatten)]
    installation: Installation,
}

impl IpRange {
    pub(crate) async fn run(self) -> Result<(), Failure> {
        let Self::Reset(reset) = self;
        let Started { app, system, .. } =
            reset.installation.open_existing(Config::new("http://127.0.0.1:8080")).await?;
        let removed =
            app.reset_allowed_ip_address_ranges(&system).await.map_err(|error| error.to_string())?;
        app.db.close().await;
        eprintln!("Removed {removed} allowed address ranges.");
        Ok(())
    }
}
