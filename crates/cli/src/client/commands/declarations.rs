//! `podium export`.

use std::collections::BTreeSet;
use std::io::Write as _;

use clap::Args;
use serde_json::{Map, Value};

use crate::client::declared::keys::Kind;
use crate::client::declared::sets::Sets;
use crate::client::declared::state::State;
use crate::client::ending::{Failed, Outcome};
use crate::client::output::Output;
use crate::client::session::Setup;

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
        let all = BTreeSet::from(Kind::ALL);
        let state = State::read(&session, &all, &|_, _| true).await?;
        let mut file = Map::new();
        let sets = Sets::read(&session, self.set.as_deref()).await?;
        let owned = match &self.set {
            Some(set) => {
                sets.is_there()?;
                file.insert("set".into(), set.as_str().into());
                Some(sets.remembered())
            }
            None => None,
        };
        if let Value::Object(sections) = state.exported(owned.as_ref()) {
            file.extend(sections);
        }
        let written = match session.format.output() {
            Output::Json => format!("{:#}\n", Value::Object(file)),
            _ => serde_saphyr::to_string(&file)
                .map_err(|error| Failed::because(format!("the file cannot be written as YAML: {error}")))?,
        };
        std::io::stdout().lock().write_all(written.as_bytes())?;
        Ok(())
    }
}
