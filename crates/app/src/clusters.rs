//! Clusters.

use std::collections::BTreeSet;

use podium_api::clusters::{self as api, Cluster, ClusterHealthStatus, ClusterMetadata, ClustersPaginated};
use podium_api::enums::{ClusterStatus, EventType, OperationKind};
use podium_api::union::OneOf;
use podium_api::{ClusterId, Many, NodePoolId, Nothing, One, WorkspaceId};
use podium_db::{Conn, Tx};
use podium_domain::clusters::states::{self, Event};
use podium_domain::clusters::{self as rules, Definition, Facts};
use podium_domain::events::Resource;
use podium_domain::{Refusal, Target, names};
use podium_store::operations::OperationTarget;
use podium_store::{Paging, Scope, clusters, organizations, workspaces};

use crate::cx::{Call, Cx};
use crate::error::{OrConflict, Result};
use crate::operations;
use crate::workspaces::{about as about_workspace, known as known_workspaces};

/// Lists the clusters that the caller may see.
pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<ClustersPaginated>> {
    let provider = call.query.provider;
    let name_keys: Vec<String> = call.query.names.iter().map(|name| names::fold(name)).collect();
    let read = move |cx: &Cx<Scope>, conn: &Conn, paging: &Paging| {
        let reach = cx.grants().visible_workspaces();
        let listed = clusters::ListFilter { reach: &reach, name_keys: &name_keys, provider };
        Ok(clusters::list(conn, cx.scope(), &listed, paging)?)
    };
    cx.list(&call.query.page, read, |cluster| cluster).await
}

pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<Cluster>> {
    let OneOf(body) = call.body;
    let id = cx.new_id();
    let pool_ids: Vec<NodePoolId> = body.node_pools.iter().flatten().map(|_| cx.new_id()).collect();
    cx.mutate(move |cx, tx| {
        organizations::lock(tx, cx.scope())?;
        let facts = Facts {
            cluster_id: id,
            pool_ids: &pool_ids,
            workspaces: &known_workspaces(tx, cx.scope(), body.workspace_ids.as_deref())?,
            in_use_by: &BTreeSet::new(),
            now: cx.now(),
        };
        let Definition { name, details, workspace_ids } = rules::create(&body, &facts)?;
        let cluster = Cluster {
            id,
            name: name.text,
            organization_id: cx.organization_id(),
            r#type: body.r#type,
            cloud_provider: body.cloud_provider,
            region: body.region.trim().to_owned(),
            status: states::FIRST,
            health_status: ClusterHealthStatus::default(),
            is_failed_over: false,
            failover_in_progress: false,
            is_limited: false,
            workspace_ids,
            metadata: ClusterMetadata::default(),
            data_plane: None,
            created_at: cx.now(),
            updated_at: cx.now(),
            details,
        };
        clusters::insert(tx, cx.scope(), &cluster, &name.key).or_conflict(|| taken(&cluster.name))?;
        operations::begin(cx, tx, OperationKind::Create, target(&cluster), None)?;
        cx.changed(tx, clusters::KIND, 1, about(&cluster).in_status(cluster.status.as_str(), None))?;
        Ok(One { version: 1, body: cluster })
    })
    .await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<Cluster>> {
    cx.read(move |cx, conn| find(conn, cx, call.path.cluster_id)).await
}

/// Changes a cluster, or moves its deployments to the standby region or back.
pub async fn update(cx: Cx<Scope>, call: Call<api::Update>) -> Result<One<Cluster>> {
    let OneOf(body) = call.body;
    let id = call.path.cluster_id;
    let pool_ids: Vec<NodePoolId> = body.node_pools.iter().flatten().map(|_| cx.new_id()).collect();
    cx.mutate(move |cx, tx| {
        organizations::lock(tx, cx.scope())?;
        let One { version, body: stored } = find_to_change(tx, cx, id)?;
        let event = rules::event(&stored, &body);
        let status = states::after(stored.status, event)?.unwrap_or(stored.status);
        let facts = Facts {
            cluster_id: id,
            pool_ids: &pool_ids,
            workspaces: &known_workspaces(tx, cx.scope(), body.workspace_ids.as_deref())?,
            in_use_by: &clusters::in_use_by(tx, cx.scope(), id)?,
            now: cx.now(),
        };
        let Definition { name, details, workspace_ids } = rules::update(&stored, &body, &facts)?;
        let wants_failed_over = if let Event::FailOver(to) = event { to } else { stored.is_failed_over };
        let cluster = Cluster {
            name: name.text,
            status,
            failover_in_progress: status == ClusterStatus::FailingOver,
            workspace_ids,
            updated_at: cx.now().max(stored.updated_at),
            details,
            ..stored
        };
        clusters::update(tx, cx.scope(), &cluster, &name.key, wants_failed_over, version)
            .or_conflict(|| taken(&cluster.name))?;
        if !cluster.workspace_ids.is_empty() {
            leave_defaults(tx, cx, id, &cluster.workspace_ids)?;
        }
        let kind = match event {
            Event::FailOver(true) => OperationKind::Failover,
            Event::FailOver(false) => OperationKind::Failback,
            Event::Update | Event::Delete => OperationKind::Update,
        };
        operations::begin(cx, tx, kind, target(&cluster), None)?;
        cx.changed(
            tx,
            clusters::KIND,
            version + 1,
            about(&cluster).in_status(cluster.status.as_str(), None),
        )?;
        Ok(One { version: version + 1, body: cluster })
    })
    .await
}

/// Deletes a cluster that no deployment runs on.
pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let id = call.path.cluster_id;
    cx.mutate(move |cx, tx| {
        organizations::lock(tx, cx.scope())?;
        let One { version, body: stored } = find_to_change(tx, cx, id)?;
        states::after(stored.status, Event::Delete)?;
        let left = clusters::count_deployments(tx, cx.scope(), id)?;
        if left > 0 {
            let deployments =
                if left == 1 { "1 deployment runs" } else { &format!("{left} deployments run") };
            let message = format!("{deployments} on the cluster: delete its deployments first.");
            return Err(Refusal::Conflict(message).into());
        }
        leave_defaults(tx, cx, id, &[])?;
        clusters::delete(tx, cx.scope(), id, version, cx.now())?;
        operations::begin(cx, tx, OperationKind::Delete, target(&stored), None)?;
        // Whether somebody could see it cannot be asked any more.
        let about = about(&stored).open_to_members(stored.workspace_ids.is_empty());
        cx.changed(tx, clusters::KIND, version + 1, about)?;
        Ok(Nothing)
    })
    .await
}

fn target(cluster: &Cluster) -> OperationTarget {
    OperationTarget::Cluster(cluster.id, cluster.name.clone())
}

/// A cluster that the caller may see.
fn find(conn: &Conn, cx: &Cx<Scope>, id: ClusterId) -> Result<One<Cluster>> {
    let reach = cx.grants().visible_workspaces();
    let found = clusters::get_visible(conn, cx.scope(), &reach, id)?;
    found.ok_or_else(|| Refusal::not_found("cluster").into())
}

/// A cluster of the version that the caller expects, locked against other changes.
fn find_to_change(tx: &Tx, cx: &Cx<Scope>, id: ClusterId) -> Result<One<Cluster>> {
    clusters::lock(tx, cx.scope(), id)?;
    let found = find(tx, cx, id)?;
    cx.expect_version(found.version)?;
    Ok(found)
}

/// Takes the cluster from workspaces that had it as their default and that it does not take any more.
fn leave_defaults(tx: &Tx, cx: &Cx<Scope>, id: ClusterId, keep: &[WorkspaceId]) -> Result<()> {
    for (workspace_id, version, name) in workspaces::unset_default_cluster(tx, cx.scope(), id, keep)? {
        cx.logged(tx, workspaces::KIND, workspace_id.id(), version)?;
        cx.event_of(tx, EventType::WorkspaceUpdated, about_workspace(workspace_id, &name))?;
    }
    Ok(())
}

/// A cluster, as an event names it.
fn about(cluster: &Cluster) -> Resource<'_> {
    Resource::new(cluster.id.id(), Target::Organization).named(&cluster.name)
}

fn taken(name: &str) -> String {
    format!("A cluster named `{name}` already exists: choose another name.")
}
