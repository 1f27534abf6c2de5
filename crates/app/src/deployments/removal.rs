//! What is deleted with a deployment: its tokens, roles, environment objects, deploys, codes, passes and port.

use podium_api::DeploymentId;
use podium_db::Tx;
use podium_store::{
    Scope, agent_tokens, clean_ups, credentials, deploys, environment_objects, event_spools, front_door,
    grants, tokens,
};

use crate::cx::Cx;
use crate::error::Result;

/// Removes everything that belongs to a deployment; returns whether anybody lost a right.
pub(super) fn remove(cx: &Cx<Scope>, tx: &Tx, id: DeploymentId) -> Result<bool> {
    let token_ids = tokens::delete_of_deployment(tx, cx.scope(), id)?;
    for token_id in &token_ids {
        credentials::delete(tx, cx.scope(), (*token_id).into())?;
        grants::delete_subject(tx, cx.scope(), (*token_id).into())?;
    }
    for token_id in agent_tokens::delete_of_deployment(tx, cx.scope(), id)? {
        credentials::delete(tx, cx.scope(), token_id.into())?;
    }
    let roles = grants::delete_deployment(tx, cx.scope(), id)?;
    environment_objects::delete_of_deployment(tx, cx.scope(), id)?;
    front_door::delete_of_deployment(tx, cx.scope(), id, cx.now())?;
    deploys::lock_deployment(tx, cx.scope(), id)?;
    deploys::delete_of_deployment(tx, cx.scope(), id)?;
    event_spools::delete_of_deployment(tx, cx.scope(), id)?;
    clean_ups::delete_of_deployment(tx, cx.scope(), id)?;
    Ok(roles > 0 || !token_ids.is_empty())
}
