//! Nobody gives what it does not hold.
//!
//! Everything that hands a role to somebody (role updates, tokens, invites, teams) asks here. Taking a role away is
//! not escalation and is not asked about.

use crate::grants::{Grants, Held, On};
use crate::permissions::{Permission, PermissionSet};
use crate::refusal::{Refusal, Result};

const SEE_DEPLOYMENT: Permission = Permission::known("deployment.get");

/// Refuses to let the caller give a role that holds more than the caller holds at that scope.
pub fn may_give(caller: &Grants, held: &Held, on: &On) -> Result<()> {
    if let Held::Organization(_) = held {
        return only_owners(caller, "give organization roles");
    }
    let missing = given(held, on).without(caller.at(on));
    match missing.iter().next() {
        None => Ok(()),
        Some(first) => Err(Refusal::Forbidden(format!(
            "You may not give {} {}: it includes `{first}`, which you do not hold there. \
             Nobody can give more than it holds.",
            held.name(),
            place(on),
        ))),
    }
}

/// Refuses everybody but organization owners; `what` completes "Only an organization owner may …".
pub fn only_owners(caller: &Grants, what: &str) -> Result<()> {
    if caller.is_owner() {
        return Ok(());
    }
    Err(Refusal::Forbidden(format!("Only an organization owner may {what}.")))
}

/// What a role gives at the very thing it is held on.
fn given(held: &Held, on: &On) -> PermissionSet {
    match on {
        On::Dag { .. } | On::DagTag { .. } => held.permissions().with(SEE_DEPLOYMENT),
        _ => held.permissions(),
    }
}

/// Where a role is given, in words.
pub(crate) fn place(on: &On) -> String {
    match on {
        On::Organization => "in the organization".into(),
        On::Workspace(id) => format!("in workspace {id}"),
        On::Deployment { id, .. } => format!("on deployment {id}"),
        On::Dag { deployment_id, dag_id, .. } => format!("on DAG `{dag_id}` of deployment {deployment_id}"),
        On::DagTag { deployment_id, tag, .. } => format!("on DAG tag `{tag}` of deployment {deployment_id}"),
    }
}
