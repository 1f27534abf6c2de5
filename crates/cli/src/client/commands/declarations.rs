//! `podium export`.

use std::collections::BTreeSet;
use std::io::Write as _;

use clap::Args;
use serde_json::{Map, Value};

use crate::client::declared::keys::Kind;
use crate::client::declared::state::State;
use crate::client::ending::{Failed, Outcome};
use crate::client::output::Output;
use crate::client::session::Setup;

/// Write what is there as a file of declarations, with secrets as references to environment variables.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium export > production.yaml
  podium export --set production > production.yaml
  podium export --output json")]
pub(crate) struct Export {
    /// Name of a set to write into the file, which owns everything in it once it is applied.
    #[arg(long, value_name = "NAME")]
    set: Option<String>,
    #[command(flatten)]
    setup: Setup,
}

impl Export {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let all = BTreeSet::from(Kind::ALL);
        let state = State::read(&session, &all, &|_, _| true).await?;
        let mut file = Map::new();
        if let Some(set) = self.set {
            file.insert("set".into(), set.into());
        }
        if let Value::Object(sections) = state.exported() {
            file.extend(sections);
        }
        let written = match session.format.output() {
            Output::Json => format!("{:#}\n", Value::Object(file)),
            _ => serde_saphyr::to_string(&file)
                .map_err(|error| Failed::because(format!("it cannot be written as YAML: {error}")))?,
        };
        std::io::stdout().lock().write_all(written.as_bytes())?;
        Ok(())
    }
}
