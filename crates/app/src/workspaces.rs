//! Workspaces.

use std::collections::BTreeSet;
use std::sync::Arc;

use podium_api::workspaces::{self as api, Workspace, WorkspacesPaginated};
use podium_api::{Id, Many, Named, Nothing, One, Shown, WorkspaceId};
use podium_db::{Conn, Tx};
use podium_domain::events::Resource;
use podium_domain::{Fields, Refusal, Target, names};
use podium_store::{
    LazyRow, Paging, Render, Scope, Stamp, clusters, credentials, deployments, environment_objects, grants,
    organizations, roles, tokens, workspaces,
};

use crate::cx::{Call, Cx};
use crate::error::{OrConflict, Result};
use crate::rendered::{Inline, Made, whole_page};

const MAX_NAME: usize = 50;
const MAX_REGION: usize = 100;
const SHORT_PAGE: u32 = 100;

/// Lists the workspaces that the caller may see.
pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<WorkspacesPaginated>> {
    let paging = Paging::from(&call.query.page);
    let name_keys: Vec<String> = call.query.names.iter().map(|name| names::fold(name)).collect();
    let mut ids = call.query.workspace_ids;
    ids.retain(Named::is_given);
    let (limit, offset) = (paging.limit, paging.offset);
    let listing = Arc::new((paging, ids, name_keys));
    let page = |walk_far| {
        let listing = Arc::clone(&listing);
        move |cx: &Cx<Scope>, conn: &Conn| {
            let (paging, ids, name_keys) = &*listing;
            let reach = cx.grants().visible_workspaces();
            let listed = workspaces::ListFilter { reach: &reach, ids, name_keys };
            let inline = Inline::new(cx, walk_far);
            let landmarks = &cx.app().landmarks;
            let page = workspaces::list(conn, cx.scope(), &listed, paging, landmarks, walk_far, &inline)?;
            Ok(whole_page(page))
        }
    };
    let near = if limit <= SHORT_PAGE { cx.page(page(false)).await? } else { None };
    let found = match near {
        Some(found) => Some(found),
        None => cx.scan(page(true)).await?,
    };
    let (workspaces, total_count) = found.unwrap_or_default();
    Ok(Many(WorkspacesPaginated { workspaces, limit, offset, total_count }))
}

pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<Workspace>> {
    let body = call.body;
    let name = names::name("name", &body.name, MAX_NAME)?;
    let stamp = Stamp::new(cx.profile(), cx.now());
    let workspace = Workspace {
        id: cx.new_id(),
        name: name.text,
        description: Some(body.description.unwrap_or_default()),
        organization_id: cx.organization_id(),
        organization_name: None,
        cicd_enforced_default: body.cicd_enforced_default.unwrap_or_default(),
        default_cluster_id: body.default_cluster_id,
        default_cloud_provider: body.default_cloud_provider,
        default_region: body.default_region.filter(|region| !region.is_empty()),
        created_at: stamp.created_at,
        created_by: Some(stamp.created_by.clone()),
        updated_at: stamp.updated_at,
        updated_by: Some(stamp.updated_by.clone()),
    };
    check_defaults(&workspace)?;
    cx.mutate(move |cx, tx| {
        check_cluster(tx, cx.scope(), &workspace)?;
        let organization_name = organizations::name(tx, cx.scope())?;
        workspaces::insert(tx, cx.scope(), &workspace, &name.key, &stamp)
            .or_conflict(|| taken(&workspace.name))?;
        cx.changed(tx, workspaces::KIND, stamp.version, about(workspace.id, &workspace.name))?;
        Ok(One { version: stamp.version, body: Workspace { organization_name, ..workspace.clone() } })
    })
    .await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<Shown<Workspace>>> {
    let id = call.path.workspace_id;
    if let Some(cached) = cx.cached(id.id()).await? {
        return Ok(cached);
    }
    cx.read(move |cx, conn| {
        let found = workspaces::shown(conn, cx.scope(), id, |row| cx.render(row))?;
        found.ok_or_else(|| Refusal::not_found("workspace").into())
    })
    .await
}

impl Render<Workspace, Shown<Workspace>> for Cx<Scope> {
    fn cached(&self, conn: &Conn, id: Id) -> Option<Shown<Workspace>> {
        self.app().rendered_workspaces.current_in(conn, self.scope(), id)
    }

    fn render(&self, row: &LazyRow<'_, Workspace>) -> podium_db::Result<Shown<Workspace>> {
        self.app().rendered_workspaces.show(row, Made::OfRow)
    }
}

pub async fn update(cx: Cx<Scope>, call: Call<api::Update>) -> Result<One<Workspace>> {
    let body = call.body;
    let name = names::name("name", &body.name, MAX_NAME)?;
    cx.mutate(move |cx, tx| {
        let One { version, body: stored } = find(tx, cx.scope(), call.path.workspace_id)?;
        cx.expect_version(version)?;
        let workspace = Workspace {
            name: name.text.clone(),
            description: Some(body.description.clone()),
            cicd_enforced_default: body.cicd_enforced_default,
            default_cluster_id: body.default_cluster_id.clone().apply(stored.default_cluster_id),
            default_cloud_provider: body.default_cloud_provider.clone().apply(stored.default_cloud_provider),
            default_region: body
                .default_region
                .clone()
                .apply(stored.default_region)
                .filter(|region| !region.is_empty()),
            updated_at: cx.now().max(stored.updated_at),
            updated_by: Some(cx.profile()),
            ..stored
        };
        check_defaults(&workspace)?;
        check_cluster(tx, cx.scope(), &workspace)?;
        workspaces::update(tx, cx.scope(), &workspace, &name.key, version)
            .or_conflict(|| taken(&workspace.name))?;
        cx.changed(tx, workspaces::KIND, version + 1, about(workspace.id, &workspace.name))?;
        Ok(One { version: version + 1, body: workspace })
    })
    .await
}

/// Deletes an empty workspace, with its tokens, roles and environment objects.
pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let id = call.path.workspace_id;
    cx.change_rights(move |cx, tx| {
        cx.rights_change(tx)?;
        let One { version, body: workspace } = find(tx, cx.scope(), id)?;
        cx.expect_version(version)?;
        let left = deployments::count(tx, cx.scope(), id)?;
        if left > 0 {
            let deployments = if left == 1 { "deployment" } else { "deployments" };
            let message = format!(
                "The workspace has {left} {deployments}: delete its deployments, or move them to another workspace."
            );
            return Err(Refusal::invalid(message).into());
        }
        for token_id in tokens::delete_of_workspace(tx, cx.scope(), id)? {
            credentials::delete(tx, cx.scope(), token_id.into())?;
            grants::delete_subject(tx, cx.scope(), token_id.into())?;
        }
        grants::delete_workspace(tx, cx.scope(), id)?;
        roles::forget_workspace(tx, cx.scope(), id)?;
        clusters::forget_workspace(tx, cx.scope(), id)?;
        workspaces::delete(tx, cx.scope(), id, version)?;
        environment_objects::delete_of_workspace(tx, cx.scope(), id)?;
        cx.changed(tx, workspaces::KIND, version + 1, about(id, &workspace.name))?;
        Ok(Nothing)
    })
    .await
}

fn find(conn: &Conn, scope: &Scope, id: WorkspaceId) -> Result<One<Workspace>> {
    workspaces::get(conn, scope, id)?.ok_or_else(|| Refusal::not_found("workspace").into())
}

/// Those of these workspaces that the organization has.
pub(crate) fn known(
    conn: &Conn,
    scope: &Scope,
    ids: Option<&[WorkspaceId]>,
) -> Result<BTreeSet<WorkspaceId>> {
    match ids.unwrap_or_default() {
        [] => Ok(BTreeSet::new()),
        ids => Ok(workspaces::exist(conn, scope, ids)?.into_iter().collect()),
    }
}

pub(crate) fn about(id: WorkspaceId, name: &str) -> Resource<'_> {
    Resource::new(id.id(), Target::Workspace(id)).named(name)
}

fn taken(name: &str) -> String {
    format!("A workspace named `{name}` already exists: choose another name.")
}

/// The default cluster excludes provider and region, which travel together.
fn check_defaults(workspace: &Workspace) -> Result<()> {
    let mut fields = Fields::new();
    let (provider, region) = (workspace.default_cloud_provider.is_some(), workspace.default_region.is_some());
    if workspace.default_region.as_ref().is_some_and(|region| region.chars().count() > MAX_REGION) {
        fields.push("defaultRegion", "maxLength", format!("must have at most {MAX_REGION} characters"));
    }
    if workspace.default_cluster_id.is_some() {
        for (given, field) in [(provider, "defaultCloudProvider"), (region, "defaultRegion")] {
            if given {
                fields.push(field, "excluded", "must be omitted when `defaultClusterId` is given");
            }
        }
    } else if provider != region {
        let (missing, given) = if provider {
            ("defaultRegion", "defaultCloudProvider")
        } else {
            ("defaultCloudProvider", "defaultRegion")
        };
        fields.push(missing, "required", format!("is required when `{given}` is given"));
    }
    Ok(fields.into_result()?)
}

fn check_cluster(tx: &Tx, scope: &Scope, workspace: &Workspace) -> Result<()> {
    let Some(cluster_id) = workspace.default_cluster_id else { return Ok(()) };
    clusters::lock(tx, scope, cluster_id)?;
    if clusters::admits(tx, scope, cluster_id, workspace.id)? == Some(true) {
        return Ok(());
    }
    // The same message for both, so that it does not reveal clusters that the caller may not see.
    let message = "must be the id of a cluster that accepts this workspace";
    Err(Refusal::field("defaultClusterId", "notFound", message).into())
}
