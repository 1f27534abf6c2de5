//! Deployments. These functions write the desired state; a loop applies it.

mod hibernation;
mod removal;
mod shown;
mod variables;

use std::sync::Arc;

use podium_api::clusters::Cluster;
use podium_api::deployments::{self as api, CreateDeploymentRequest, Deployment, DeploymentsPaginated};
use podium_api::enums::{DeploymentStatus, DeploymentType, EventType, OperationKind};
use podium_api::{DeploymentId, Id, Many, Named, Nothing, One, Shown, WorkspaceId};
use podium_db::{Conn, Tx};
use podium_domain::deployments::place::{self, Place, PlacementContext};
use podium_domain::deployments::{
    self as rules, Facts, NodePool, Placed, Running, Services, Wanted, namespaces, transfer,
};
use podium_domain::events::Resource;
use podium_domain::operations::{Details, RemovalDrain};
use podium_domain::{Refusal, Target, dag_viewers, names};
use podium_store::deployments::{self, DeploymentRow};
use podium_store::{
    LazyRow, Paging, Render, Scope, Stamp, clusters, environment_objects, grants,
    operations as store_operations, organizations, tokens, workspaces,
};

use crate::cx::{Call, Cx};
use crate::error::{Error, OrConflict, Result};
use crate::operations;
use crate::rendered::{Inline, Made, whole_page};

use variables::Variables;

pub(crate) use hibernation::wake;
pub use hibernation::{end_hibernation_override, override_hibernation};
pub use variables::open_variables;

const SHORT_PAGE: u32 = 100;
/// How many names in the data plane are tried before giving up.
const NAMESPACES: usize = 8;

/// Lists the deployments that the caller may see.
pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<DeploymentsPaginated>> {
    let paging = Paging::from(&call.query.page);
    let (limit, offset) = (paging.limit, paging.offset);
    let names = call.query.names.iter().filter(|name| !name.is_empty());
    let name_keys: Vec<String> = names.map(|name| names::fold(name)).collect();
    let (mut ids, mut workspace_ids) = (call.query.deployment_ids, call.query.workspace_ids);
    ids.retain(Named::is_given);
    workspace_ids.retain(Named::is_given);
    let listing = Arc::new((paging, ids, name_keys, workspace_ids));
    let page = |walk_far| {
        let listing = Arc::clone(&listing);
        move |cx: &Cx<Scope>, conn: &Conn| {
            let (paging, ids, name_keys, workspace_ids) = &*listing;
            let reach = cx.grants().visible_deployments();
            let listed = deployments::ListFilter { reach: &reach, ids, name_keys, workspace_ids };
            let inline = Inline::new(cx, walk_far);
            let landmarks = &cx.app().landmarks;
            let page = deployments::list(conn, cx.scope(), &listed, paging, landmarks, walk_far, &inline)?;
            Ok(whole_page(page))
        }
    };
    let near = if limit <= SHORT_PAGE { cx.page(page(false)).await? } else { None };
    let found = match near {
        Some(found) => Some(found),
        None => cx.scan(page(true)).await?,
    };
    let (deployments, total_count) = found.unwrap_or_default();
    Ok(Many(DeploymentsPaginated { deployments, limit, offset, total_count }))
}

/// Creates a deployment; its workspace is where the caller was admitted.
pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<Deployment>> {
    let body = call.body.0;
    let id = cx.new_id();
    let candidates: Vec<String> = (0..NAMESPACES).map(|_| namespaces::namespace(random(&cx))).collect();
    cx.mutate(move |cx, tx| {
        let workspace = workspaces::get(tx, cx.scope(), body.workspace_id)?;
        let workspace = workspace.ok_or_else(|| Refusal::not_found("workspace"))?.body;
        let mut new_id = || cx.new_id();
        let seals = Variables { app: cx.app(), id };
        let mut services = Services { now: cx.now(), new_id: &mut new_id, seals: &seals };
        let placed = match placed(cx, tx, &body, &workspace) {
            Err(Error::Refused(refusal)) => {
                return Err(rules::misplaced(&body, refusal, &mut services).into());
            }
            placed => placed?,
        };
        let (kind, cluster) = (placed.kind, placed.cluster);
        let (cloud_provider, region) = match (placed.place, &cluster) {
            (Place::Region(provider, region), _) => (Some(provider), Some(region)),
            (_, Some(cluster)) => (Some(cluster.cloud_provider), Some(cluster.region.clone())),
            (_, None) => (None, None),
        };
        let placed = Placed { cloud_provider, region, is_cicd_enforced: workspace.cicd_enforced_default };
        let Wanted { name, spec } =
            rules::create(&body, placed, &facts(kind, cluster.as_ref()), &mut services)?;
        let row = DeploymentRow {
            id,
            organization_id: cx.organization_id(),
            workspace_id: workspace.id,
            workspace_name: Some(workspace.name),
            cluster_id: cluster.as_ref().map(|cluster| cluster.id),
            cluster: cluster.map(shown::on_cluster),
            name: name.text,
            namespace: deployments::free_namespace(tx, cx.scope(), &candidates)?
                .ok_or_else(|| Error::Internal("found no free name in the data plane".into()))?,
            spec,
            generation: 1,
            status: DeploymentStatus::Creating,
            status_reason: "The deployment is being created.".into(),
            observed: Running::default(),
            observed_generation: 0,
            stamp: Stamp::new(cx.profile(), cx.now()),
        };
        deployments::insert(tx, cx.scope(), &row, &name.key).or_conflict(|| taken(&row.name))?;
        operations::begin(cx, tx, OperationKind::Create, operations::of_deployment(&row), None)?;
        cx.changed(tx, deployments::KIND, row.stamp.version, about_now(&row))?;
        Ok(One { version: row.stamp.version, body: shown::deployment(cx, &row) })
    })
    .await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<Shown<Deployment>>> {
    let id = call.path.deployment_id;
    if !cx.grants().sees_only_dags_of(id)
        && let Some(cached) = cx.cached(id.id()).await?
    {
        return Ok(cached);
    }
    cx.read(move |cx, conn| {
        let found = deployments::shown(conn, cx.scope(), id, |row| cx.render(row))?;
        found.ok_or_else(|| Refusal::not_found("deployment").into())
    })
    .await
}

impl Render<DeploymentRow, Shown<Deployment>> for Cx<Scope> {
    fn cached(&self, conn: &Conn, id: Id) -> Option<Shown<Deployment>> {
        let is_narrow = self.grants().sees_only_dags_of(DeploymentId::from_raw(id));
        (!is_narrow).then(|| self.app().rendered_deployments.current_in(conn, self.scope(), id))?
    }

    /// A deployment as callers see it. One with a hibernation schedule or an override changes with time.
    fn render(&self, row: &LazyRow<'_, DeploymentRow>) -> podium_db::Result<Shown<Deployment>> {
        if self.grants().sees_only_dags_of(DeploymentId::from_raw(row.id()?)) {
            let mut deployment = shown::deployment(self, &row.read()?);
            dag_viewers::narrow_deployment(self.grants(), &mut deployment);
            return Ok(deployment.into());
        }
        self.app().rendered_deployments.show(row, |row| {
            let deployment = shown::deployment(self, &row);
            let is_of_now = row.spec.is_development_mode || row.spec.hibernation.override_.is_some();
            if is_of_now { Made::OfNow(deployment) } else { Made::OfRow(deployment) }
        })
    }
}

/// Changes a deployment, and moves it to another workspace where the request names one.
pub async fn update(cx: Cx<Scope>, call: Call<api::Update>) -> Result<One<Deployment>> {
    let (id, body) = (call.path.deployment_id, call.body.0);
    let to = body.workspace_id;
    let moves = cx.scope().target() != Target::Deployment { id, workspace_id: to };
    let update = move |cx: &Cx<Scope>, tx: &Tx| {
        if moves {
            cx.rights_change(tx)?;
        }
        let stored = find(tx, cx.scope(), id)?;
        if moves {
            transfer::may_move(cx.grants(), id, stored.workspace_id, to)?;
        }
        cx.expect_version(stored.stamp.version)?;
        let cluster = match stored.cluster_id {
            Some(cluster_id) => clusters::get(tx, cx.scope(), cluster_id)?.map(|one| one.body),
            None => None,
        };
        let facts = facts(stored.spec.kind, cluster.as_ref());
        let mut new_id = || cx.new_id();
        let seals = Variables { app: cx.app(), id };
        let mut services = Services { now: cx.now(), new_id: &mut new_id, seals: &seals };
        let Wanted { name, spec } = rules::update(&body, stored.spec.clone(), &facts, &mut services)?;
        let undo = (!moves).then(|| operations::undo_to(&stored));
        let mut row = DeploymentRow { spec, name: name.text, ..changed(cx, stored) };
        if moves {
            move_to(cx, tx, &mut row, body.workspace_id)?;
        }
        deployments::update(tx, cx.scope(), &row, &name.key).or_conflict(|| taken(&row.name))?;
        let kind = if moves { OperationKind::Transfer } else { OperationKind::Update };
        operations::begin(cx, tx, kind, operations::of_deployment(&row), undo)?;
        cx.changed(tx, deployments::KIND, row.stamp.version, about_now(&row))?;
        Ok(One { version: row.stamp.version, body: shown::deployment(cx, &row) })
    };
    if moves { cx.change_rights(update).await } else { cx.mutate(update).await }
}

/// Deletes a deployment with everything that belongs to it; a loop cleans up the data plane.
pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let (id, drains) = (call.path.deployment_id, call.query.drain.unwrap_or_default());
    cx.change_rights(move |cx, tx| {
        hold_rights(cx, tx)?;
        let row = find(tx, cx.scope(), id)?;
        cx.expect_version(row.stamp.version)?;
        let drain = drains.then_some(RemovalDrain { grace_seconds: row.spec.drain_grace_seconds });
        remove(cx, tx, &row, drain)?;
        Ok(Nothing)
    })
    .await
}

/// Removes a deployment with everything that belongs to it, in a transaction that changes rights.
pub(crate) fn remove(
    cx: &Cx<Scope>,
    tx: &Tx,
    row: &DeploymentRow,
    removal_drain: Option<RemovalDrain>,
) -> Result<()> {
    if removal::remove(cx, tx, row.id)? {
        cx.rights_change(tx)?;
    }
    let (id, version) = (row.id, row.stamp.version);
    deployments::delete(tx, cx.scope(), &row.location(), row.workspace_id, version, cx.now())?;
    let details = Details { removal_drain, ..Details::default() };
    let target = operations::of_deployment(row);
    operations::begin_with(cx, tx, OperationKind::Delete, target, None, details)?;
    cx.logged(tx, deployments::KIND, id.id(), version + 1)?;
    cx.event_of(tx, EventType::DeploymentDeleted, about(row))
}

/// From here on nobody can be granted a role on a deployment, until the transaction ends.
pub(crate) fn hold_rights(cx: &Cx<Scope>, tx: &Tx) -> Result<()> {
    Ok(organizations::lock(tx, cx.scope()).map(drop)?)
}

pub(crate) fn find(conn: &Conn, scope: &Scope, id: DeploymentId) -> Result<DeploymentRow> {
    deployments::get(conn, scope, id)?.ok_or_else(|| Refusal::not_found("deployment").into())
}

/// The deployment after a caller's change, which is to be rolled out.
pub(crate) fn changed(cx: &Cx<Scope>, stored: DeploymentRow) -> DeploymentRow {
    let is_new = stored.status == DeploymentStatus::Creating;
    let (status, status_reason) = if is_new {
        (stored.status, stored.status_reason)
    } else {
        (DeploymentStatus::Deploying, "A change is being rolled out.".into())
    };
    DeploymentRow {
        generation: stored.generation + 1,
        status,
        status_reason,
        stamp: stored.stamp.changed(cx.profile(), cx.now()),
        ..stored
    }
}

/// A deployment, as an event names it.
pub(crate) fn about(row: &DeploymentRow) -> Resource<'_> {
    let place = Target::Deployment { id: row.id, workspace_id: row.workspace_id };
    Resource::new(row.id.id(), place).named(&row.name)
}

/// A deployment, as an event names it that tells of its status.
pub(crate) fn about_now(row: &DeploymentRow) -> Resource<'_> {
    about(row).in_status(row.status.as_str(), Some(&row.status_reason))
}

struct Destination {
    place: Place,
    kind: DeploymentType,
    cluster: Option<Cluster>,
}

fn placed(
    cx: &Cx<Scope>,
    tx: &Tx,
    body: &CreateDeploymentRequest,
    workspace: &podium_api::workspaces::Workspace,
) -> Result<Destination> {
    let only_dedicated = organizations::only_dedicated_clusters(tx, cx.scope())?
        .ok_or_else(|| Refusal::not_found("organization"))?;
    let admits = |id| Ok::<_, Error>(clusters::admits(tx, cx.scope(), id, workspace.id)?.unwrap_or_default());
    let context = PlacementContext {
        workspace,
        only_cluster: match clusters::only(tx, cx.scope())? {
            Some(id) if admits(id)? => Some(id),
            _ => None,
        },
        has_shared_infrastructure: cx.app().config.shared_infrastructure,
        only_dedicated,
        cluster_names: &clusters::names_for(tx, cx.scope(), workspace.id)?,
    };
    let place = place::choose(body, &context)?;
    let Place::Cluster(cluster_id) = place else {
        return Ok(Destination { place, kind: DeploymentType::Standard, cluster: None });
    };
    clusters::lock(tx, cx.scope(), cluster_id)?;
    let admits = admits(cluster_id)?;
    let cluster = clusters::get(tx, cx.scope(), cluster_id)?.map(|one| one.body);
    let kind = place::on_cluster(body.kind, cluster.as_ref().map(|cluster| (cluster, admits)))?;
    Ok(Destination { place, kind, cluster })
}

/// Moves a deployment: roles given in the old workspace and links of its environment objects are dropped.
fn move_to(cx: &Cx<Scope>, tx: &Tx, row: &mut DeploymentRow, workspace_id: WorkspaceId) -> Result<()> {
    let workspace = workspaces::get(tx, cx.scope(), workspace_id)?;
    let workspace = workspace.ok_or_else(|| Refusal::not_found("workspace"))?.body;
    if let Some(cluster_id) = row.cluster_id {
        clusters::lock(tx, cx.scope(), cluster_id)?;
        if clusters::admits(tx, cx.scope(), cluster_id, workspace_id)? != Some(true) {
            let message = "must be a workspace that the deployment's cluster accepts";
            return Err(Refusal::field("workspaceId", "notAdmitted", message).into());
        }
    }
    environment_objects::leave_workspace(tx, cx.scope(), row.id)?;
    grants::leave_workspace(tx, cx.scope(), row.id, workspace_id)?;
    tokens::move_deployment(tx, cx.scope(), row.id, workspace_id)?;
    store_operations::move_deployment(tx, cx.scope(), row.id, workspace_id)?;
    deployments::count_move(tx, cx.scope(), row.id, row.workspace_id, workspace_id)?;
    row.workspace_id = workspace_id;
    row.workspace_name = Some(workspace.name);
    Ok(())
}

fn facts(kind: DeploymentType, cluster: Option<&Cluster>) -> Facts {
    let pools = cluster.map(|cluster| cluster.details.node_pools.as_slice()).unwrap_or_default();
    Facts {
        kind,
        node_pools: pools.iter().map(|pool| NodePool { id: pool.id, is_default: pool.is_default }).collect(),
        is_dr_enabled: cluster.is_some_and(|cluster| cluster.details.is_dr_enabled),
    }
}

fn random(cx: &Cx<Scope>) -> u64 {
    let mut bytes = [0; 8];
    cx.app().world.fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

fn taken(name: &str) -> String {
    format!("The workspace already has a deployment named `{name}`: choose another name.")
}
