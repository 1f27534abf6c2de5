//! Secret environment variables: encrypted, bound to their deployment and key, and decrypted only to run it.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use podium_api::DeploymentId;
use podium_domain::deployments::variables::Seals;
use podium_domain::deployments::{EnvironmentVariable, Secret, Spec};
use zeroize::Zeroizing;

use crate::App;
use crate::error::{Error, Result};

pub(super) struct Variables<'a> {
    pub(super) app: &'a App,
    pub(super) id: DeploymentId,
}

impl Seals for Variables<'_> {
    fn seal(&self, key: &str, value: &str) -> Secret {
        let Self { app, id } = self;
        Secret(STANDARD.encode(app.secrets.seal(&app.world, &owner(*id, key), value.as_bytes())))
    }

    /// What cannot be opened is another value: it is sealed anew.
    fn holds(&self, key: &str, sealed: &Secret, value: &str) -> bool {
        let opened = open_secret(self.app, self.id, key, sealed);
        opened.is_some_and(|opened| verify_slices_are_equal(&opened, value.as_bytes()).is_ok())
    }
}

/// The variables of a deployment with their values, secrets decrypted: for the data plane only.
pub fn open_variables(app: &App, id: DeploymentId, spec: &Spec) -> Result<Vec<(String, Zeroizing<String>)>> {
    spec.environment_variables.iter().map(|variable| open(app, id, variable)).collect()
}

fn open(app: &App, id: DeploymentId, variable: &EnvironmentVariable) -> Result<(String, Zeroizing<String>)> {
    let key = variable.key.clone();
    let Some(sealed) = &variable.secret else {
        return Ok((key, Zeroizing::new(variable.value.clone().unwrap_or_default())));
    };
    let closed = || Error::Internal(format!("cannot decrypt the variable {key} of deployment {id}"));
    let opened = open_secret(app, id, &key, sealed).ok_or_else(closed)?;
    let value = String::from_utf8(opened.to_vec()).map_err(|_| closed())?;
    Ok((key, Zeroizing::new(value)))
}

fn open_secret(
    app: &App,
    id: DeploymentId,
    key: &str,
    Secret(sealed): &Secret,
) -> Option<Zeroizing<Vec<u8>>> {
    let sealed = STANDARD.decode(sealed).ok()?;
    app.secrets.open(&owner(id, key), &sealed).ok()
}

/// What a sealed value is bound to.
fn owner(id: DeploymentId, key: &str) -> String {
    format!("deployment {id} variable {key}")
}
