//! Secret environment variables: sealed for their deployment and key, opened only to run it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use podium_api::Id;
use podium_domain::deployments::{EnvironmentVariable, Secret, Spec};
use zeroize::Zeroizing;

use crate::App;
use crate::error::{Error, Result};

/// Encrypts the value of a variable of a deployment.
pub(super) fn seal(app: &App, id: Id, key: &str, value: &str) -> Secret {
    Secret(STANDARD.encode(app.secrets.seal(&app.world, &owner(id, key), value.as_bytes())))
}

/// The variables of a deployment with their values, secrets opened: for the data plane and for nobody else.
pub fn open_variables(app: &App, id: Id, spec: &Spec) -> Result<Vec<(String, Zeroizing<String>)>> {
    spec.environment_variables.iter().map(|variable| open(app, id, variable)).collect()
}

fn open(app: &App, id: Id, variable: &EnvironmentVariable) -> Result<(String, Zeroizing<String>)> {
    let key = variable.key.clone();
    let Some(Secret(sealed)) = &variable.secret else {
        return Ok((key, Zeroizing::new(variable.value.clone().unwrap_or_default())));
    };
    let closed = || Error::Internal(format!("the variable {key} of deployment {id} cannot be opened"));
    let sealed = STANDARD.decode(sealed).map_err(|_| closed())?;
    let opened = app.secrets.open(&owner(id, &key), &sealed).map_err(|_| closed())?;
    let value = String::from_utf8(opened.to_vec()).map_err(|_| closed())?;
    Ok((key, Zeroizing::new(value)))
}

/// What a sealed value is bound to.
fn owner(id: Id, key: &str) -> String {
    format!("deployment {id} variable {key}")
}
