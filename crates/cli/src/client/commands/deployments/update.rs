//! `podium deployment update`: the API takes a whole deployment, so what is not named is sent back as it was read.

use clap::Args;
use podium_api::deployments::{self as api, DeploymentEnvironmentVariableRequest as Variable};
use serde_json::{Value, json};

use super::{One, WHAT, followed};
use crate::client::commands::{Edited, Extra, Failed, Outcome, Session};
use crate::client::follow::Deployed;
use crate::client::kept::Kept;

/// What to change.
#[derive(Args)]
pub(crate) struct Update {
    #[command(flatten)]
    one: One,
    /// New name of the deployment.
    #[arg(long)]
    name: Option<String>,
    /// Description of the deployment.
    #[arg(long)]
    description: Option<String>,
    /// CELERY, KUBERNETES or PLATFORM.
    #[arg(long)]
    executor: Option<String>,
    /// SMALL, MEDIUM, LARGE or EXTRA_LARGE.
    #[arg(long, value_name = "SIZE")]
    scheduler_size: Option<String>,
    /// Environment variable to set.
    #[arg(long, value_name = "NAME=VALUE")]
    variable: Vec<String>,
    /// Secret environment variable to set; its value is taken from this command's environment.
    #[arg(long, value_name = "NAME")]
    secret: Vec<String>,
    /// Environment variable to remove.
    #[arg(long, value_name = "NAME")]
    remove_variable: Vec<String>,
    #[command(flatten)]
    extra: Extra,
}

impl Update {
    pub(super) async fn run(self, session: &Session) -> Outcome {
        let change = self.extra.body::<api::Update>(
            WHAT,
            json!({
                "name": self.name,
                "description": self.description,
                "executor": self.executor.as_ref().map(|executor| executor.to_uppercase()),
                "schedulerSize": self.scheduler_size.as_ref().map(|size| size.to_uppercase()),
            }),
        )?;
        let set = self.variables()?;
        if change == json!({}) && set.is_empty() && self.remove_variable.is_empty() {
            return Err(Failed::usage("nothing to change: see podium deployment update --help"));
        }
        let edited = update(session, &self.one, &change, &set, &self.remove_variable).await?;
        followed(session, edited.told(&format!("deployment {}", self.one.deployment))).await
    }

    fn variables(&self) -> Outcome<Vec<Variable>> {
        let mut all = Vec::new();
        for text in &self.variable {
            let wrong = || Failed::usage(format!("{text:?} has no value: write --variable NAME=VALUE"));
            let (key, value) = text.split_once('=').ok_or_else(wrong)?;
            all.push(Variable { key: key.into(), value: Some(value.into()), is_secret: false });
        }
        for key in &self.secret {
            let missing = |_| {
                Failed::usage(format!("the environment variable {key} has no value")).hint(format!(
                    "Set it for this command: {key}=... podium deployment update ... --secret {key}"
                ))
            };
            let value = Some(std::env::var(key).map_err(missing)?);
            all.push(Variable { key: key.clone(), value, is_secret: true });
        }
        Ok(all)
    }
}

/// Reads a deployment, changes what is named, and writes it.
pub(super) async fn update(
    session: &Session,
    one: &One,
    change: &Value,
    set: &[Variable],
    removed: &[String],
) -> Outcome<Edited> {
    let path = one.find(session).await?;
    let edit = |now: &Deployed| Ok(now.part::<Kept>()?.changed(change, set, removed));
    session.edit_part::<api::Get, api::Update, _>(&path, edit).await
}
