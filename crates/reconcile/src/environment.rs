//! Builds the environment for a data plane from what is stored, with decrypted secrets and the current region.

use podium_api::enums::EnvironmentObjectType;
use podium_app::App;
use podium_app::deployments::open_variables;
use podium_app::environment_objects::resolved_for;
use podium_dataplane::{Environment, Objects, Secret, Setting};
use podium_domain::Reason;
use podium_domain::environment_objects::environment as airflow;
use podium_domain::environment_objects::resolve::Resolved;
use podium_store::Steward;
use podium_store::deployments::DeploymentRow;
use podium_store::environment_objects::ObjectRow;
use serde_json::Value;

/// The environment of a deployment, or why it cannot be built.
pub(crate) async fn environment(
    app: &App,
    system: Steward,
    row: &DeploymentRow,
    is_hibernating: bool,
) -> Result<Environment, Reason> {
    let opened = open_variables(app, row.id, &row.spec)
        .map_err(|error| Reason::new("its environment variables cannot be read", error))?;
    let is_secret = |name: &str| {
        row.spec.environment_variables.iter().any(|known| known.key == name && known.secret.is_some())
    };
    let variables = opened.into_iter().map(|(key, value)| {
        let is_secret = is_secret(&key);
        Setting { key, value: Secret::new(value.to_string()), is_secret }
    });
    let mut spec = row.spec.clone();
    spec.environment_variables.clear();
    if let Some(cluster) = row.cluster.as_ref().filter(|cluster| cluster.is_failed_over) {
        spec.region = Some(cluster.details.dr_region.clone());
        spec.workload_identity = spec.dr_workload_identity.clone().or(spec.workload_identity);
    }
    Ok(Environment {
        id: row.id,
        organization_id: row.organization_id,
        workspace_id: row.workspace_id,
        cluster_id: row.cluster_id,
        name: row.name.clone(),
        namespace: row.namespace.clone(),
        generation: row.generation,
        is_hibernating,
        spec,
        variables: variables.collect(),
        objects: objects(app, system, row).await?,
    })
}

/// The settings that a deployment gets from environment objects.
async fn objects(app: &App, system: Steward, row: &DeploymentRow) -> Result<Objects, Reason> {
    let (resolver, deployment) = (app.clone(), row.clone());
    let resolved =
        app.db(&system).page(None, move |conn| resolved_for(&resolver, &system, conn, &deployment)).await;
    let resolved = resolved.map_err(|error| Reason::new("its environment objects cannot be read", error))?;
    let settings = |kind: EnvironmentObjectType| {
        let of_kind = resolved.iter().filter(|given| given.object.object_type == kind);
        let setting = |given: &Resolved<Value, ObjectRow>| Setting {
            key: given.key.clone(),
            value: Secret::new(text(kind, given)),
            is_secret: given.object.is_secret,
        };
        of_kind.map(setting).collect::<Vec<Setting>>()
    };
    Ok(Objects {
        variables: settings(EnvironmentObjectType::EnvironmentVariable),
        connections: settings(EnvironmentObjectType::Connection),
        airflow_variables: settings(EnvironmentObjectType::AirflowVariable),
        metrics_exports: settings(EnvironmentObjectType::MetricsExport),
    })
}

/// An object as the data plane reads it: its value, or a JSON document.
fn text(kind: EnvironmentObjectType, given: &Resolved<Value, ObjectRow>) -> String {
    match kind {
        EnvironmentObjectType::Connection => airflow::connection(&given.values),
        EnvironmentObjectType::MetricsExport => Value::Object(given.values.nested(kind)).to_string(),
        EnvironmentObjectType::EnvironmentVariable | EnvironmentObjectType::AirflowVariable => {
            airflow::value(&given.values)
        }
    }
}
