//! Encrypts the secrets of environment objects for the store and decrypts them again; they are bound to their row.

use std::collections::BTreeMap;

use podium_api::{DeploymentId, EnvironmentObjectId};
use podium_domain::environment_objects::{Hidden, Object, Values};
use podium_store::environment_objects::{ObjectRow, Sealed};
use serde_json::Value;

use crate::App;
use crate::error::{Error, Result};

/// Seals the secrets of an object and of its links.
pub(super) fn seal(app: &App, id: EnvironmentObjectId, object: &Object) -> Result<Sealed> {
    let sealed = |owner: &str, values: &Values| -> Result<Option<Vec<u8>>> {
        if values.secret.is_empty() {
            return Ok(None);
        }
        let text = serde_json::to_vec(&values.secret).map_err(|error| Error::Internal(error.to_string()))?;
        Ok(Some(app.secrets.seal(&app.world, owner, &text)))
    };
    let mut links = BTreeMap::new();
    for (deployment_id, overrides) in &object.links {
        if let Some(bytes) = sealed(&link_owner(id, *deployment_id), overrides)? {
            links.insert(*deployment_id, bytes);
        }
    }
    Ok(Sealed { values: sealed(id.as_str(), &object.values)?, links })
}

/// Decrypts the secrets of an object and of its links.
pub(super) fn open(app: &App, row: &ObjectRow) -> Result<Object> {
    let object = &row.object;
    let mut links = BTreeMap::new();
    for (deployment_id, overrides) in &object.links {
        let sealed = row.sealed.links.get(deployment_id);
        let owner = link_owner(row.id, *deployment_id);
        links.insert(*deployment_id, opened(app, &owner, overrides, sealed)?);
    }
    Ok(Object {
        object_type: object.object_type,
        scope: object.scope,
        description: object.description.clone(),
        is_secret: object.is_secret,
        auth_type_id: object.auth_type_id.clone(),
        values: opened(app, row.id.as_str(), &object.values, row.sealed.values.as_ref())?,
        auto_link: object.auto_link,
        links,
        exclusions: object.exclusions.clone(),
    })
}

fn opened(app: &App, owner: &str, values: &Values<Hidden>, sealed: Option<&Vec<u8>>) -> Result<Values> {
    let cannot = || Error::Internal(format!("cannot decrypt the secrets of the environment object {owner}"));
    let secret: BTreeMap<String, Value> = match sealed {
        Some(sealed) => {
            let text = app.secrets.open(owner, sealed).map_err(|_| cannot())?;
            serde_json::from_slice(&text).map_err(|_| cannot())?
        }
        None => BTreeMap::new(),
    };
    Ok(Values { plain: values.plain.clone(), secret })
}

fn link_owner(id: EnvironmentObjectId, deployment_id: DeploymentId) -> String {
    format!("{id}/{deployment_id}")
}
