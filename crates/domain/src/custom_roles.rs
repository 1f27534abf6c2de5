//! Custom roles: permissions that an organization bundles under a name of its own.
//!
//! Only organization owners define them, which the endpoint's permission ensures. A permission that is listed twice
//! counts once. The store checks whether a name is free, and knows who holds a role.

use std::collections::BTreeSet;

use podium_api::WorkspaceId;
use podium_api::enums::{CustomRoleScope, RoleScope};
use podium_api::roles::{CreateCustomRoleRequest, UpdateCustomRoleRequest};

use crate::assignable::no_such;
use crate::groups::scope_of;
use crate::names::{Name, name};
use crate::permissions::{Permission, PermissionSet};
use crate::refusal::{Fields, Refusal, Result};
use crate::roles::is_built_in;

const MAX_NAME: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    pub name: Name,
    /// Its description; `None` keeps the stored one.
    pub description: Option<String>,
    pub permissions: PermissionSet,
    /// The only workspaces in which it can be held, in order: empty means everywhere, `None` keeps the list.
    pub restricted_workspace_ids: Option<Vec<WorkspaceId>>,
}

/// Checks a new custom role; `workspaces` are those of the organization that the request may name.
pub fn create(request: &CreateCustomRoleRequest, workspaces: &BTreeSet<WorkspaceId>) -> Result<Definition> {
    let CreateCustomRoleRequest { name, description, scope_type, permissions, restricted_workspace_ids } =
        request;
    let restricted = Some(restricted_workspace_ids.as_deref().unwrap_or_default());
    define(*scope_type, name, description.as_deref(), permissions, restricted, workspaces)
}

/// Checks new settings of a custom role, whose scope never changes.
pub fn update(
    scope: CustomRoleScope,
    request: &UpdateCustomRoleRequest,
    workspaces: &BTreeSet<WorkspaceId>,
) -> Result<Definition> {
    let UpdateCustomRoleRequest { name, description, permissions, restricted_workspace_ids } = request;
    define(scope, name, description.as_deref(), permissions, restricted_workspace_ids.as_deref(), workspaces)
}

fn define(
    scope: CustomRoleScope,
    role_name: &str,
    description: Option<&str>,
    permissions: &[String],
    restricted: Option<&[WorkspaceId]>,
    workspaces: &BTreeSet<WorkspaceId>,
) -> Result<Definition> {
    let mut fields = Fields::new();
    let checked = fields.take(name("name", role_name, MAX_NAME));
    if checked.as_ref().is_some_and(|name| is_built_in(&name.text)) {
        let message = format!("must not be the name of a built-in role; `{role_name}` is one");
        fields.push("name", "reserved", message);
    }
    let permissions = permission_set(scope, permissions, &mut fields);
    for (index, id) in restricted.unwrap_or_default().iter().enumerate() {
        if !workspaces.contains(id) {
            fields.push(format!("restrictedWorkspaceIds[{index}]"), "unknown", no_such("workspace", id));
        }
    }
    let name = fields.finish(checked)?;
    let once_each = |ids: &[WorkspaceId]| BTreeSet::from_iter(ids.iter().copied()).into_iter().collect();
    Ok(Definition {
        name,
        description: description.map(|text| text.trim().to_owned()),
        permissions,
        restricted_workspace_ids: restricted.map(once_each),
    })
}

fn permission_set(scope: CustomRoleScope, names: &[String], fields: &mut Fields) -> PermissionSet {
    let (role_scope, prefix) = match scope {
        CustomRoleScope::Deployment => (RoleScope::Deployment, "deployment."),
        CustomRoleScope::Dag => (RoleScope::Dag, "dag."),
    };
    if names.is_empty() {
        fields.push("permissions", "minItems", "must have at least one permission");
    }
    let mut set = PermissionSet::EMPTY;
    for (index, name) in names.iter().enumerate() {
        let (code, rule) = match Permission::named(name) {
            Some(permission) if scope_of(name) == role_scope => {
                set = set.with(permission);
                continue;
            }
            Some(_) => ("scope", format!("begin with `{prefix}`, because the role is of scope {scope}")),
            None => ("unknown", format!("be a permission that ListPermissionGroups lists for scope {scope}")),
        };
        fields.push(format!("permissions[{index}]"), code, format!("must {rule}; it is `{name}`"));
    }
    set
}

/// Refuses to restrict a role away from workspaces in which it is held.
pub fn stays_where_held(restricted_workspace_ids: &[WorkspaceId], held_in: &[WorkspaceId]) -> Result<()> {
    if restricted_workspace_ids.is_empty() {
        return Ok(());
    }
    let lost: Vec<String> =
        held_in.iter().filter(|id| !restricted_workspace_ids.contains(id)).map(ToString::to_string).collect();
    if lost.is_empty() {
        return Ok(());
    }
    Err(Refusal::Conflict(format!(
        "The role is still assigned in workspaces that `restrictedWorkspaceIds` omits: {}. Take it from its holders \
         there first, or list these workspaces.",
        lost.join(", ")
    )))
}

/// Refuses to delete a role that is assigned; `holders` are the display names of its holders.
pub fn is_free(holders: &[String]) -> Result<()> {
    const NAMED: usize = 10;
    if holders.is_empty() {
        return Ok(());
    }
    let mut list = holders.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if holders.len() > NAMED {
        list = format!("{list} and {} more", holders.len() - NAMED);
    }
    Err(Refusal::Conflict(format!("The role is still assigned to {list}. Give them another role first.")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{nothing, told, w1, w2};

    fn request(
        name: &str,
        permissions: &[&str],
        restricted: Option<Vec<WorkspaceId>>,
    ) -> CreateCustomRoleRequest {
        CreateCustomRoleRequest {
            name: name.into(),
            description: None,
            scope_type: CustomRoleScope::Deployment,
            permissions: permissions.iter().map(|name| (*name).into()).collect(),
            restricted_workspace_ids: restricted,
        }
    }

    fn workspaces() -> BTreeSet<WorkspaceId> {
        BTreeSet::from([w1(), w2()])
    }

    #[test]
    fn a_role_is_brought_to_one_form() {
        let twice = ["deployment.logs.get", "deployment.get", "deployment.get"];
        let role =
            create(&request(" Log reader ", &twice, Some(vec![w2(), w1(), w2()])), &workspaces()).unwrap();
        assert_eq!((role.name.text.as_str(), role.name.key.as_str()), ("Log reader", "log reader"));
        assert_eq!(role.permissions.names(), ["deployment.get", "deployment.logs.get"]);
        assert_eq!(role.restricted_workspace_ids, Some(vec![w1(), w2()]));
    }

    #[test]
    fn every_wrong_field_is_named() {
        let good = ["deployment.get"];
        let table: [(CreateCustomRoleRequest, &[&str]); 6] = [
            (request(" ", &good, None), &["name required"]),
            (request("dag_author", &good, None), &["name reserved"]),
            (request("Empty", &[], None), &["permissions minItems"]),
            (
                request(
                    "Mixed",
                    &["deployment.get", "dag.airflow.dag.get", "deployment.fly", "workspace.get"],
                    None,
                ),
                &["permissions[1] scope", "permissions[2] unknown", "permissions[3] scope"],
            ),
            (request("Lost", &good, Some(vec![w1(), nothing()])), &["restrictedWorkspaceIds[1] unknown"]),
            (
                request("", &["x"], Some(vec![nothing()])),
                &["name required", "permissions[0] unknown", "restrictedWorkspaceIds[0] unknown"],
            ),
        ];
        for (request, expected) in table {
            assert_eq!(told(&create(&request, &workspaces()).unwrap_err()), expected, "{}", request.name);
        }
    }

    #[test]
    fn an_update_keeps_the_scope_and_omitted_fields() {
        let request = |permission: &str, restricted| UpdateCustomRoleRequest {
            name: "Reviewer".into(),
            description: None,
            permissions: vec![permission.into()],
            restricted_workspace_ids: restricted,
        };
        let changed = |permission, restricted| {
            update(CustomRoleScope::Dag, &request(permission, restricted), &workspaces())
        };
        let kept = changed("dag.airflow.dag.get", None).unwrap();
        assert_eq!((kept.description, kept.restricted_workspace_ids), (None, None));
        let cleared = changed("dag.airflow.dag.get", Some(vec![])).unwrap();
        assert_eq!(cleared.restricted_workspace_ids, Some(vec![]));
        assert_eq!(told(&changed("deployment.get", None).unwrap_err()), ["permissions[0] scope"]);
    }

    #[test]
    fn a_role_in_use_stays() {
        assert_eq!(stays_where_held(&[], &[w1()]), Ok(()));
        assert_eq!(stays_where_held(&[w1()], &[w1()]), Ok(()));
        assert!(stays_where_held(&[w1()], &[w1(), w2()]).unwrap_err().message().contains(w2().as_str()));
        assert_eq!(is_free(&[]), Ok(()));
        let holders: Vec<String> = (1..=12).map(|n| format!("team {n}")).collect();
        let message = is_free(&holders).unwrap_err().message();
        assert!(message.contains("team 1, team 2") && message.contains("team 10 and 2 more"), "{message}");
    }
}
