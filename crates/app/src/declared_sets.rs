//! Sets of declared resources: what a file of declarations owns, and may delete again.
//!
//! A set is a record of its owners' tools. It gives no rights: whoever deletes a member needs the permission for that.

use podium_api::declared_sets::{self as api, DeclaredMember, DeclaredSet, DeclaredSetsPaginated};
use podium_api::{DeclaredSetId, Many, Nothing, One};
use podium_db::Conn;
use podium_domain::{Refusal, names};
use podium_store::{Paging, Scope, Stamp, declared_sets};

use crate::cx::{Call, Cx};
use crate::error::{OrConflict, Result};

const MAX_NAME: usize = 128;

pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<DeclaredSetsPaginated>> {
    let keys: Vec<String> = call.query.names.iter().map(|name| names::fold(name)).collect();
    let read = move |cx: &Cx<Scope>, conn: &Conn, paging: &Paging| {
        Ok(declared_sets::list(conn, cx.scope(), &keys, paging)?)
    };
    cx.list(&call.query.page, read, |set| set).await
}

pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<DeclaredSet>> {
    let name = names::name("name", &call.body.name, MAX_NAME)?;
    let stamp = Stamp::new(cx.profile(), cx.now());
    let set = DeclaredSet {
        id: cx.new_id(),
        name: name.text,
        members: each_once(call.body.members),
        created_at: stamp.created_at,
        created_by: stamp.created_by.clone(),
        updated_at: stamp.updated_at,
        updated_by: stamp.updated_by.clone(),
    };
    cx.mutate(move |cx, tx| {
        let taken = || format!("A set named `{}` already exists: choose another name.", set.name);
        declared_sets::insert(tx, cx.scope(), &set, &name.key, &stamp).or_conflict(taken)?;
        cx.logged(tx, declared_sets::KIND, set.id.id(), stamp.version)?;
        Ok(One { version: stamp.version, body: set.clone() })
    })
    .await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<DeclaredSet>> {
    cx.read(move |cx, conn| find(conn, cx.scope(), call.path.declared_set_id)).await
}

pub async fn update(cx: Cx<Scope>, call: Call<api::Update>) -> Result<One<DeclaredSet>> {
    let members = each_once(call.body.members);
    let id = call.path.declared_set_id;
    cx.mutate(move |cx, tx| {
        let One { version, body: stored } = find(tx, cx.scope(), id)?;
        cx.expect_version(version)?;
        let (updated_at, updated_by) = (cx.now().max(stored.updated_at), cx.profile());
        let set = DeclaredSet { members: members.clone(), updated_at, updated_by, ..stored };
        declared_sets::update(tx, cx.scope(), &set, version)?;
        cx.logged(tx, declared_sets::KIND, id.id(), version + 1)?;
        Ok(One { version: version + 1, body: set })
    })
    .await
}

/// Deletes a set; what it owned stays.
pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let id = call.path.declared_set_id;
    cx.mutate(move |cx, tx| {
        let One { version, .. } = find(tx, cx.scope(), id)?;
        cx.expect_version(version)?;
        declared_sets::delete(tx, cx.scope(), id, version)?;
        cx.logged(tx, declared_sets::KIND, id.id(), version + 1)?;
        Ok(Nothing)
    })
    .await
}

fn find(conn: &Conn, scope: &Scope, id: DeclaredSetId) -> Result<One<DeclaredSet>> {
    declared_sets::get(conn, scope, id)?.ok_or_else(|| Refusal::not_found("declared set").into())
}

fn each_once(mut members: Vec<DeclaredMember>) -> Vec<DeclaredMember> {
    members.sort_unstable();
    members.dedup_by_key(|member| (member.kind, member.id));
    members
}
