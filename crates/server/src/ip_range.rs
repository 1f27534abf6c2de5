//! `podium ip-range reset`: lets an operator back in who locked everybody out.

use clap::Args;
use podium_app::{Config, Started};

use crate::failure::Failure;
use crate::settings::Installation;

/// Which installation.
#[derive(Args)]
#[command(after_help = "Example: podium ip-range reset --data-dir ./podium-data")]
pub struct Reset {
    #[command(flatten)]
    installation: Installation,
}

impl Reset {
    pub async fn run(self) -> Result<(), Failure> {
        let Started { app, system, .. } =
            self.installation.open_existing(Config::new("http://127.0.0.1:8080")).await?;
        let removed = app.reset_allowed_ip_address_ranges(&system).await?;
        app.close().await;
        eprintln!("Removed {removed} allowed address ranges.");
        Ok(())
    }
}
