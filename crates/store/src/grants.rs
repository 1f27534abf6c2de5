//! Grants: all role assignments, in one table.

use podium_api::{DeploymentId, OrganizationId, RoleId, SubjectId, UserId, WorkspaceId};
use podium_db::{Conn, Error, Result, Row, Tx, params, statements};
use podium_domain::{Grant, Grants, Held, On, Permission};

use crate::columns::Columns;
use crate::credentials::{Credential, CredentialKind};
use crate::{Doorkeeper, Membership, Scope};

macro_rules! columns {
    () => {
        "g.subject_id, g.scope_type, g.entity_id, g.deployment_id, g.workspace_id, g.role, g.custom_role_id, r.name, r.permissions \
         FROM grants g LEFT JOIN custom_roles r ON r.id = g.custom_role_id"
    };
}

/// Of an organization, in a form that leaves the choice of the index to the other conditions.
macro_rules! within {
    ($organization:literal) => {
        concat!("g.organization_id || '' = ", $organization)
    };
}

statements! {
    OF_SUBJECTS = concat!("SELECT ", columns!(), " WHERE g.organization_id = $1 AND g.subject_id IN ($2[]) \
        ORDER BY g.subject_id, g.scope_type, g.deployment_id, g.entity_id, g.role");
    EFFECTIVE = concat!("SELECT ", columns!(), " WHERE g.organization_id = $1 AND g.subject_id IN \
        (SELECT $2 UNION ALL SELECT m.team_id FROM team_members m WHERE m.user_id = $2 AND m.organization_id = $1) \
        ORDER BY g.subject_id, g.scope_type, g.deployment_id, g.entity_id, g.role");
    INSERT = "INSERT INTO grants (organization_id, subject_id, subject_type, scope_type, entity_id, deployment_id, workspace_id, \
        role, custom_role_id) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    DELETE_SUBJECT = "DELETE FROM grants WHERE organization_id = $1 AND subject_id = $2";
    DELETE_DEPLOYMENT = concat!("DELETE FROM grants AS g WHERE g.deployment_id = $1 AND ", within!("$2"));
    ON_DAGS = "SELECT DISTINCT deployment_id, workspace_id, scope_type, entity_id FROM grants WHERE organization_id = $1 \
        AND scope_type IN ('DAG', 'DAG_TAG') AND entity_id IN ($2[])";
    LEAVE_WORKSPACE = concat!("DELETE FROM grants AS g WHERE g.deployment_id = $1 AND ", within!("$2"), " AND g.subject_id NOT IN \
        (SELECT id FROM api_tokens WHERE deployment_id = $1 AND organization_id = $2)");
    MOVE_DEPLOYMENT = concat!("UPDATE grants AS g SET workspace_id = $2 WHERE g.deployment_id = $1 AND ", within!("$3"));
    DELETE_WORKSPACE = concat!("DELETE FROM grants AS g WHERE g.workspace_id = $1 AND ", within!("$2"));
    HOLDERS = concat!("SELECT DISTINCT g.subject_id, g.subject_type, COALESCE(s.username, s.api_token_name, t.name, g.subject_id) \
        FROM grants g LEFT JOIN subjects s ON s.id = g.subject_id LEFT JOIN teams t ON t.id = g.subject_id \
        WHERE g.custom_role_id = $1 AND ", within!("$2"), " ORDER BY 3 LIMIT 20");
    COUNT_HOLDERS = concat!("SELECT COUNT(DISTINCT g.subject_id) FROM grants g WHERE g.custom_role_id = $1 AND ", within!("$2"));
    HELD_IN = concat!("SELECT DISTINCT g.workspace_id FROM grants g WHERE g.custom_role_id = $1 AND ", within!("$2"));
    OLDEST_OWNER = "SELECT m.user_id FROM memberships m JOIN grants g ON g.organization_id = m.organization_id \
        AND g.subject_id = m.user_id WHERE m.organization_id = $1 AND m.status = 'ACTIVE' \
        AND g.scope_type = 'ORGANIZATION' AND g.role = 'ORGANIZATION_OWNER' ORDER BY m.created_at, m.user_id LIMIT 1";
    OWNERS = "SELECT COUNT(*) FROM memberships m WHERE m.organization_id = $1 AND m.status = 'ACTIVE' AND m.user_id IN (\
        SELECT g.subject_id FROM grants g WHERE g.organization_id = $1 AND g.scope_type = 'ORGANIZATION' \
            AND g.entity_id = $1 AND g.role = 'ORGANIZATION_OWNER' AND g.subject_type = 'USER' \
        UNION SELECT tm.user_id FROM grants g JOIN team_members tm ON tm.team_id = g.subject_id \
            WHERE g.organization_id = $1 AND g.scope_type = 'ORGANIZATION' AND g.entity_id = $1 \
            AND g.role = 'ORGANIZATION_OWNER' AND g.subject_type = 'TEAM')";
}

/// Who holds a role.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    User,
    Team,
    Token,
}

impl Subject {
    fn as_str(self) -> &'static str {
        match self {
            Self::User => "USER",
            Self::Team => "TEAM",
            Self::Token => "TOKEN",
        }
    }
}

pub fn of(conn: &Conn, scope: &Scope, subject_id: SubjectId) -> Result<Vec<Grant>> {
    Ok(of_each(conn, scope, &[subject_id])?.into_iter().map(|(_, grant)| grant).collect())
}

/// The grants of several subjects, in the order of their ids.
pub fn of_each(conn: &Conn, scope: &Scope, subject_ids: &[SubjectId]) -> Result<Vec<(SubjectId, Grant)>> {
    let ids: Vec<&str> = subject_ids.iter().map(SubjectId::as_str).collect();
    conn.query(&OF_SUBJECTS, params![scope.organization(), &ids], |row| Ok((row.id(0)?, read(row)?)))
}

/// The grants of a user or token in an organization, directly and through teams.
pub fn effective(
    conn: &Conn,
    _: &Doorkeeper,
    organization_id: OrganizationId,
    subject_id: SubjectId,
) -> Result<Vec<Grant>> {
    conn.query(&EFFECTIVE, params![organization_id.as_str(), subject_id.as_str()], read)
}

/// What the holder of a token may do in an organization that it belongs to; `None` for agents, which are no members.
pub fn membership(
    conn: &Conn,
    system: &Doorkeeper,
    organization_id: OrganizationId,
    credential: &Credential,
) -> Result<Option<Membership>> {
    let held = effective(conn, system, organization_id, credential.subject_id)?;
    let grants = match credential.kind {
        CredentialKind::ApiToken => Grants::for_token(held),
        CredentialKind::Session => Grants::new(held),
        CredentialKind::AgentToken => return Ok(None),
    };
    Ok(Some(Membership::new(organization_id, grants)))
}

pub fn replace(tx: &Tx, scope: &Scope, kind: Subject, subject_id: SubjectId, grants: &[Grant]) -> Result<()> {
    delete_subject(tx, scope, subject_id)?;
    grants.iter().try_for_each(|grant| insert(tx, scope, kind, subject_id, grant))
}

pub fn insert(tx: &Tx, scope: &Scope, kind: Subject, subject_id: SubjectId, grant: &Grant) -> Result<()> {
    let organization = scope.organization();
    let (scope_type, entity, deployment, workspace) = match &grant.on {
        On::Organization => ("ORGANIZATION", organization, "", ""),
        On::Workspace(id) => ("WORKSPACE", id.as_str(), "", id.as_str()),
        On::Deployment { id, workspace_id } => {
            ("DEPLOYMENT", id.as_str(), id.as_str(), workspace_id.as_str())
        }
        On::Dag { deployment_id, workspace_id, dag_id } => {
            ("DAG", dag_id.as_str(), deployment_id.as_str(), workspace_id.as_str())
        }
        On::DagTag { deployment_id, workspace_id, tag } => {
            ("DAG_TAG", tag.as_str(), deployment_id.as_str(), workspace_id.as_str())
        }
    };
    let (role, custom) = match &grant.held {
        Held::Custom { id, .. } => (id.as_str(), Some(id.as_str())),
        held => (held.name(), None),
    };
    let values = params![
        organization,
        subject_id.as_str(),
        kind.as_str(),
        scope_type,
        entity,
        deployment,
        workspace,
        role,
        custom
    ];
    tx.run(&INSERT, values)
}

/// Removes a subject's own grants in an organization.
pub fn delete_subject(tx: &Tx, scope: &Scope, subject_id: SubjectId) -> Result<()> {
    tx.run(&DELETE_SUBJECT, params![scope.organization(), subject_id.as_str()])
}

/// Removes every role on a deployment and its DAGs; returns how many.
pub fn delete_deployment(tx: &Tx, scope: &Scope, deployment_id: DeploymentId) -> Result<u64> {
    tx.execute(&DELETE_DEPLOYMENT, params![deployment_id.as_str(), scope.organization()])
}

/// Moves a deployment to another workspace: only its own tokens keep their roles on it.
pub fn leave_workspace(
    tx: &Tx,
    scope: &Scope,
    deployment_id: DeploymentId,
    workspace_id: WorkspaceId,
) -> Result<()> {
    tx.execute(&LEAVE_WORKSPACE, params![deployment_id.as_str(), scope.organization()])?;
    tx.run(&MOVE_DEPLOYMENT, params![deployment_id.as_str(), workspace_id.as_str(), scope.organization()])
}

/// Removes every role in a workspace, and on anything in it.
pub fn delete_workspace(tx: &Tx, scope: &Scope, workspace_id: WorkspaceId) -> Result<()> {
    tx.run(&DELETE_WORKSPACE, params![workspace_id.as_str(), scope.organization()])
}

/// The DAGs and the tags of these names on which anybody holds a role.
pub fn on_dags(conn: &Conn, scope: &Scope, names: &[&str]) -> Result<Vec<On>> {
    conn.query(&ON_DAGS, params![scope.organization(), names], |row| {
        let (deployment_id, workspace_id, name) = (row.id(0)?, row.id(1)?, row.get(3)?);
        Ok(match row.text(2)? {
            "DAG" => On::Dag { deployment_id, workspace_id, dag_id: name },
            _ => On::DagTag { deployment_id, workspace_id, tag: name },
        })
    })
}

/// Some of those who hold a custom role: the kind of subject, and its name.
pub fn holders(conn: &Conn, scope: &Scope, role_id: RoleId) -> Result<Vec<(String, String)>> {
    conn.query(&HOLDERS, params![role_id.as_str(), scope.organization()], |row| {
        Ok((row.get(1)?, row.get(2)?))
    })
}

/// Some of those who hold a custom role, as [`holders`] names them, and how many there are.
pub fn some_holders(conn: &Conn, scope: &Scope, role_id: RoleId) -> Result<(Vec<(String, String)>, u64)> {
    let count: i64 =
        conn.query_one(&COUNT_HOLDERS, params![role_id.as_str(), scope.organization()], |row| row.get(0))?;
    Ok((holders(conn, scope, role_id)?, u64::try_from(count).unwrap_or_default()))
}

/// The workspaces in which a custom role is held.
pub fn workspaces_of_custom_role(conn: &Conn, scope: &Scope, role_id: RoleId) -> Result<Vec<WorkspaceId>> {
    conn.query(&HELD_IN, params![role_id.as_str(), scope.organization()], |row| row.id(0))
}

/// The active user who has owned an organization, not through a team, for the longest time.
pub fn oldest_owner(conn: &Conn, scope: &Scope) -> Result<Option<UserId>> {
    conn.query_opt(&OLDEST_OWNER, params![scope.organization()], |row| row.id(0))
}

/// How many active users own an organization, by themselves or through a team.
pub fn active_owners(conn: &Conn, scope: &Scope) -> Result<usize> {
    let owners: i64 = conn.query_one(&OWNERS, params![scope.organization()], |row| row.get(0))?;
    Ok(usize::try_from(owners).unwrap_or_default())
}

fn read(row: &Row<'_>) -> Result<Grant> {
    let (entity, role) = (row.text(2)?, row.text(5)?);
    let on = match row.text(1)? {
        "ORGANIZATION" => On::Organization,
        "WORKSPACE" => On::Workspace(row.id(2)?),
        "DEPLOYMENT" => On::Deployment { id: row.id(2)?, workspace_id: row.id(4)? },
        "DAG" => On::Dag { deployment_id: row.id(3)?, workspace_id: row.id(4)?, dag_id: entity.to_owned() },
        _ => On::DagTag { deployment_id: row.id(3)?, workspace_id: row.id(4)?, tag: entity.to_owned() },
    };
    let unknown = || Error::Other(format!("unknown role {role}"));
    let held = if let Some(id) = row.id_opt(6)? {
        let names: Vec<String> = serde_json::from_str(row.text(8)?).map_err(|_| unknown())?;
        Held::Custom {
            id,
            name: row.get(7)?,
            permissions: names.iter().filter_map(|n| Permission::named(n)).collect(),
        }
    } else {
        Held::built_in(&on, role).ok_or_else(unknown)?
    };
    Ok(Grant { on, held })
}
