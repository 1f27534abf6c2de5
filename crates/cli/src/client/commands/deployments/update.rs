//! `podium deployment update`: the API takes a whole deployment, so what is not named is sent back as it was read.

use clap::Args;
use podium_api::deployments as api;
use serde_json::{Value, json};

use super::{One, VIEW, WHAT};
use crate::client::edit::{Edited, pick};
use crate::client::ending::{Failed, Outcome};
use crate::client::fields::{Extra, merged};
use crate::client::session::{Session, text};

/// What to change.
#[derive(Args)]
pub(super) struct Update {
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
        let changed = edited.told(&format!("deployment {}", self.one.deployment));
        if !session.wait.is_wanted() {
            return session.show(&changed, &VIEW);
        }
        let path = session.deployment(text(&changed["id"]), None).await?;
        let settled = session.settle(&path).await?;
        session.show(&settled, &VIEW)
    }

    fn variables(&self) -> Outcome<Vec<Value>> {
        let mut all = Vec::new();
        for text in &self.variable {
            let wrong = || Failed::usage(format!("{text:?} has no value: write --variable NAME=VALUE"));
            let (key, value) = text.split_once('=').ok_or_else(wrong)?;
            all.push(json!({ "key": key, "value": value, "isSecret": false }));
        }
        for key in &self.secret {
            let missing = |_| {
                Failed::usage(format!("the environment variable {key} has no value")).hint(format!(
                    "Set it for this command: {key}=... podium deployment update ... --secret {key}"
                ))
            };
            let value = std::env::var(key).map_err(missing)?;
            all.push(json!({ "key": key, "value": value, "isSecret": true }));
        }
        Ok(all)
    }
}

/// Reads a deployment, changes what is named, and writes it.
pub(super) async fn update(
    session: &Session,
    one: &One,
    change: &Value,
    set: &[Value],
    removed: &[String],
) -> Outcome<Edited> {
    let path = one.find(session).await?;
    let edit = |current: &Value| Ok(changed(current, change, set, removed));
    session.edit::<api::Get, api::Update>(&path, edit).await
}

/// The body of an update that changes some fields, and sets some variables.
pub(crate) fn update_body(current: &Value, change: &Value, set: &[Value]) -> Value {
    changed(current, change, set, &[])
}

/// The body of an update.
fn changed(current: &Value, change: &Value, set: &[Value], removed: &[String]) -> Value {
    let mut kept = pick(
        current,
        &["type", "name", "workspaceId", "description", "executor", "isCicdEnforced", "isDagDeployEnabled"],
    );
    if text(&current["type"]) == "HYBRID" {
        let scheduler = json!({ "au": current["schedulerAu"], "replicas": current["schedulerReplicas"] });
        kept.insert("scheduler".into(), scheduler);
    } else {
        kept.extend(pick(current, &["schedulerSize", "isHighAvailability"]));
    }
    kept.insert("environmentVariables".into(), variables(&current["environmentVariables"], set, removed));
    merged(kept, change.clone())
}

/// The variables as they were, with the changes made. A secret without a value keeps the stored one.
fn variables(current: &Value, set: &[Value], removed: &[String]) -> Value {
    let is_kept = |variable: &&Value| {
        let key = text(&variable["key"]);
        !removed.iter().any(|name| name == key) && !set.iter().any(|new| text(&new["key"]) == key)
    };
    let as_request = |variable: &Value| {
        let mut request = pick(variable, &["key", "isSecret"]);
        if variable["isSecret"] != json!(true) {
            request.insert("value".into(), variable["value"].clone());
        }
        Value::Object(request)
    };
    let kept = current.as_array().into_iter().flatten().filter(is_kept).map(as_request);
    kept.chain(set.iter().cloned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_is_sent_back() {
        let current = json!({
            "id": "x", "type": "STANDARD", "name": "a", "workspaceId": "w", "executor": "CELERY",
            "isCicdEnforced": false, "isDagDeployEnabled": true, "schedulerSize": "SMALL",
            "isHighAvailability": false, "status": "HEALTHY",
            "environmentVariables": [
                { "key": "A", "value": "1", "isSecret": false, "updatedAt": "t" },
                { "key": "B", "value": "", "isSecret": true },
                { "key": "C", "value": "3", "isSecret": false },
                { "key": "D", "value": "4", "isSecret": false },
            ],
        });
        let set = [json!({ "key": "C", "value": "5", "isSecret": false })];
        let body = changed(&current, &json!({ "schedulerSize": "LARGE" }), &set, &["D".into()]);
        let expected = json!({
            "type": "STANDARD", "name": "a", "workspaceId": "w", "executor": "CELERY",
            "isCicdEnforced": false, "isDagDeployEnabled": true, "schedulerSize": "LARGE",
            "isHighAvailability": false,
            "environmentVariables": [
                { "key": "A", "isSecret": false, "value": "1" },
                { "key": "B", "isSecret": true },
                { "key": "C", "value": "5", "isSecret": false },
            ],
        });
        assert_eq!(body, expected);
    }

    #[test]
    fn a_hybrid_one_has_a_scheduler_of_its_own() {
        let current =
            json!({ "type": "HYBRID", "schedulerAu": 5, "schedulerReplicas": 2, "schedulerSize": "SMALL" });
        let body = changed(&current, &json!({}), &[], &[]);
        assert_eq!(body["scheduler"], json!({ "au": 5, "replicas": 2 }));
        assert_eq!(body.get("schedulerSize"), None);
    }
}
