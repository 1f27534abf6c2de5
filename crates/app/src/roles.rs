//! Custom roles, the built-in ones, and templates to copy.

use podium_api::enums::{CustomRoleScope, DefaultRoleScope, RoleScope};
use podium_api::roles::{self as api, Role, RoleTemplate, RoleWithPermission, RolesPaginated};
use podium_api::{Many, Nothing, One, RoleId};
use podium_db::Conn;
use podium_domain::events::Resource;
use podium_domain::{Refusal, Target, custom_roles, no_escalation, roles as built_in};
use podium_store::{Paging, Scope, Stamp, grants, roles};

use crate::cx::{Call, Cx};
use crate::error::{OrConflict, Result};
use crate::workspaces::known as known_workspaces;

pub async fn list_templates(_: Cx<Scope>, call: Call<api::ListTemplates>) -> Result<Many<Vec<RoleTemplate>>> {
    let mut templates = built_in::templates();
    templates.retain(|template| is_asked_for(&call.query.scope_types, template.scope_type));
    Ok(Many(templates))
}

/// Lists custom roles and, on request, the built-in ones.
pub async fn list(cx: Cx<Scope>, call: Call<api::List>) -> Result<Many<RolesPaginated>> {
    let paging = Paging::from(&call.query.page);
    let (limit, offset) = (paging.limit, paging.offset);
    let scopes = call.query.scope_types;
    let default_roles = (call.query.include_default_roles == Some(true)).then(|| {
        let mut roles = built_in::default_roles();
        roles.retain(|role| is_asked_for(&scopes, role.scope_type));
        roles
    });
    let page = move |cx: &Cx<Scope>, conn: &Conn| Ok(roles::list(conn, cx.scope(), &scopes, &paging)?);
    let (roles, total_count) = cx.scan(page).await?;
    let roles = roles.into_iter().map(without_permissions).collect();
    Ok(Many(RolesPaginated { roles, default_roles, limit, offset, total_count }))
}

pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<RoleWithPermission>> {
    only_owners(&cx)?;
    let body = call.body;
    let id = cx.new_id();
    let stamp = Stamp::new(cx.profile(), cx.now());
    cx.change_rights(move |cx, tx| {
        cx.rights_change(tx)?;
        let known = known_workspaces(tx, cx.scope(), body.restricted_workspace_ids.as_deref())?;
        let definition = custom_roles::create(&body, &known)?;
        let role = RoleWithPermission {
            id,
            name: definition.name.text,
            description: Some(definition.description.unwrap_or_default()),
            scope_type: match body.scope_type {
                CustomRoleScope::Deployment => RoleScope::Deployment,
                CustomRoleScope::Dag => RoleScope::Dag,
            },
            permissions: definition.permissions.names(),
            restricted_workspace_ids: definition.restricted_workspace_ids.unwrap_or_default(),
            created_at: stamp.created_at,
            created_by: stamp.created_by.clone(),
            updated_at: stamp.updated_at,
            updated_by: stamp.updated_by.clone(),
        };
        roles::insert(tx, cx.scope(), &role, &definition.name.key, &stamp)
            .or_conflict(|| taken(&role.name))?;
        cx.changed(tx, roles::KIND, stamp.version, about(&role))?;
        Ok(One { version: stamp.version, body: role })
    })
    .await
}

pub async fn get(cx: Cx<Scope>, call: Call<api::Get>) -> Result<One<RoleWithPermission>> {
    cx.read(move |cx, conn| find(conn, cx.scope(), call.path.role_id)).await
}

/// Changes a custom role, for all who hold it.
pub async fn update(cx: Cx<Scope>, call: Call<api::Update>) -> Result<One<RoleWithPermission>> {
    only_owners(&cx)?;
    let body = call.body;
    let id = call.path.role_id;
    cx.change_rights(move |cx, tx| {
        cx.rights_change(tx)?;
        let One { version, body: stored } = find(tx, cx.scope(), id)?;
        cx.expect_version(version)?;
        let known = known_workspaces(tx, cx.scope(), body.restricted_workspace_ids.as_deref())?;
        let scope_type = match stored.scope_type {
            RoleScope::Dag => CustomRoleScope::Dag,
            _ => CustomRoleScope::Deployment,
        };
        let definition = custom_roles::update(scope_type, &body, &known)?;
        if let Some(restricted) = &definition.restricted_workspace_ids {
            custom_roles::stays_where_held(
                restricted,
                &grants::workspaces_of_custom_role(tx, cx.scope(), id)?,
            )?;
        }
        let role = RoleWithPermission {
            name: definition.name.text,
            description: definition.description.or(stored.description),
            permissions: definition.permissions.names(),
            restricted_workspace_ids: definition
                .restricted_workspace_ids
                .unwrap_or(stored.restricted_workspace_ids),
            updated_at: cx.now().max(stored.updated_at),
            updated_by: cx.profile(),
            ..stored
        };
        roles::update(tx, cx.scope(), &role, &definition.name.key, version)
            .or_conflict(|| taken(&role.name))?;
        cx.changed(tx, roles::KIND, version + 1, about(&role))?;
        Ok(One { version: version + 1, body: role })
    })
    .await
}

/// Deletes a custom role that nobody holds.
pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    only_owners(&cx)?;
    let id = call.path.role_id;
    cx.change_rights(move |cx, tx| {
        cx.rights_change(tx)?;
        let One { version, body: role } = find(tx, cx.scope(), id)?;
        cx.expect_version(version)?;
        let holders: Vec<String> = grants::holders(tx, cx.scope(), id)?.iter().map(in_words).collect();
        custom_roles::is_free(&holders)?;
        roles::delete(tx, cx.scope(), id, version)?;
        cx.changed(tx, roles::KIND, version + 1, about(&role))?;
        Ok(Nothing)
    })
    .await
}

fn find(conn: &Conn, scope: &Scope, id: RoleId) -> Result<One<RoleWithPermission>> {
    roles::get(conn, scope, id)?.ok_or_else(|| Refusal::not_found("role").into())
}

/// A role, as an event names it.
fn about(role: &RoleWithPermission) -> Resource<'_> {
    Resource::new(role.id.id(), Target::Organization).named(&role.name)
}

fn only_owners(cx: &Cx<Scope>) -> Result<()> {
    Ok(no_escalation::only_owners(cx.grants(), "define custom roles")?)
}

/// Whether a scope is among those requested; an empty list means all.
fn is_asked_for(scopes: &[RoleScope], scope: DefaultRoleScope) -> bool {
    scopes.is_empty() || scopes.iter().any(|asked| asked.as_str() == scope.as_str())
}

fn without_permissions(role: RoleWithPermission) -> Role {
    Role {
        id: role.id,
        name: role.name,
        description: role.description,
        scope_type: role.scope_type,
        restricted_workspace_ids: role.restricted_workspace_ids,
        created_at: role.created_at,
        created_by: role.created_by,
        updated_at: role.updated_at,
        updated_by: role.updated_by,
    }
}

fn taken(name: &str) -> String {
    format!("A role named `{name}` already exists: choose another name.")
}

fn in_words((kind, name): &(String, String)) -> String {
    let kind = match kind.as_str() {
        "USER" => "user",
        "TEAM" => "team",
        _ => "API token",
    };
    format!("{kind} `{name}`")
}
