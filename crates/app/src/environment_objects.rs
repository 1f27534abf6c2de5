//! Environment objects.

mod lists;
mod sealing;

use std::collections::BTreeSet;

use podium_api::enums::{EnvironmentObjectScope, OperationCause, OperationKind};
use podium_api::environment_objects::{self as api, CreateEnvironmentObject, EnvironmentObject};
use podium_api::{Blank, DeploymentId, EntityId, EnvironmentObjectId, Nothing, One, WorkspaceId};
use podium_db::{Conn, Tx};
use podium_domain::environment_objects::change::affected;
use podium_domain::environment_objects::{self as rules, Object, Verb, show};
use podium_domain::events::Resource;
use podium_domain::{Given, Refusal, Target, UserText};
use podium_store::deployments::RollOut;
use podium_store::environment_objects::{self as objects, ObjectRow};
use podium_store::{Scope, Stamp, deployments};

use crate::cx::{Call, Cx};
use crate::error::{OrConflict, Result};
use crate::plans;

pub use lists::{list, resolved_for};

pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<CreateEnvironmentObject>> {
    let (id, body) = (cx.new_id(), call.body);
    let mentions = rules::mentions(&body);
    let home = (body.scope, body.scope_entity_id);
    let may = move |cx: &Cx<Scope>, tx: &Tx| hold_home(cx, tx, home).map(drop);
    cx.mutate_where(may, move |cx, tx| {
        let workspace_id = hold_home(cx, tx, home)?;
        let neighbours = hold_neighbours(cx, tx, workspace_id, &mentions)?;
        let (key, object) = rules::create(&body, &neighbours)?;
        let row = ObjectRow {
            id,
            entity_id: body.scope_entity_id,
            workspace_id,
            key: key.text,
            sealed: sealing::seal(cx.app(), id, &object)?,
            object: object.hidden(),
            stamp: Stamp::new(cx.profile(), cx.now()),
        };
        objects::insert(tx, cx.scope(), &row, &key.unique).or_conflict(|| taken(&row))?;
        roll_out(cx, tx, &row, None, Some(&object))?;
        cx.changed(tx, objects::KIND, row.stamp.version, about(&row))?;
        Ok(One { version: row.stamp.version, body: CreateEnvironmentObject { id } })
    })
    .await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<EnvironmentObject>> {
    let id = call.path.environment_object_id;
    cx.page(move |cx, conn| Ok(shown(&find(cx, conn, id, Verb::Get)?))).await
}

/// Changes an object: absent fields stay unchanged.
pub async fn update(cx: Cx<Scope>, call: Call<api::Update>) -> Result<One<EnvironmentObject>> {
    let (id, body) = (call.path.environment_object_id, call.body);
    let mentions = rules::mentions(&body);
    cx.mutate_where(may_update(id), move |cx, tx| {
        let row = find(cx, tx, id, Verb::Update)?;
        cx.expect_version(row.stamp.version)?;
        let neighbours = hold_neighbours(cx, tx, row.workspace_id, &mentions)?;
        let before = sealing::open(cx.app(), &row)?;
        let after = rules::update(before.clone(), &body, &neighbours)?;
        Ok(shown(&store(cx, tx, row, &before, &after)?))
    })
    .await
}

pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let id = call.path.environment_object_id;
    cx.mutate(move |cx, tx| {
        let row = find(cx, tx, id, Verb::Delete)?;
        let version = row.stamp.version;
        cx.expect_version(version)?;
        objects::delete(tx, cx.scope(), id, version)?;
        roll_out(cx, tx, &row, Some(&sealing::open(cx.app(), &row)?), None)?;
        cx.changed(tx, objects::KIND, version + 1, about(&row))?;
        Ok(Nothing)
    })
    .await
}

/// Excludes a deployment from an object, and deletes its link.
pub async fn exclude_linking(cx: Cx<Scope>, call: Call<api::ExcludeLinking>) -> Result<Blank> {
    let (id, deployment_id) = (call.path.environment_object_id, call.body.scope_entity_id);
    cx.mutate_where(may_update(id), move |cx, tx| {
        let row = find(cx, tx, id, Verb::Update)?;
        cx.expect_version(row.stamp.version)?;
        let before = sealing::open(cx.app(), &row)?;
        let mut after = before.clone();
        let is_new = after.exclude(deployment_id)?;
        if !hold_neighbours(cx, tx, row.workspace_id, &[deployment_id])?.contains(&deployment_id) {
            let message =
                format!("must be the id of a deployment in the object's workspace; {deployment_id} is not");
            return Err(Refusal::field("scopeEntityId", "unknown", message).into());
        }
        if is_new {
            store(cx, tx, row, &before, &after)?;
        }
        Ok(Blank)
    })
    .await
}

fn may_update(id: EnvironmentObjectId) -> impl FnMut(&Cx<Scope>, &Tx) -> Result<()> + Send + 'static {
    move |cx, tx| find(cx, tx, id, Verb::Update).map(drop)
}

/// An object that the caller may do this to.
fn find(cx: &Cx<Scope>, conn: &Conn, id: EnvironmentObjectId, verb: Verb) -> Result<ObjectRow> {
    let row = objects::get(conn, cx.scope(), id)?.ok_or_else(|| Refusal::not_found("environment object"))?;
    rules::may(cx.grants(), verb, row.belongs_to())?;
    Ok(row)
}

/// Stores a changed object, and rolls it out to the deployments that it affects.
fn store(cx: &Cx<Scope>, tx: &Tx, row: ObjectRow, before: &Object, after: &Object) -> Result<ObjectRow> {
    let row = ObjectRow {
        sealed: sealing::seal(cx.app(), row.id, after)?,
        object: after.hidden(),
        stamp: row.stamp.changed(cx.profile(), cx.now()),
        ..row
    };
    objects::update(tx, cx.scope(), &row)?;
    roll_out(cx, tx, &row, Some(before), Some(after))?;
    cx.changed(tx, objects::KIND, row.stamp.version, about(&row))?;
    Ok(row)
}

/// Where a new object is to belong: it is there, the caller may make objects there, and it stays until the unit ends.
fn hold_home(
    cx: &Cx<Scope>,
    tx: &Tx,
    (scope, id): (EnvironmentObjectScope, EntityId),
) -> Result<WorkspaceId> {
    let (target, workspace_id) = match scope {
        EnvironmentObjectScope::Workspace => (Target::Workspace(id.as_workspace()), id.as_workspace()),
        EnvironmentObjectScope::Deployment => {
            let id = id.as_deployment();
            let found = objects::lock_deployments(tx, cx.scope(), &[id])?;
            let Some((_, workspace_id)) = found.first() else {
                return Err(Refusal::not_found("deployment").into());
            };
            (Target::Deployment { id, workspace_id: *workspace_id }, *workspace_id)
        }
    };
    cx.require(Verb::Create.permission(target), target)?;
    if scope == EnvironmentObjectScope::Workspace && !objects::lock_workspace(tx, cx.scope(), workspace_id)? {
        return Err(target.unseen().into());
    }
    Ok(workspace_id)
}

/// Those of the deployments that are of a workspace; they stay there until the unit ends.
fn hold_neighbours(
    cx: &Cx<Scope>,
    tx: &Tx,
    workspace_id: WorkspaceId,
    ids: &[DeploymentId],
) -> Result<BTreeSet<DeploymentId>> {
    let found = objects::lock_deployments(tx, cx.scope(), ids)?;
    Ok(found.into_iter().filter(|(_, home)| *home == workspace_id).map(|(id, _)| id).collect())
}

fn roll_out(
    cx: &Cx<Scope>,
    tx: &Tx,
    row: &ObjectRow,
    before: Option<&Object>,
    after: Option<&Object>,
) -> Result<()> {
    let candidates = match row.object.scope {
        EnvironmentObjectScope::Deployment => vec![row.entity_id.as_deployment()],
        EnvironmentObjectScope::Workspace => {
            deployments::of_workspace(tx, cx.scope(), row.entity_id.as_workspace())?
        }
    };
    let affected = affected(before, after, &candidates);
    if affected.is_empty() {
        return Ok(());
    }
    let key = Given::object_key(row.object.object_type, &row.key);
    let reason = UserText::filled("Rolling out a change of the environment object `{}`.", &[&key]);
    let why = RollOut {
        reason: &reason,
        cause: OperationCause::EnvironmentObject,
        subject_id: Some(cx.subject_id()),
        new_id: &mut || cx.new_id(),
        now: cx.now(),
    };
    for target in deployments::roll_out(tx, cx.scope(), &affected, why)? {
        plans::note_begun(OperationKind::Update, OperationCause::EnvironmentObject, &target);
    }
    Ok(())
}

/// An object, as an event names it.
fn about(row: &ObjectRow) -> Resource<'_> {
    Resource::new(row.id.id(), row.belongs_to()).named(&row.key)
}

/// An object as its readers see it.
fn shown(row: &ObjectRow) -> One<EnvironmentObject> {
    let body = show::object(&row.key, row.entity_id, &row.object, &row.object.values);
    One { version: row.stamp.version, body: stamped(body, row) }
}

fn stamped(object: EnvironmentObject, row: &ObjectRow) -> EnvironmentObject {
    EnvironmentObject {
        id: Some(row.id),
        created_at: Some(row.stamp.created_at),
        created_by: Some(row.stamp.created_by.clone()),
        updated_at: Some(row.stamp.updated_at),
        updated_by: Some(row.stamp.updated_by.clone()),
        ..object
    }
}

fn taken(row: &ObjectRow) -> String {
    let object_type = row.object.object_type;
    format!(
        "An environment object of type {object_type} with the key `{}` already exists there: choose another key.",
        row.key
    )
}
