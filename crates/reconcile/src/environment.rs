//! Everything that a data plane needs, gathered from what is stored: secrets opened, the place worked out.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use podium_api::Id;
use podium_app::App;
use podium_app::deployments::variable_owner;
use podium_dataplane::{Environment, Hidden, Identity, Objects, Setting};
use podium_domain::deployments::EnvironmentVariable;
use podium_store::deployments::DeploymentRow;

/// The environment of a deployment.
pub(crate) fn environment(
    app: &App,
    row: &DeploymentRow,
    is_hibernating: bool,
    mut objects: Objects,
) -> Result<Environment, String> {
    let variables = row.spec.environment_variables.iter().map(|variable| open(app, row.id, variable));
    let variables = variables.collect::<Result<Vec<_>, _>>()?;
    // What the deployment sets itself outranks what is linked to it.
    objects.variables.retain(|object| !variables.iter().any(|own| own.key == object.key));
    let identity = Identity {
        id: row.id,
        organization_id: row.organization_id,
        workspace_id: row.workspace_id,
        cluster_id: row.cluster_id,
        name: row.name.clone(),
        namespace: row.namespace.clone(),
        generation: row.generation,
    };
    let mut environment = Environment::new(identity, &row.spec, is_hibernating, variables, objects);
    if let Some(cluster) = row.cluster.as_ref().filter(|cluster| cluster.is_failed_over) {
        environment.region = Some(cluster.details.dr_region.clone());
        environment.workload_identity =
            row.spec.dr_workload_identity.clone().or(environment.workload_identity);
    }
    Ok(environment)
}

fn open(app: &App, id: Id, variable: &EnvironmentVariable) -> Result<Setting, String> {
    let key = variable.key.clone();
    let Some(secret) = &variable.secret else {
        return Ok(Setting { key, value: Hidden::new(variable.value.clone().unwrap_or_default()) });
    };
    let cannot = || format!("the secret value of the variable {key} cannot be decrypted");
    let sealed = STANDARD.decode(&secret.0).map_err(|_| cannot())?;
    let opened = app.secrets.open(&variable_owner(id, &key), &sealed).map_err(|_| cannot())?;
    let text = std::str::from_utf8(&opened).map_err(|_| cannot())?;
    Ok(Setting { value: Hidden::new(text.to_owned()), key })
}
