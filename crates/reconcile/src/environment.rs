//! Everything that a data plane needs, gathered from what is stored: secrets opened, the place worked out.

use podium_app::App;
use podium_app::deployments::open_variables;
use podium_dataplane::{Environment, Hidden, Identity, Objects, Setting};
use podium_store::deployments::DeploymentRow;
use zeroize::Zeroizing;

/// The environment of a deployment.
pub(crate) fn environment(
    app: &App,
    row: &DeploymentRow,
    is_hibernating: bool,
    mut objects: Objects,
) -> Result<Environment, String> {
    let opened = open_variables(app, row.id, &row.spec).map_err(|error| error.to_string())?;
    let setting =
        |(key, value): (String, Zeroizing<String>)| Setting { key, value: Hidden::new(value.to_string()) };
    let variables: Vec<Setting> = opened.into_iter().map(setting).collect();
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
