//! Roles of users and teams: what is named is added or removed, everything else stays.

use clap::Args;
use serde_json::{Map, Value, json};

use super::ending::{Failed, Outcome};
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
    workspaces: Vec<(String, Option<String>)>,
    deployments: Vec<(String, Option<String>)>,
}

impl RoleChanges {
    /// Whether nothing was named.
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
            let (name, role) = assignment(text)?;
            let id = session.workspace(name).await?.workspace_id;
            workspaces.push((id.to_string(), Some(full_name("WORKSPACE", role))));
        }
        for name in &self.remove_workspace_role {
            workspaces.push((session.workspace(name).await?.workspace_id.to_string(), None));
        }
        let mut deployments = Vec::new();
        for text in &self.deployment_role {
            let (name, role) = assignment(text)?;
            let id = session.deployment(name, None).await?.deployment_id;
            deployments.push((id.to_string(), Some(full_name("DEPLOYMENT", role))));
        }
        for name in &self.remove_deployment_role {
            deployments.push((session.deployment(name, None).await?.deployment_id.to_string(), None));
        }
        let organization = self.role.as_deref().map(|role| full_name("ORGANIZATION", role));
        Ok(ResolvedChanges { organization, workspaces, deployments })
    }
}

impl ResolvedChanges {
    /// The body of an update: the current roles with the changes made.
    pub(crate) fn body(&self, current: &Value) -> Value {
        let mut body = Map::new();
        let organization = self.organization.clone().map(Value::String);
        if let Some(role) = organization.or_else(|| current.get("organizationRole").cloned()) {
            body.insert("organizationRole".into(), role);
        }
        for (list, id, changes) in [
            ("workspaceRoles", "workspaceId", &self.workspaces),
            ("deploymentRoles", "deploymentId", &self.deployments),
        ] {
            if !changes.is_empty() {
                body.insert(list.into(), changed(&current[list], id, changes));
            }
        }
        Value::Object(body)
    }
}

fn changed(current: &Value, key: &str, changes: &[(String, Option<String>)]) -> Value {
    let is_kept = |entry: &&Value| !changes.iter().any(|(id, _)| entry[key] == json!(id));
    let kept = current.as_array().into_iter().flatten().filter(is_kept).cloned();
    let added = changes.iter().filter_map(|(id, role)| Some(json!({ key: id, "role": role.as_ref()? })));
    kept.chain(added).collect()
}

fn assignment(text: &str) -> Outcome<(&str, &str)> {
    text.rsplit_once('=').ok_or_else(|| Failed::usage(format!("{text:?} names no role: write NAME=ROLE")))
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
        let current = json!({
            "organizationRole": "ORGANIZATION_MEMBER",
            "workspaceRoles": [
                { "workspaceId": "a", "role": "WORKSPACE_MEMBER" },
                { "workspaceId": "b", "role": "WORKSPACE_OWNER" },
                { "workspaceId": "c", "role": "WORKSPACE_OWNER" },
            ],
            "deploymentRoles": [{ "deploymentId": "d", "role": "x" }],
        });
        let changes = ResolvedChanges {
            organization: None,
            workspaces: vec![("a".into(), Some("WORKSPACE_AUTHOR".into())), ("b".into(), None)],
            deployments: vec![],
        };
        let expected = json!({
            "organizationRole": "ORGANIZATION_MEMBER",
            "workspaceRoles": [
                { "workspaceId": "c", "role": "WORKSPACE_OWNER" },
                { "workspaceId": "a", "role": "WORKSPACE_AUTHOR" },
            ],
        });
        assert_eq!(changes.body(&current), expected);
    }
}
