//! Links and exclusions of environment objects, and what happens to objects when their owner is deleted.

use std::collections::HashMap;

use podium_api::{DeploymentId, EntityId, EnvironmentObjectId, WorkspaceId};
use podium_db::{Conn, Result, Tx, params, statements};

use super::{Document, KIND, ObjectRow};
use crate::Scope;
use crate::columns::{Columns, document};
use crate::counters;

statements! {
    LINKS = "SELECT object_id, deployment_id, document, sealed_secrets FROM environment_object_links \
        WHERE object_id IN ($1[])";
    LINKS_TO = "SELECT object_id, deployment_id, document, sealed_secrets FROM environment_object_links \
        WHERE deployment_id = $1";
    EXCLUSIONS = "SELECT object_id, deployment_id FROM environment_object_exclusions WHERE object_id IN ($1[])";
    INSERT_LINK = "INSERT INTO environment_object_links (object_id, deployment_id, document, sealed_secrets) \
        VALUES ($1, $2, $3, $4)";
    INSERT_EXCLUSION = "INSERT INTO environment_object_exclusions (object_id, deployment_id) VALUES ($1, $2)";
    DELETE_LINKS = "DELETE FROM environment_object_links WHERE object_id = $1";
    DELETE_EXCLUSIONS = "DELETE FROM environment_object_exclusions WHERE object_id = $1";
    DELETE_LINKS_TO = "DELETE FROM environment_object_links WHERE deployment_id = $1 AND EXISTS \
        (SELECT 1 FROM environment_objects o WHERE o.id = object_id AND o.organization_id = $2)";
    DELETE_EXCLUSIONS_OF = "DELETE FROM environment_object_exclusions WHERE deployment_id = $1 AND EXISTS \
        (SELECT 1 FROM environment_objects o WHERE o.id = object_id AND o.organization_id = $2)";
    DELETE_OF_ENTITY = "DELETE FROM environment_objects WHERE entity_id = $1 AND organization_id = $2 RETURNING id";
    LOCK_WORKSPACE = "UPDATE workspaces SET version = version WHERE id = $1 AND organization_id = $2";
    LOCK_DEPLOYMENTS = "UPDATE deployments SET version = version WHERE id IN ($1[]) AND organization_id = $2 \
        RETURNING id, workspace_id";
}

/// Fills in the links and exclusions of objects, each by one statement.
pub(super) fn fill(conn: &Conn, rows: &mut [ObjectRow]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let ids: Vec<String> = rows.iter().map(|row| row.id.to_string()).collect();
    fill_links(conn, &LINKS, (&ids).into(), rows)?;
    let places = places(rows);
    conn.query(&EXCLUSIONS, params![&ids], |found| {
        if let Some(index) = places.get(&found.id(0)?) {
            rows[*index].object.exclusions.insert(found.id(1)?);
        }
        Ok(())
    })?;
    Ok(())
}

pub(super) fn fill_one(conn: &Conn, deployment_id: DeploymentId, rows: &mut [ObjectRow]) -> Result<()> {
    fill_links(conn, &LINKS_TO, deployment_id.as_str().into(), rows)
}

fn fill_links(
    conn: &Conn,
    sql: &podium_db::Sql,
    param: podium_db::Value<'_>,
    rows: &mut [ObjectRow],
) -> Result<()> {
    let places = places(rows);
    conn.query(sql, &[param], |found| {
        let (object_id, deployment_id): (EnvironmentObjectId, DeploymentId) = (found.id(0)?, found.id(1)?);
        if let Some(index) = places.get(&object_id) {
            let row = &mut rows[*index];
            row.object.links.insert(deployment_id, found.document::<Document>(2)?.values());
            if let Some(sealed) = found.get::<Option<Vec<u8>>>(3)? {
                row.sealed.links.insert(deployment_id, sealed);
            }
        }
        Ok(())
    })?;
    Ok(())
}

fn places(rows: &[ObjectRow]) -> HashMap<EnvironmentObjectId, usize> {
    rows.iter().enumerate().map(|(index, row)| (row.id, index)).collect()
}

/// Adds the links and exclusions of an object that has none.
pub(super) fn insert(tx: &Tx, row: &ObjectRow) -> Result<()> {
    for (deployment_id, overrides) in &row.object.links {
        let kept = document(&Document::of(overrides))?;
        let sealed = row.sealed.links.get(deployment_id).map(Vec::as_slice);
        tx.execute(&INSERT_LINK, params![row.id.as_str(), deployment_id.as_str(), &kept, sealed])?;
    }
    for deployment_id in &row.object.exclusions {
        tx.execute(&INSERT_EXCLUSION, params![row.id.as_str(), deployment_id.as_str()])?;
    }
    Ok(())
}

/// Removes the links and exclusions of an object.
pub(super) fn delete(tx: &Tx, id: EnvironmentObjectId) -> Result<()> {
    tx.execute(&DELETE_LINKS, params![id.as_str()])?;
    tx.run(&DELETE_EXCLUSIONS, params![id.as_str()])
}

/// Removes the objects of a workspace. Goes after the workspace itself, so that none is added meanwhile.
pub fn delete_of_workspace(tx: &Tx, scope: &Scope, workspace_id: WorkspaceId) -> Result<()> {
    delete_of(tx, scope, workspace_id.into())
}

/// Removes the objects of a deployment, and links to it. Goes after the deployment itself, so that none is added
/// meanwhile.
pub fn delete_of_deployment(tx: &Tx, scope: &Scope, deployment_id: DeploymentId) -> Result<()> {
    delete_of(tx, scope, deployment_id.into())?;
    leave_workspace(tx, scope, deployment_id)
}

fn delete_of(tx: &Tx, scope: &Scope, entity_id: EntityId) -> Result<()> {
    let params = params![entity_id.as_str(), scope.organization()];
    let ids: Vec<EnvironmentObjectId> = tx.query(&DELETE_OF_ENTITY, params, |row| row.id(0))?;
    for id in ids {
        delete(tx, id)?;
        counters::add(tx, scope.organization_id(), KIND, id.id(), -1, 1)?;
    }
    Ok(())
}

/// Drops what ties a deployment to objects of its workspace: it goes elsewhere, or is gone.
pub fn leave_workspace(tx: &Tx, scope: &Scope, deployment_id: DeploymentId) -> Result<()> {
    tx.execute(&DELETE_LINKS_TO, params![deployment_id.as_str(), scope.organization()])?;
    tx.run(&DELETE_EXCLUSIONS_OF, params![deployment_id.as_str(), scope.organization()])
}

/// Locks a workspace against removal until the unit ends; returns whether it exists.
pub fn lock_workspace(tx: &Tx, scope: &Scope, id: WorkspaceId) -> Result<bool> {
    Ok(tx.execute(&LOCK_WORKSPACE, params![id.as_str(), scope.organization()])? == 1)
}

/// Locks deployments against removal and moving until the unit ends; returns those that exist, with their workspaces.
pub fn lock_deployments(
    tx: &Tx,
    scope: &Scope,
    ids: &[DeploymentId],
) -> Result<Vec<(DeploymentId, WorkspaceId)>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids: Vec<&str> = ids.iter().map(DeploymentId::as_str).collect();
    tx.query(&LOCK_DEPLOYMENTS, params![&ids, scope.organization()], |row| Ok((row.id(0)?, row.id(1)?)))
}
