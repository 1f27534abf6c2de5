//! Roles of users and teams: what is named is added or removed, everything else stays.

use clap::Args;
use podium_api::enums::{OrganizationRole, TokenEntity, WorkspaceRoleName};
use podium_api::subjects::{DeploymentRole, WorkspaceRole};
use podium_api::{DeploymentId, WorkspaceId};
use serde::Deserialize;

use super::answer::Word;
use super::ending::{Failed, Outcome};
use super::fields::one_of;
use super::session::Session;

/// Changes to the roles of a user or a team.
#[derive(Args, Clone, Default)]
pub(crate) struct RoleChanges {
    /// Role in the organization, such as owner or member.
    #[arg(long, value_name = "ROLE")]
    role: Option<String>,
    /// Role in a workspace, such as Reports=author.
    #[arg(long, value_name = "WORKSPACE=ROLE")]
    workspace_role: Vec<String>,
    /// Role on a deployment, such as nightly=admin.
    #[arg(long, value_name = "DEPLOYMENT=ROLE")]
    deployment_role: Vec<String>,
    /// Workspace whose role to remove.
    #[arg(long, value_name = "WORKSPACE")]
    remove_workspace_role: Vec<String>,
    /// Deployment whose role to remove.
    #[arg(long, value_name = "DEPLOYMENT")]
    remove_deployment_role: Vec<String>,
}

/// Changes with ids in the place of names.
pub(crate) struct ResolvedChanges {
    organization: Option<String>,
    workspaces: Vec<(WorkspaceId, Option<WorkspaceRoleName>)>,
    deployments: Vec<(DeploymentId, Option<String>)>,
}

impl RoleChanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.role.is_none()
            && self.workspace_role.is_empty()
            && self.deployment_role.is_empty()
            && self.remove_workspace_role.is_empty()
            && self.remove_deployment_role.is_empty()
    }

    /// Finds the workspaces and deployments that are named.
    pub(crate) async fn resolve(&self, session: &Session) -> Outcome<ResolvedChanges> {
        if self.is_empty() {
            return Err(Failed::usage("nothing to change: give a role, see --help"));
        }
        let mut workspaces = Vec::new();
        for text in &self.workspace_role {
            let (name, role) = assignment(text, "NAME")?;
            let id = session.workspace(name).await?.workspace_id;
            workspaces.push((id, Some(one_of(WorkspaceRoleName::ALL, &full_name("WORKSPACE", role))?)));
        }
        for name in &self.remove_workspace_role {
            workspaces.push((session.workspace(name).await?.workspace_id, None));
        }
        let mut deployments = Vec::new();
        for text in &self.deployment_role {
            let (name, role) = assignment(text, "NAME")?;
            let id = session.deployment(name, None).await?.deployment_id;
            deployments.push((id, Some(full_name("DEPLOYMENT", role))));
        }
        for name in &self.remove_deployment_role {
            deployments.push((session.deployment(name, None).await?.deployment_id, None));
        }
        let organization = self.role.as_deref().map(|role| full_name("ORGANIZATION", role));
        Ok(ResolvedChanges { organization, workspaces, deployments })
    }
}

impl ResolvedChanges {
    /// The role in the organization, given the current one.
    pub(crate) fn organization(&self, current: Option<OrganizationRole>) -> Option<String> {
        self.organization.clone().or(current.map(|role| role.to_string()))
    }

    /// The current roles in workspaces with the changes made; nothing if there are none.
    pub(crate) fn workspaces(&self, current: Option<Vec<WorkspaceRole>>) -> Option<Vec<WorkspaceRole>> {
        let mut roles = Some(current.unwrap_or_default()).filter(|_| !self.workspaces.is_empty())?;
        roles.retain(|held| !self.workspaces.iter().any(|(id, _)| *id == held.workspace_id));
        let added = self.workspaces.iter().filter_map(|(id, role)| Some((*id, (*role)?)));
        roles.extend(added.map(|(workspace_id, role)| WorkspaceRole { role, workspace_id }));
        Some(roles)
    }

    /// The same for roles on deployments.
    pub(crate) fn deployments(&self, current: Option<Vec<DeploymentRole>>) -> Option<Vec<DeploymentRole>> {
        let mut roles = Some(current.unwrap_or_default()).filter(|_| !self.deployments.is_empty())?;
        roles.retain(|held| !self.deployments.iter().any(|(id, _)| *id == held.deployment_id));
        let added = self.deployments.iter().filter_map(|(id, role)| Some((*id, role.clone()?)));
        roles.extend(added.map(|(deployment_id, role)| DeploymentRole { deployment_id, role }));
        Some(roles)
    }
}

/// A role that a token holds.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct HeldByToken {
    pub(crate) entity_type: Word<TokenEntity>,
    pub(crate) entity_id: String,
    pub(crate) deployment_id: Option<DeploymentId>,
    pub(crate) role: String,
}

/// A role in the organization, by its short or full name.
pub(crate) fn organization_role(role: &str) -> Outcome<OrganizationRole> {
    one_of(OrganizationRole::ALL, &full_name("ORGANIZATION", role))
}

/// The two sides of `NAME=ROLE`, where the first is called so.
pub(crate) fn assignment<'a>(text: &'a str, name: &str) -> Outcome<(&'a str, &'a str)> {
    let wrong = || Failed::usage(format!("{text:?} names no role: write {name}=ROLE"));
    text.rsplit_once('=').ok_or_else(wrong)
}

/// The wire's name of a role: `owner` and `workspace-owner` are WORKSPACE_OWNER. Custom roles are taken as they are.
pub(crate) fn full_name(scope: &str, role: &str) -> String {
    const SHORT: &[&str] = &[
        "OWNER",
        "BILLING_ADMIN",
        "OBSERVE_ADMIN",
        "OBSERVE_MEMBER",
        "MEMBER",
        "OPERATOR",
        "AUTHOR",
        "ACCESSOR",
        "ADMIN",
    ];
    let upper = role.to_uppercase().replace('-', "_");
    match upper.strip_prefix(&format!("{scope}_")) {
        Some(_) => upper,
        None if SHORT.contains(&upper.as_str()) => format!("{scope}_{upper}"),
        None => role.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_short_names() {
        assert_eq!(full_name("ORGANIZATION", "owner"), "ORGANIZATION_OWNER");
        assert_eq!(full_name("ORGANIZATION", "billing-admin"), "ORGANIZATION_BILLING_ADMIN");
        assert_eq!(full_name("WORKSPACE", "WORKSPACE_AUTHOR"), "WORKSPACE_AUTHOR");
        assert_eq!(full_name("DEPLOYMENT", "Night watch"), "Night watch");
    }

    #[test]
    fn only_what_is_named_changes() {
        let id = |letter: char| format!("c00000000000000000000000{letter}");
        let workspace = |letter: char| id(letter).parse::<WorkspaceId>().unwrap();
        let held = |letter: char, role| WorkspaceRole { role, workspace_id: workspace(letter) };
        let (member, author, owner) =
            (WorkspaceRoleName::Member, WorkspaceRoleName::Author, WorkspaceRoleName::Owner);
        let changes = ResolvedChanges {
            organization: None,
            workspaces: vec![(workspace('a'), Some(author)), (workspace('b'), None)],
            deployments: vec![],
        };
        let current = vec![held('a', member), held('b', owner), held('c', owner)];
        assert_eq!(changes.workspaces(Some(current)), Some(vec![held('c', owner), held('a', author)]));
        let deployment = DeploymentRole { deployment_id: id('d').parse().unwrap(), role: "x".into() };
        assert_eq!(changes.deployments(Some(vec![deployment])), None);
        let kept = changes.organization(Some(OrganizationRole::Member));
        assert_eq!(kept.as_deref(), Some("ORGANIZATION_MEMBER"));
    }
}
