//! `podium open`.

use std::io::Write as _;

use clap::Args;
use podium_api::path::OfDeployment;
use podium_api::{Nothing, front_door as api};

use super::{Outcome, Session, Setup};
use crate::client::browser;
use crate::client::project::DeploymentFlags;

/// Open the Airflow of a deployment in a browser, signed in as you.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium open nightly
  podium open nightly --print")]
pub(crate) struct Open {
    /// Name or id; the default is the deployment of podium.yaml, or the only one.
    deployment: Option<String>,
    /// Print the link instead. It works once, for anyone who has it: treat it like a password.
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    flags: DeploymentFlags,
    #[command(flatten)]
    setup: Setup,
}

impl Open {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let here = std::path::Path::new(".");
        let path = self.flags.find(&session, self.deployment.as_deref(), here).await?;
        show(&session, &path, self.print).await
    }
}

/// Opens a browser, or prints the link if that is wanted or there is no browser.
pub(crate) async fn show(session: &Session, path: &OfDeployment, is_printed: bool) -> Outcome {
    let url = session.post::<api::Open>(path, &Nothing).await?.body()?.url;
    if !is_printed && browser::open(&url) {
        eprintln!("Opened a browser.");
        return Ok(());
    }
    writeln!(std::io::stdout(), "{url}")?;
    Ok(())
}
