//! Deployments.

use podium_api::declarations::{Deployment, EnvironmentVariable, WorkerQueue};
use podium_api::deployments::{
    self as api, CreateDeploymentRequest, DeploymentEnvironmentVariableRequest as Variable,
    DeploymentHibernationOverrideRequest, DeploymentScalingSpec, WorkerQueueRequest,
};
use podium_api::enums::DeploymentType;
use podium_api::union::OneOf;
use podium_api::{ClusterId, WorkspaceId};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Difference, Entry, Kind, Names, Outcome, Planner, Resource, merged, object, read, same};
use crate::client::answer::Word;
use crate::client::declared::keys::Key;
use crate::client::declared::references::secret;
use crate::client::kept::Kept;

/// What is read of a deployment to show it as files do.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    name: String,
    workspace_id: WorkspaceId,
    #[serde(rename = "type")]
    kind: Option<Word<DeploymentType>>,
    scheduler_au: Option<u32>,
    scheduler_replicas: Option<u32>,
    #[serde(default)]
    environment_variables: Vec<Variable>,
}

/// What is read of a deployment to change it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Now {
    cluster_id: Option<ClusterId>,
    platform_runtime_version: String,
    scaling_spec: Option<DeploymentScalingSpec>,
}

impl Resource for Deployment {
    type List = api::List;
    type Get = api::Get;

    const FIXED: &'static [&'static str] = &["type", "cluster", "cloudProvider", "region"];

    fn reshaped(names: &Names, wire: &Value) -> Outcome<Value> {
        let shown: Shown = read(wire)?;
        let is = |wanted| shown.kind.as_ref().is_some_and(|kind| kind.is(wanted));
        let workspace = names.of(shown.workspace_id.as_str());
        let variables = shown.environment_variables.iter().map(|Variable { key, value, is_secret }| {
            let value = if *is_secret { secret(&[&workspace, &shown.name, key]) } else { json!(value) };
            json!({ "key": key, "value": value, "isSecret": is_secret })
        });
        let variables = json!({ "environmentVariables": variables.collect::<Vec<_>>() });
        let place = match is(DeploymentType::Standard) {
            true => json!({ "cluster": null }),
            false => json!({ "cloudProvider": null, "region": null }),
        };
        let (au, replicas) = (shown.scheduler_au, shown.scheduler_replicas);
        let scheduler = match is(DeploymentType::Hybrid) {
            true => json!({ "schedulerSize": null, "scheduler": { "au": au, "replicas": replicas } }),
            false => json!({}),
        };
        Ok(merged(merged(variables, place), scheduler))
    }

    fn create(self, planner: &mut Planner<'_>, entry: &Entry) -> Outcome {
        let cluster_id = match &self.cluster {
            Some(name) => Some(planner.id(Kind::Cluster, name, &entry.at)?),
            None => None,
        };
        // A workspace decides for those that name neither.
        let is_on_new_cluster = match &self.cluster {
            Some(name) => planner.is_new(Kind::Cluster, name),
            None => {
                let workspace = Key::named(Kind::Workspace, &self.workspace);
                self.cloud_provider.is_none() && planner.on_new_clusters.contains(&workspace)
            }
        };
        let body = CreateDeploymentRequest { cluster_id, ..request(planner, entry, self, cluster_id)? };
        planner.create::<api::Create>(entry, &OneOf(body))?.is_on_new_cluster = is_on_new_cluster;
        Ok(())
    }

    fn change(planner: &mut Planner<'_>, entry: &Entry, found: Difference<Self>) -> Outcome {
        let now: Now = found.now()?;
        if let Some(declared) = &found.changed.platform_runtime_version {
            planner.note(format!(
                "{}: the runtime is {:?}, but declared as {declared:?}: a deploy changes it, not this file.",
                entry.at, now.platform_runtime_version
            ));
            if found.fields.len() == 1 {
                return Ok(());
            }
        }
        let changed = Self { platform_runtime_version: None, ..found.changed.clone() };
        let mut change = request(planner, entry, changed, now.cluster_id)?;
        let held = now.scaling_spec.and_then(|spec| spec.hibernation_spec?.override_);
        let hibernation = change.scaling_spec.as_mut().and_then(|spec| spec.hibernation_spec.as_mut());
        if let (Some(hibernation), Some(held)) = (hibernation, held) {
            let (is_hibernating, override_until) = (held.is_hibernating, held.override_until);
            hibernation.override_ =
                Some(DeploymentHibernationOverrideRequest { is_hibernating, override_until });
        }
        // Names ignore case: another spelling finds the deployment, and does not rename it.
        change.name.clone_from(&found.existing.name);
        let body = found.now::<Kept>()?.changed(&object(&change), &[], &[]);
        planner.change::<api::Update, _>(entry, &found, &body).map(drop)
    }
}

fn request(
    planner: &Planner<'_>,
    entry: &Entry,
    mut declared: Deployment,
    cluster_id: Option<ClusterId>,
) -> Outcome<CreateDeploymentRequest> {
    let pool =
        |name: Option<&String>| name.map(|name| planner.node_pool(cluster_id, name, &entry.at)).transpose();
    let workspace_id: WorkspaceId = planner.id(Kind::Workspace, &declared.workspace, &entry.at)?;
    let (queues, variables) = (declared.worker_queues.take(), declared.environment_variables.take());
    let fields = merged(object(&declared), json!({ "workspaceId": workspace_id }));
    let mut request: CreateDeploymentRequest = same(fields, &entry.at)?;
    if let Some(queues) = queues {
        let queue = |queue: WorkerQueue| {
            let is_default = json!({ "isDefault": queue.name == "default" });
            let request: WorkerQueueRequest = same(merged(object(&queue), is_default), &entry.at)?;
            Ok(WorkerQueueRequest { node_pool_id: pool(queue.node_pool.as_ref())?, ..request })
        };
        request.worker_queues = Some(queues.into_iter().map(queue).collect::<Outcome<_>>()?);
    }
    request.task_pod_node_pool_id = pool(declared.task_pod_node_pool.as_ref())?;
    // A secret without a value keeps the stored one.
    let variable = |EnvironmentVariable { key, value, is_secret }| {
        let is_secret = is_secret.unwrap_or_default();
        Variable { key, value, is_secret }
    };
    request.environment_variables = variables.map(|all| all.into_iter().map(variable).collect());
    Ok(request)
}
