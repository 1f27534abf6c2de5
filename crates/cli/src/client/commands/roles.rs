//! `podium role`.

use clap::Subcommand;
use podium_api::enums::CustomRoleScope;
use podium_api::{authorization, roles as api};
use serde_json::json;

use super::{
    Failed, Kind, Listing, Noun, One, Outcome, Session, Several, Verbs, View, merged, object, one_of,
};

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium role create Watcher --permission deployment.get --permission deployment.logs.get
  podium role update Watcher --add-permission deployment.metrics.get
  podium role permissions --output wide
  podium role delete Watcher --yes";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List custom roles.
    List(Listing),
    /// Show a custom role.
    Get(One),
    /// Create a custom role.
    Create {
        /// Name of the role.
        name: String,
        /// Description of the role.
        #[arg(long)]
        description: Option<String>,
        /// Scope of the role: DEPLOYMENT or DAG.
        #[arg(long, default_value = "DEPLOYMENT")]
        scope: String,
        /// Permission that the role grants; see podium role permissions.
        #[arg(long, required = true)]
        permission: Vec<String>,
    },
    /// Change a custom role; other settings are kept.
    Update {
        /// Name or id.
        role: String,
        /// New name of the role.
        #[arg(long)]
        name: Option<String>,
        /// Description of the role.
        #[arg(long)]
        description: Option<String>,
        /// Permission to add.
        #[arg(long)]
        add_permission: Vec<String>,
        /// Permission to remove.
        #[arg(long)]
        remove_permission: Vec<String>,
    },
    /// Delete custom roles.
    Delete(Several),
    /// List role templates to copy.
    Templates,
    /// List the permissions that custom roles can grant.
    Permissions,
}

const GROUPS: View =
    View { name: "name", columns: "GROUP name, SCOPE scope, ACTIONS actions", wide: "ABOUT description" };

impl Noun for api::Get {
    type List = api::List;
    const KIND: Kind = Kind::listed("role", "role list", "scopeType");
    const VIEW: &'static View = &View {
        name: "name",
        columns: "NAME name, ID id, SCOPE scopeType, DESCRIPTION description",
        wide: "PERMISSIONS permissions, CREATED createdAt",
    };
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        let organization = session.in_organization().await?;
        match self {
            Self::List(listing) => session.list_named::<api::Get>(&listing).await,
            Self::Get(one) => session.show_named::<api::Get>(&one.name).await,
            Self::Create { name, description, scope, permission } => {
                let body = api::CreateCustomRoleRequest {
                    name: name.clone(),
                    description,
                    scope_type: one_of(CustomRoleScope::ALL, &scope)?,
                    permissions: permission,
                    restricted_workspace_ids: None,
                };
                session.create_named::<api::Get, api::Create>(&name, &body).await
            }
            Self::Update { role, name, description, add_permission, remove_permission } => {
                let is_kept = name.is_none() && description.is_none();
                if is_kept && add_permission.is_empty() && remove_permission.is_empty() {
                    return Err(Failed::usage("nothing to change: see podium role update --help"));
                }
                let path = session.named::<api::Get>(&role).await?;
                let edit = |now: api::RoleWithPermission| {
                    let (name, description) = (name.clone(), description.clone());
                    let mut permissions = now.permissions;
                    permissions.retain(|name| !remove_permission.contains(name));
                    let added = add_permission.iter().filter(|name| !permissions.contains(name));
                    let added: Vec<String> = added.cloned().collect();
                    permissions.extend(added);
                    Ok(api::UpdateCustomRoleRequest {
                        name: name.unwrap_or(now.name),
                        description: description.or(now.description),
                        permissions,
                        restricted_workspace_ids: Some(now.restricted_workspace_ids),
                    })
                };
                let edited = session.edit::<api::Get, api::Update, _>(&path, edit).await?;
                session.show(&edited.told(&format!("role {role}")), api::Get::VIEW)
            }
            Self::Delete(all) => session.delete_named::<api::Get, api::Delete>(&all.names).await,
            Self::Templates => {
                let found = session.get::<api::ListTemplates>(&organization).await?;
                session.show_all(&found.part::<Vec<_>>()?, api::Get::VIEW)
            }
            Self::Permissions => {
                let found = session.get::<authorization::ListGroups>(&()).await?;
                if !session.format.is_table() {
                    return session.show_all(&found.part::<Vec<_>>()?, &GROUPS);
                }
                let with_actions = |group: &authorization::PermissionGroup| {
                    let actions: Vec<&str> = group.permissions.iter().map(|it| it.action.as_str()).collect();
                    merged(json!({ "actions": actions }), object(group))
                };
                let groups: Vec<_> = found.body()?.iter().map(with_actions).collect();
                session.show_all(&groups, &GROUPS)
            }
        }
    }
}
