//! Path parameters: the ids that a path names.

use crate::{
    AgentTokenId, AlertId, AllowedIpAddressRangeId, ClusterId, DeclaredSetId, DeployId, DeploymentId,
    EnvironmentObjectId, Id, InviteId, OperationId, OrganizationId, PlanId, RoleId, SessionId, TeamId,
    TokenId, UserId, WebhookDeliveryId, WebhookId, WorkspaceId, const_text,
};

/// The ids of a path, in the order in which the path names them.
pub trait PathParams: Send + 'static {
    /// Wire names of the parameters.
    const NAMES: &'static [&'static str];
    /// Takes the ids from the path; `ids` has as many as [`Self::NAMES`].
    fn from_ids(ids: &[Id]) -> Self;
    /// The ids, to write the path.
    fn ids(&self) -> Vec<Id>;

    /// A route with these ids in the place of its `{parameters}`.
    fn fill(&self, route: &str) -> String {
        filled(route, &self.ids())
    }
}

/// A route with ids in the place of its `{parameters}`.
pub fn filled(route: &str, ids: &[Id]) -> String {
    let mut ids = ids.iter();
    let part = |part: &str| match part.strip_prefix('{') {
        Some(_) => ids.next().map(Id::to_string).unwrap_or_default(),
        None => part.to_owned(),
    };
    route.split('/').map(part).collect::<Vec<_>>().join("/")
}

/// Whether the `{parameters}` of a route are these, in this order.
pub const fn are_named(route: &str, names: &[&str]) -> bool {
    let mut rest = route;
    let mut found = 0;
    while let Some(start) = const_text::position(rest, b'{') {
        let (_, after) = rest.split_at(start + 1);
        let Some(end) = const_text::position(after, b'}') else { return false };
        let (name, after) = after.split_at(end);
        if found == names.len() || !const_text::same(name, names[found]) {
            return false;
        }
        found += 1;
        rest = after;
    }
    found == names.len()
}

impl PathParams for () {
    const NAMES: &'static [&'static str] = &[];

    fn from_ids(_: &[Id]) -> Self {}

    fn ids(&self) -> Vec<Id> {
        Vec::new()
    }
}

macro_rules! path_params {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $kind:ident = $wire:literal),+ })+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug)]
        pub struct $name { $(#[doc = concat!("`", $wire, "`")] pub $field: $kind),+ }

        impl From<($($kind,)+)> for $name {
            fn from(($($field,)+): ($($kind,)+)) -> Self {
                Self { $($field),+ }
            }
        }

        impl PathParams for $name {
            const NAMES: &'static [&'static str] = &[$($wire),+];

            fn from_ids(ids: &[Id]) -> Self {
                let mut ids = ids.iter().copied();
                Self { $($field: $kind::from_raw(ids.next().expect("as many ids as names"))),+ }
            }

            fn ids(&self) -> Vec<Id> {
                vec![$(self.$field.id()),+]
            }
        }
    )+};
}

path_params! {
    /// An organization.
    InOrganization { organization_id: OrganizationId = "organizationId" }
    /// A workspace of an organization.
    OfWorkspace { organization_id: OrganizationId = "organizationId", workspace_id: WorkspaceId = "workspaceId" }
    /// A team of an organization.
    OfTeam { organization_id: OrganizationId = "organizationId", team_id: TeamId = "teamId" }
    /// A member of a team.
    OfTeamMember { organization_id: OrganizationId = "organizationId", team_id: TeamId = "teamId", member_id: UserId = "memberId" }
    /// A user of an organization.
    OfUser { organization_id: OrganizationId = "organizationId", user_id: UserId = "userId" }
    /// An invite to an organization.
    OfInvite { organization_id: OrganizationId = "organizationId", invite_id: InviteId = "inviteId" }
    /// An API token of an organization.
    OfToken { organization_id: OrganizationId = "organizationId", token_id: TokenId = "tokenId" }
    /// A custom role of an organization.
    OfRole { organization_id: OrganizationId = "organizationId", role_id: RoleId = "roleId" }
    /// A cluster of an organization.
    OfCluster { organization_id: OrganizationId = "organizationId", cluster_id: ClusterId = "clusterId" }
    /// A deployment of an organization.
    OfDeployment { organization_id: OrganizationId = "organizationId", deployment_id: DeploymentId = "deploymentId" }
    /// A deploy to a deployment.
    OfDeploy { organization_id: OrganizationId = "organizationId", deployment_id: DeploymentId = "deploymentId", deploy_id: DeployId = "deployId" }
    /// A session of the caller.
    OfSession { session_id: SessionId = "sessionId" }
    /// An agent token of a deployment.
    OfAgentToken { organization_id: OrganizationId = "organizationId", deployment_id: DeploymentId = "deploymentId", agent_token_id: AgentTokenId = "agentTokenId" }
    /// An environment object of an organization.
    OfEnvironmentObject { organization_id: OrganizationId = "organizationId", environment_object_id: EnvironmentObjectId = "environmentObjectId" }
    /// An operation of an organization.
    OfOperation { organization_id: OrganizationId = "organizationId", operation_id: OperationId = "operationId" }
    /// An allowed address range of an organization.
    OfAllowedIpAddressRange { organization_id: OrganizationId = "organizationId", allowed_ip_address_range_id: AllowedIpAddressRangeId = "allowedIpAddressRangeId" }
    /// A webhook of an organization.
    OfWebhook { organization_id: OrganizationId = "organizationId", webhook_id: WebhookId = "webhookId" }
    /// A delivery of a webhook.
    OfWebhookDelivery { organization_id: OrganizationId = "organizationId", webhook_id: WebhookId = "webhookId", delivery_id: WebhookDeliveryId = "deliveryId" }
    /// An alert of an organization.
    OfAlert { organization_id: OrganizationId = "organizationId", alert_id: AlertId = "alertId" }
    /// A plan of changes in an organization.
    OfPlan { organization_id: OrganizationId = "organizationId", plan_id: PlanId = "planId" }
    /// A set of declared resources of an organization.
    OfDeclaredSet { organization_id: OrganizationId = "organizationId", declared_set_id: DeclaredSetId = "declaredSetId" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_compared_by_name_number_and_order() {
        let names = &["organizationId", "teamId"];
        assert!(are_named("/organizations/{organizationId}/teams/{teamId}/members", names));
        assert!(are_named("/users/self", &[]));
        for wrong in [
            "/organizations/{organizationId}/teams",
            "/organizations/{organizationId}/teams/{id}",
            "/teams/{teamId}/organizations/{organizationId}",
            "/organizations/{organizationId}/teams/{teamId}/members/{memberId}",
            "/organizations/{organizationId}/teams/{teamId",
        ] {
            assert!(!are_named(wrong, names), "{wrong}");
        }
    }
}
