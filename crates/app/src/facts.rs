//! Loads the resources and roles that a role request mentions: only those, and each kind in one statement.

use podium_api::{DeploymentId, WorkspaceId};
use podium_db::Conn;
use podium_domain::assignable::{Facts, Mentions};
use podium_store::{Scope, deployments, roles, workspaces};

use crate::error::Result;

/// Loads what is known of the mentioned resources.
pub(crate) fn load(conn: &Conn, scope: &Scope, mentions: &Mentions) -> Result<Facts> {
    let mut facts = Facts::default();
    if !mentions.workspaces.is_empty() {
        let ids: Vec<WorkspaceId> = mentions.workspaces.iter().copied().collect();
        facts.workspaces.extend(workspaces::exist(conn, scope, &ids)?);
    }
    if !mentions.deployments.is_empty() {
        let ids: Vec<DeploymentId> = mentions.deployments.iter().copied().collect();
        facts.deployments.extend(deployments::workspaces(conn, scope, &ids)?);
    }
    if !mentions.custom_roles.is_empty() {
        let names: Vec<&str> = mentions.custom_roles.iter().map(String::as_str).collect();
        facts.custom_roles = roles::by_names(conn, scope, &names)?;
    }
    Ok(facts)
}
