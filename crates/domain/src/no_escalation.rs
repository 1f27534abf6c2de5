//! No privilege escalation: nobody can grant a permission that they do not hold.
//!
//! Everything that gives somebody a role (role updates, tokens, invites, teams) checks here. Taking a role away is not
//! escalation and is not checked.

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

/// What a role grants on the resource that it is held on.
fn given(held: &Held, on: &On) -> PermissionSet {
    match on {
        On::Dag { .. } | On::DagTag { .. } => held.permissions().with(SEE_DEPLOYMENT),
        _ => held.permissions(),
    }
}

/// The scope of a role, for messages.
pub(crate) fn place(on: &On) -> String {
    match on {
        On::Organization => "in the organization".into(),
        On::Workspace(id) => format!("in workspace {id}"),
        On::Deployment { id, .. } => format!("on deployment {id}"),
        On::Dag { deployment_id, dag_id, .. } => format!("on DAG `{dag_id}` of deployment {deployment_id}"),
        On::DagTag { deployment_id, tag, .. } => format!("on DAG tag `{tag}` of deployment {deployment_id}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{d1, holder, in_workspace, on_dag, on_deployment, on_tag, owner, w1, w2};
    use crate::grants::Grant;

    #[test]
    fn a_caller_can_grant_only_what_it_holds() {
        let table: [(&str, Grant, bool); 16] = [
            ("ORGANIZATION_OWNER", owner(), true),
            ("ORGANIZATION_BILLING_ADMIN", owner(), false),
            ("ORGANIZATION_BILLING_ADMIN", crate::fixtures::member(), false),
            ("WORKSPACE_OWNER", in_workspace(w1(), "WORKSPACE_OWNER"), true),
            ("WORKSPACE_OWNER", in_workspace(w2(), "WORKSPACE_ACCESSOR"), false),
            ("WORKSPACE_OPERATOR", in_workspace(w1(), "WORKSPACE_OPERATOR"), true),
            ("WORKSPACE_OPERATOR", in_workspace(w1(), "WORKSPACE_OWNER"), false),
            ("WORKSPACE_OPERATOR", on_deployment(d1(), "Tuner"), true),
            ("WORKSPACE_OPERATOR", on_deployment(d1(), "DEPLOYMENT_ADMIN"), false),
            ("WORKSPACE_OWNER", on_deployment(d1(), "DEPLOYMENT_ADMIN"), true),
            ("DEPLOYMENT_ADMIN", in_workspace(w1(), "WORKSPACE_MEMBER"), false),
            ("DEPLOYMENT_ADMIN", on_tag(d1(), "daily", "DAG_AUTHOR"), true),
            ("WORKSPACE_MEMBER", on_dag(d1(), "etl", "DAG_VIEWER"), true),
            ("WORKSPACE_MEMBER", on_dag(d1(), "etl", "DAG_AUTHOR"), false),
            ("DAG_AUTHOR", on_dag(d1(), "etl", "DAG_VIEWER"), true),
            ("DAG_AUTHOR", on_dag(d1(), "other", "DAG_VIEWER"), false),
        ];
        for (giver, gift, allowed) in table {
            assert_eq!(
                may_give(&holder(giver), &gift.held, &gift.on).is_ok(),
                allowed,
                "{giver} gives {gift:?}"
            );
        }
    }

    #[test]
    fn refusals_say_what_is_missing() {
        let gift = on_deployment(d1(), "Tuner");
        let refusal = may_give(&holder("WORKSPACE_MEMBER"), &gift.held, &gift.on).unwrap_err();
        let expected = format!(
            "You may not give Tuner on deployment {}: it includes `deployment.update`, which you do not hold there. \
             Nobody can give more than it holds.",
            d1()
        );
        assert_eq!(refusal, Refusal::Forbidden(expected));
        let refusal = only_owners(&holder("WORKSPACE_OWNER"), "define custom roles").unwrap_err();
        assert_eq!(refusal.message(), "Only an organization owner may define custom roles.");
    }
}
