//! Moving a deployment to another workspace without gaining rights.
//!
//! A role in the other workspace applies to the deployment once it is there. So the caller needs the right to create
//! deployments in both, and is refused if it would hold more permissions on the deployment after the move than before.

use podium_api::{DeploymentId, WorkspaceId};

use crate::authorize::{Target, require};
use crate::grants::Grants;
use crate::permissions::Permission;
use crate::refusal::{Refusal, Result};

const CREATE: Permission = Permission::known("workspace.deployments.create");

/// Refuses a mover who lacks a right in either workspace, or would gain one on the deployment. A workspace that it may
/// not see is answered like one that does not exist.
pub fn may_move(
    mover: &Grants,
    deployment_id: DeploymentId,
    from: WorkspaceId,
    to: WorkspaceId,
) -> Result<()> {
    for (workspace_id, place) in [(to, "it is moved to"), (from, "it is in now")] {
        require(mover, CREATE, Target::Workspace(workspace_id)).map_err(|refusal| match refusal {
            Refusal::Forbidden(_) => Refusal::Forbidden(format!(
                "To move a deployment you need the permission `{CREATE}` in both workspaces: you do not hold it in the \
                 workspace that {place}."
            )),
            unseen => unseen,
        })?;
    }
    let held = mover.on_deployment(deployment_id, from);
    match mover.on_deployment(deployment_id, to).without(held).iter().next() {
        None => Ok(()),
        Some(gained) => Err(Refusal::Forbidden(format!(
            "In the other workspace you would gain `{gained}` on the deployment. Somebody who holds it already can move \
             the deployment."
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{d1, w1, w2};
    use crate::grants::{Grant, Held, On};

    #[test]
    fn a_mover_needs_both_workspaces_and_gains_nothing() {
        let (here, there) = (On::Workspace(w1()), On::Workspace(w2()));
        let on_it = On::Deployment { id: d1(), workspace_id: w1() };
        let table: [(&[(&On, &str)], u16); 10] = [
            (&[(&On::Organization, "ORGANIZATION_OWNER")], 200),
            (&[(&here, "WORKSPACE_OWNER"), (&there, "WORKSPACE_OWNER")], 200),
            (&[(&here, "WORKSPACE_OPERATOR"), (&there, "WORKSPACE_OPERATOR")], 200),
            (&[(&here, "WORKSPACE_OWNER"), (&there, "WORKSPACE_OPERATOR")], 200),
            (&[(&here, "WORKSPACE_OPERATOR"), (&there, "WORKSPACE_OWNER")], 403),
            (
                &[(&here, "WORKSPACE_OPERATOR"), (&on_it, "DEPLOYMENT_ADMIN"), (&there, "WORKSPACE_OWNER")],
                200,
            ),
            (&[(&on_it, "DEPLOYMENT_ADMIN"), (&there, "WORKSPACE_OPERATOR")], 403),
            (&[(&here, "WORKSPACE_OPERATOR"), (&there, "WORKSPACE_AUTHOR")], 403),
            (&[(&here, "WORKSPACE_OPERATOR")], 404),
            (&[(&there, "WORKSPACE_OPERATOR")], 404),
        ];
        for (held, expected) in table {
            let grant = |(on, role): &(&On, &str)| Grant {
                on: (*on).clone(),
                held: Held::built_in(on, role).expect("a role of that scope"),
            };
            let mover = Grants::new(held.iter().map(grant));
            let status = may_move(&mover, d1(), w1(), w2()).map_or_else(|refusal| refusal.status(), |()| 200);
            assert_eq!(status, expected, "{held:?}");
        }
    }
}
