//! Lists of environment objects, and the objects that apply to a deployment.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use podium_api::enums::EnvironmentObjectScope;
use podium_api::environment_objects::{
    self as api, EnvironmentObject, EnvironmentObjectsPaginated, ListEnvironmentObjects,
};
use podium_api::{DeploymentId, Many, Named, TypedId};
use podium_db::Conn;
use podium_domain::environment_objects::resolve::{Candidate, Resolved, resolve};
use podium_domain::environment_objects::{Secrecy, Verb, may, show};
use podium_domain::{Permission, Refusal, Target};
use podium_store::deployments::{self, DeploymentRow};
use podium_store::environment_objects::{self as objects, ListFilter, ObjectRow};
use podium_store::{Paging, Scope, Steward};
use serde_json::Value;

use super::{sealing, shown, stamped};
use crate::App;
use crate::cx::{Call, Cx};
use crate::error::Result;

const IN_WORKSPACE: Permission = Permission::known("workspace.envObjects.get");
const ON_DEPLOYMENT: Permission = Permission::known("deployment.envObjects.get");

/// Lists the objects that the caller may read, or what a deployment is given.
pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<EnvironmentObjectsPaginated>> {
    let query = call.query;
    let page = query.page.clone();
    if shows_secrets(&query) && !cx.app().config.show_secrets {
        return Err(not_shown("this server is not configured to").into());
    }
    let read = move |cx: &Cx<Scope>, conn: &Conn, paging: &Paging| match given(&query.deployment_id) {
        Some(id) if query.resolve_linked == Some(true) => resolved(cx, conn, &query, id, paging),
        _ => stored(cx, conn, &query, paging),
    };
    cx.list(&page, read, |object| object).await
}

fn shows_secrets(query: &ListEnvironmentObjects) -> bool {
    query.show_secrets == Some(true)
}

fn not_shown(why: &str) -> Refusal {
    Refusal::Forbidden(format!("showSecrets is not allowed by the organization: {why} show secrets."))
}

fn given<I: TypedId>(named: &Option<Named<I>>) -> Option<&Named<I>> {
    named.as_ref().filter(|named| named.is_given())
}

fn key(query: &ListEnvironmentObjects) -> Option<&str> {
    query.object_key.as_deref().filter(|key| !key.is_empty())
}

fn stored(
    cx: &Cx<Scope>,
    conn: &Conn,
    query: &ListEnvironmentObjects,
    paging: &Paging,
) -> Result<(Vec<EnvironmentObject>, u64)> {
    let listed = ListFilter {
        workspaces: &cx.grants().workspaces_with(IN_WORKSPACE),
        deployments: &cx.grants().deployments_with(ON_DEPLOYMENT),
        workspace_id: given(&query.workspace_id),
        deployment_id: given(&query.deployment_id),
        object_type: query.object_type,
        object_key: key(query),
    };
    let (rows, total) = objects::list(conn, cx.scope(), &listed, paging)?;
    let show = |row: &ObjectRow| {
        if !shows_secrets(query) {
            return Ok(shown(row).body);
        }
        may_read_secrets(cx, row)?;
        let object = sealing::open(cx.app(), row)?;
        Ok(stamped(show::object(&row.key, row.entity_id, &object, &object.values), row))
    };
    Ok((rows.iter().map(show).collect::<Result<_>>()?, total))
}

/// What a deployment is given, with overrides in place.
fn resolved(
    cx: &Cx<Scope>,
    conn: &Conn,
    query: &ListEnvironmentObjects,
    named: &Named<DeploymentId>,
    paging: &Paging,
) -> Result<(Vec<EnvironmentObject>, u64)> {
    let unseen = || Refusal::not_found("deployment");
    let id = named.id().ok_or_else(unseen)?;
    let deployment = deployments::get(conn, cx.scope(), id)?.ok_or_else(unseen)?;
    let target = Target::Deployment { id, workspace_id: deployment.workspace_id };
    cx.require(Verb::Get.permission(target), target)?;
    let is_elsewhere =
        given(&query.workspace_id).is_some_and(|asked| asked.id() != Some(deployment.workspace_id));
    let mut rows = if is_elsewhere {
        Vec::new()
    } else {
        objects::reaching(conn, cx.scope(), id, deployment.workspace_id)?
    };
    rows.sort_by(|left, right| compare(paging, left, right));
    let objects = if shows_secrets(query) {
        let given = asked_for(query, resolve(id, opened(cx.app(), rows)?, &variables(&deployment)));
        given.iter().try_for_each(|given| may_read_secrets(cx, &given.more))?;
        shown_to(id, given)
    } else {
        let hidden =
            |row: ObjectRow| Candidate { key: row.key.clone(), object: row.object.clone(), more: row };
        let candidates = rows.into_iter().map(hidden).collect();
        shown_to(id, asked_for(query, resolve(id, candidates, &variables(&deployment))))
    };
    let total = objects.len() as u64;
    let skip = usize::try_from(paging.offset).unwrap_or(usize::MAX);
    Ok((objects.into_iter().skip(skip).take(paging.limit as usize).collect(), total))
}

/// All objects of a deployment, with secrets decrypted: for the loop that builds its environment.
pub fn resolved_for(
    app: &App,
    system: &Steward,
    conn: &Conn,
    deployment: &DeploymentRow,
) -> Result<Vec<Resolved<Value, ObjectRow>>> {
    let scope = system.scope(deployment.organization_id);
    let rows = objects::reaching(conn, &scope, deployment.id, deployment.workspace_id)?;
    Ok(resolve(deployment.id, opened(app, rows)?, &variables(deployment)))
}

fn variables(deployment: &DeploymentRow) -> BTreeSet<&str> {
    deployment.spec.environment_variables.iter().map(|variable| variable.key.as_str()).collect()
}

fn opened(app: &App, rows: Vec<ObjectRow>) -> Result<Vec<Candidate<Value, ObjectRow>>> {
    let open =
        |row: ObjectRow| Ok(Candidate { key: row.key.clone(), object: sealing::open(app, &row)?, more: row });
    rows.into_iter().map(open).collect()
}

/// Objects are resolved before they are filtered: one that is not requested may still take precedence over one that is.
fn asked_for<S>(
    query: &ListEnvironmentObjects,
    mut given: Vec<Resolved<S, ObjectRow>>,
) -> Vec<Resolved<S, ObjectRow>> {
    given.retain(|given| {
        query.object_type.is_none_or(|kind| kind == given.object.object_type)
            && key(query).is_none_or(|key| key == given.key)
    });
    given
}

fn shown_to<S: Secrecy>(
    deployment_id: DeploymentId,
    given: Vec<Resolved<S, ObjectRow>>,
) -> Vec<EnvironmentObject> {
    let show = |given: Resolved<S, ObjectRow>| {
        let row = &given.more;
        let shown = show::object(&given.key, deployment_id.into(), &given.object, &given.values);
        EnvironmentObject {
            id: None,
            scope: EnvironmentObjectScope::Deployment,
            source_scope: Some(row.object.scope),
            source_scope_entity_id: Some(row.entity_id),
            ..stamped(shown, row)
        }
    };
    given.into_iter().map(show).collect()
}

/// Callers who may change an object may read its secrets, if the server allows that at all.
fn may_read_secrets(cx: &Cx<Scope>, row: &ObjectRow) -> Result<()> {
    may(cx.grants(), Verb::Update, row.belongs_to())
        .map_err(|_| not_shown("only callers who may change every listed object may").into())
}

/// The requested order, as the database would sort; newest first by default.
fn compare(paging: &Paging, left: &ObjectRow, right: &ObjectRow) -> Ordering {
    let newest_first = [podium_api::page::Sort { key: "createdAt", descending: true }];
    let sorts = if paging.sorts.is_empty() { &newest_first[..] } else { &paging.sorts };
    let directed = |order: Ordering, descending: bool| if descending { order.reverse() } else { order };
    let by = |sort: &podium_api::page::Sort| {
        let order = match sort.key {
            "objectType" => left.object.object_type.as_str().cmp(right.object.object_type.as_str()),
            "objectKey" => left.key.cmp(&right.key),
            "updatedAt" => left.stamp.updated_at.cmp(&right.stamp.updated_at),
            _ => left.stamp.created_at.cmp(&right.stamp.created_at),
        };
        directed(order, sort.descending)
    };
    let last = sorts.last().is_some_and(|sort| sort.descending);
    sorts.iter().map(by).fold(Ordering::Equal, Ordering::then).then(directed(left.id.cmp(&right.id), last))
}
