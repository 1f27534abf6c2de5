//! Resources for tests, created in the shortest way.

use podium_api::enums::{DeploymentStatus, DeploymentType};
use podium_api::{DeploymentId, EntityId, OrganizationId, RoleId, SubjectId, TeamId, TypedId, WorkspaceId};
use podium_db::{FromColumn, Sql, Target};
use podium_domain::deployments::{Running, Spec};
use podium_domain::{Grant, Held, On};
use podium_store::Stamp;
use podium_store::deployments::{self, DeploymentRow};
use serde_json::json;

use crate::actors::Actor;
use crate::app::TestApp;

/// A built-in role, held on something.
pub fn role(on: On, name: &str) -> Grant {
    let held = Held::built_in(&on, name).unwrap_or_else(|| panic!("{name} is no role on {on:?}"));
    Grant { on, held }
}

impl TestApp {
    /// A workspace, created by the owner.
    pub async fn workspace(&self, name: &str) -> WorkspaceId {
        self.made("/workspaces", json!({ "name": name })).await
    }

    /// A team with these members, created by the owner.
    pub async fn team(&self, name: &str, members: &[&Actor]) -> TeamId {
        let ids: Vec<SubjectId> = members.iter().map(|member| member.id).collect();
        self.made("/teams", json!({ "name": name, "memberIds": ids })).await
    }

    /// A custom role, created by the owner.
    pub async fn custom_role(&self, name: &str, scope_type: &str, permissions: &[&str]) -> RoleId {
        let body = json!({ "name": name, "scopeType": scope_type, "permissions": permissions });
        self.made("/roles", body).await
    }

    /// An API token, created by the owner, as an actor.
    pub async fn token(&self, name: &str, scope: &str, entity_id: impl Into<EntityId>, role: &str) -> Actor {
        let entity_id = entity_id.into();
        let body = json!({ "name": name, "scope": scope, "entityId": entity_id, "role": role });
        let made = self.post(&self.owner, &self.path("/tokens"), body).await.ok();
        let text = |field: &str| made[field].as_str().expect("a new token shows it").to_owned();
        Actor { id: text("id").parse().expect("an id"), token: text("token") }
    }

    /// A deployment of a workspace, as a bare row.
    pub async fn deployment(&self, workspace_id: WorkspaceId) -> DeploymentId {
        let id = self.world.id();
        let (system, scope) = (self.system, self.scope());
        let owner_id = self.owner.id;
        let now = self.world.now();
        let organization_id = self.organization_id;
        let added = self.db().write(None, move |tx| {
            let owner = podium_store::subjects::get(tx, &system, owner_id)?.expect("the owner is a subject");
            let row = bare(id, organization_id, workspace_id, Stamp::new(owner, now));
            deployments::insert(tx, &scope, &row, &row.name)?;
            podium_store::work::forget(tx, &system, deployments::KIND, id.id())?;
            deployments::workspaces(tx, &scope, &[id])
        });
        added.await.expect("a deployment can be stored");
        id
    }

    /// Copies a deployment so many times; the copies are a moment older.
    pub async fn copy_deployment(&self, id: DeploymentId, times: u32) {
        self.execute(&format!(
            "INSERT INTO deployments (id, organization_id, workspace_id, cluster_id, name, name_key, namespace, spec, \
             generation, status, status_reason, observed, observed_generation, version, created_at, created_by, \
             updated_at, updated_by) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {times}) \
             SELECT SUBSTR(id, 1, 20) || CAST(10000 + i AS TEXT), organization_id, workspace_id, cluster_id, \
             name || CAST(i AS TEXT), name_key || CAST(i AS TEXT), namespace || CAST(i AS TEXT), spec, generation, \
             status, status_reason, observed, observed_generation, version, created_at - 1, created_by, updated_at, \
             updated_by FROM deployments, n WHERE id = '{id}'"
        ))
        .await;
    }

    /// Copies a record of the audit log so many times, each five seconds older than the one before.
    pub async fn fill_audit_log(&self, times: u32) {
        self.execute(&format!(
            "INSERT INTO audit_records (organization_id, at, id, record) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL \
             SELECT i + 1 FROM n WHERE i < {times}), one AS (SELECT organization_id, at, record FROM audit_records LIMIT 1) \
             SELECT organization_id, at - i * 5000, 'record-' || CAST(i AS TEXT), record FROM one, n"
        ))
        .await;
    }

    /// Sets a column of a row directly in the database; `value` is an SQL expression.
    pub async fn set_column(&self, table: &str, id: impl TypedId, column: &str, value: &str) {
        self.execute(&format!("UPDATE {table} SET {column} = {value} WHERE id = '{id}'")).await;
    }

    pub async fn column(&self, table: &str, id: impl TypedId, column: &str) -> String {
        let cast = format!("SELECT CAST({column} AS TEXT) FROM {table} WHERE id = '{id}'");
        self.first_column(cast).await.pop().expect("a row")
    }

    /// Runs a statement directly in the database.
    pub async fn execute(&self, statement: &str) {
        let sql = Sql::owned(statement.to_owned());
        let done: podium_db::Result<u64> = self.db().write(None, move |tx| tx.execute(&sql, &[])).await;
        done.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    /// The first column of what a query finds.
    async fn first_column<T: FromColumn + Send + 'static>(&self, query: String) -> Vec<T> {
        let sql = Sql::owned(query.clone());
        let rows = self.db().scan(None, move |conn| conn.query(&sql, &[], |row| row.get(0)));
        rows.await.unwrap_or_else(|error: podium_db::Error| panic!("{query}: {error}"))
    }

    /// The whole content of the database, as bytes: its files, or the rows of all its tables as text.
    pub async fn stored(&self) -> Vec<u8> {
        if let Target::Sqlite(path) = self.database.target() {
            let directory = path.parent().expect("a file is in a directory");
            let files = std::fs::read_dir(directory).expect("a directory can be read");
            return files
                .flat_map(|file| std::fs::read(file.expect("a file").path()).unwrap_or_default())
                .collect();
        }
        let mut stored = Vec::new();
        let tables = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'".to_owned();
        for table in self.first_column::<String>(tables).await {
            let rows = self.first_column::<String>(format!("SELECT t::text FROM {table} t")).await;
            stored.extend(rows.into_iter().flat_map(String::into_bytes));
        }
        stored
    }

    /// The change log entries of a kind, in order: id, organization, workspace, deployment and version of each.
    pub async fn changes_of(&self, kind: &str) -> Vec<String> {
        self.first_column(format!(
            "SELECT id || ' ' || COALESCE(organization_id, '-') || ' ' || COALESCE(workspace_id, '-') || ' ' || \
             COALESCE(deployment_id, '-') || ' ' || version FROM changes WHERE kind = '{kind}' ORDER BY sequence"
        ))
        .await
    }

    pub async fn rows(&self, table: &str) -> i64 {
        self.first_column(format!("SELECT COUNT(*) FROM {table}")).await.pop().expect("a count")
    }

    async fn made<I: TypedId>(&self, path: &str, body: serde_json::Value) -> I {
        let answer = self.post(&self.owner, &self.path(path), body).await;
        answer.id().parse().expect("an id")
    }
}

/// A healthy deployment without pending changes.
pub(crate) fn bare(
    id: DeploymentId,
    organization_id: OrganizationId,
    workspace_id: WorkspaceId,
    stamp: Stamp,
) -> DeploymentRow {
    let spec = Spec::new(DeploymentType::Standard, "3.3.2");
    DeploymentRow {
        id,
        organization_id,
        workspace_id,
        workspace_name: None,
        cluster_id: None,
        cluster: None,
        name: id.to_string(),
        namespace: format!("bare-{id}"),
        spec,
        generation: 1,
        status: DeploymentStatus::Healthy,
        status_reason: podium_domain::UserText::EMPTY,
        observed: Running::default(),
        observed_generation: 1,
        stamp,
    }
}
