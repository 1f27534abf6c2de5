//! The values of API tokens: signed here, before the transaction that stores their hashes.

use std::time::Duration;

use podium_api::enums::TokenScope;
use podium_api::tokens::CreateApiTokenRequest;
use podium_api::{DeploymentId, OrganizationId, TokenId, WorkspaceId};
use podium_domain::Target;
use podium_store::credentials::{NewToken, TokenOf};
use podium_store::tokens::TokenOwner;
use podium_store::{Scope, deployments};

use crate::cx::Cx;
use crate::error::Result;
use crate::issued::Issued;

/// Signs a value for a token. Its claims tell a program where it works; its rights come from the store.
pub(super) fn issue(
    cx: &Cx<Scope>,
    id: TokenId,
    belongs_to: Target,
    period_in_days: Option<u32>,
) -> Issued<NewToken> {
    let expires_at = period_in_days.map(|days| cx.now() + Duration::from_hours(24 * u64::from(days)));
    let token = NewToken { id: TokenOf::Api(id), expires_at };
    cx.app().issue_token(token, places(cx.organization_id(), belongs_to), cx.now())
}

fn places(organization_id: OrganizationId, belongs_to: Target) -> Vec<String> {
    let TokenOwner { workspace_id, deployment_id, .. } = home(organization_id, belongs_to);
    let named = [
        ("organizationId", Some(organization_id.id())),
        ("workspaceId", workspace_id.map(WorkspaceId::id)),
        ("deploymentId", deployment_id.map(DeploymentId::id)),
    ];
    named.into_iter().filter_map(|(name, id)| Some(format!("{name}:{}", id?))).collect()
}

/// What a new token is to belong to, for its claims; whether it may is decided later.
pub(super) async fn asked_for(cx: &Cx<Scope>, body: &CreateApiTokenRequest) -> Result<Target> {
    match (body.scope, body.entity_id) {
        (TokenScope::Workspace, Some(id)) => Ok(Target::Workspace(id.as_workspace())),
        (TokenScope::Deployment, Some(id)) => {
            let found = cx
                .read(move |cx, conn| Ok(deployments::workspaces(conn, cx.scope(), &[id.as_deployment()])?))
                .await?;
            let on =
                |&(id, workspace_id): &(DeploymentId, WorkspaceId)| Target::Deployment { id, workspace_id };
            Ok(found.first().map_or(Target::Organization, on))
        }
        _ => Ok(Target::Organization),
    }
}

/// What a token belongs to, as it is stored.
pub(super) fn home(organization_id: OrganizationId, belongs_to: Target) -> TokenOwner {
    match belongs_to {
        Target::Organization => {
            TokenOwner { entity_id: organization_id.into(), workspace_id: None, deployment_id: None }
        }
        Target::Workspace(id) => {
            TokenOwner { entity_id: id.into(), workspace_id: Some(id), deployment_id: None }
        }
        Target::Deployment { id, workspace_id } => {
            TokenOwner { entity_id: id.into(), workspace_id: Some(workspace_id), deployment_id: Some(id) }
        }
    }
}

#[cfg(test)]
mod tests {
    use podium_api::Id;

    use super::*;

    #[test]
    fn a_token_names_its_scope() {
        let [organization, workspace, deployment] = [1, 2, 3].map(|n| Id::from_parts(0, n, 0));
        let organization = OrganizationId::from_raw(organization);
        let (workspace, deployment) = (WorkspaceId::from_raw(workspace), DeploymentId::from_raw(deployment));
        let on_deployment = Target::Deployment { id: deployment, workspace_id: workspace };
        let table = [
            (Target::Organization, vec![format!("organizationId:{organization}")]),
            (
                Target::Workspace(workspace),
                vec![format!("organizationId:{organization}"), format!("workspaceId:{workspace}")],
            ),
            (
                on_deployment,
                vec![
                    format!("organizationId:{organization}"),
                    format!("workspaceId:{workspace}"),
                    format!("deploymentId:{deployment}"),
                ],
            ),
        ];
        for (target, expected) in table {
            assert_eq!(places(organization, target), expected, "{target:?}");
        }
    }
}
