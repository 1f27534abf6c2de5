//! `podium export`.

use std::io::Write as _;

use clap::Args;
use serde_json::Value;

use super::{Failed, Outcome, Output, Setup};
use crate::client::declared::exported;

/// Write the existing resources as a file of declarations, with secrets as references to environment variables.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium export > production.yaml
  podium export --set production > production.yaml
  podium export --output json")]
pub(crate) struct Export {
    /// Only the resources that this set owns, as a file of the set; secrets refer to the variables that its files named.
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    #[command(flatten)]
    setup: Setup,
}

impl Export {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let file = exported(&session, self.set.as_deref()).await?;
        let written = match session.format.output() {
            Output::Json => format!("{:#}\n", Value::Object(file)),
            _ => serde_saphyr::to_string(&file)
                .map_err(|error| Failed::because(format!("the file cannot be written as YAML: {error}")))?,
        };
        std::io::stdout().lock().write_all(written.as_bytes())?;
        Ok(())
    }
}
