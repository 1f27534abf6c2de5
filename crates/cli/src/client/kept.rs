//! What an update keeps of a deployment: the API takes a whole deployment, so what is not named is sent back as it was read.

use podium_api::WorkspaceId;
use podium_api::deployments::{DeploymentEnvironmentVariableRequest as Variable, InstanceSpecRequest};
use podium_api::enums::DeploymentType;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::answer::Word;
use super::fields::{merged, object};

/// What an update takes of a deployment as it is.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Kept {
    #[serde(rename = "type")]
    kind: Option<Word<DeploymentType>>,
    name: String,
    workspace_id: Option<WorkspaceId>,
    description: Option<String>,
    executor: Option<String>,
    is_cicd_enforced: Option<bool>,
    is_dag_deploy_enabled: Option<bool>,
    scheduler_size: Option<String>,
    is_high_availability: Option<bool>,
    scheduler: Option<InstanceSpecRequest>,
    #[serde(skip_serializing)]
    scheduler_au: Option<u32>,
    #[serde(skip_serializing)]
    scheduler_replicas: Option<u32>,
    #[serde(default)]
    pub(crate) environment_variables: Vec<Variable>,
}

impl Kept {
    /// The body of an update that changes some fields, and sets and removes some variables.
    pub(crate) fn changed(mut self, change: &Value, set: &[Variable], removed: &[String]) -> Value {
        if self.kind.as_ref().is_some_and(|kind| kind.is(DeploymentType::Hybrid)) {
            let (au, replicas) = (self.scheduler_au, self.scheduler_replicas);
            self.scheduler = Some(InstanceSpecRequest { au, replicas });
            self.scheduler_size = None;
            self.is_high_availability = None;
        }
        let variables = &mut self.environment_variables;
        variables.retain(|it| !removed.contains(&it.key) && !set.iter().any(|new| new.key == it.key));
        // A secret without a value keeps the stored one.
        variables.iter_mut().filter(|it| it.is_secret).for_each(|it| it.value = None);
        variables.extend_from_slice(set);
        merged(object(&self), change.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn changed(now: Value, change: &Value, set: &[Variable], removed: &[String]) -> Value {
        serde_json::from_value::<Kept>(now).unwrap().changed(change, set, removed)
    }

    #[test]
    fn what_is_not_named_is_sent_back() {
        let id = "c00000000000000000000000a";
        let current = json!({
            "id": "x", "type": "STANDARD", "name": "a", "workspaceId": id, "executor": "CELERY",
            "isCicdEnforced": false, "isDagDeployEnabled": true, "schedulerSize": "SMALL",
            "isHighAvailability": false, "status": "HEALTHY",
            "environmentVariables": [
                { "key": "A", "value": "1", "isSecret": false, "updatedAt": "t" },
                { "key": "B", "value": "", "isSecret": true },
                { "key": "C", "value": "3", "isSecret": false },
                { "key": "D", "value": "4", "isSecret": false },
            ],
        });
        let set = [Variable { key: "C".into(), value: Some("5".into()), is_secret: false }];
        let body = changed(current, &json!({ "schedulerSize": "LARGE" }), &set, &["D".into()]);
        let expected = json!({
            "type": "STANDARD", "name": "a", "workspaceId": id, "executor": "CELERY",
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
        let current = json!({
            "type": "HYBRID", "name": "a", "schedulerAu": 5, "schedulerReplicas": 2, "schedulerSize": "SMALL",
        });
        let body = changed(current, &json!({}), &[], &[]);
        assert_eq!(body["scheduler"], json!({ "au": 5, "replicas": 2 }));
        assert_eq!(body.get("schedulerSize"), None);
    }
}
