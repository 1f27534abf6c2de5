//! `podium role`.

use clap::{Args, Subcommand};
use podium_api::{authorization, roles as api};
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::edit::pick;
use crate::client::ending::{Failed, Outcome};
use crate::client::fields::{given, merged};
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::Setup;

/// Custom roles, and their permissions.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium role create Watcher --permission deployment.get --permission deployment.logs.get
  podium role update Watcher --add-permission deployment.metrics.get
  podium role permissions --output wide
  podium role delete Watcher --yes")]
pub(crate) struct Roles {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List custom roles.
    List(Listing),
    /// Show a custom role.
    Get {
        /// Name or id.
        role: String,
    },
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
    Delete {
        /// Names or ids.
        #[arg(required = true)]
        roles: Vec<String>,
    },
    /// List role templates to copy.
    Templates,
    /// List the permissions that custom roles can grant.
    Permissions,
}

const VIEW: View = View {
    name: "name",
    columns: &[
        column("NAME", "name"),
        column("ID", "id"),
        column("SCOPE", "scopeType"),
        column("DESCRIPTION", "description"),
        wide("PERMISSIONS", "permissions"),
        wide("CREATED", "createdAt"),
    ],
};

const GROUPS: View = View {
    name: "name",
    columns: &[
        column("GROUP", "name"),
        column("SCOPE", "scope"),
        column("ACTIONS", "actions"),
        wide("ABOUT", "description"),
    ],
};

impl Roles {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let organization = session.in_organization().await?;
        match self.verb {
            Verb::List(listing) => session.list(Call::to::<api::List>(&organization), &VIEW, &listing).await,
            Verb::Get { role } => {
                let path = session.role(&role).await?;
                session.show(&session.get::<api::Get>(&path).await?, &VIEW)
            }
            Verb::Create { name, description, scope, permission } => {
                let body = given(json!({
                    "name": name,
                    "description": description,
                    "scopeType": scope.to_uppercase(),
                    "permissions": permission,
                }));
                let made = session.post::<api::Create>(&organization, &body).await?;
                eprintln!("Created role {name}.");
                session.show(&made, &VIEW)
            }
            Verb::Update { role, name, description, add_permission, remove_permission } => {
                let change = given(json!({ "name": name, "description": description }));
                if change == json!({}) && add_permission.is_empty() && remove_permission.is_empty() {
                    return Err(Failed::usage("nothing to change: see podium role update --help"));
                }
                let path = session.role(&role).await?;
                let edited = session.edit::<api::Get, api::Update>(&path, |current| {
                    let mut body =
                        pick(current, &["name", "description", "permissions", "restrictedWorkspaceIds"]);
                    let permissions =
                        permissions(&current["permissions"], &add_permission, &remove_permission);
                    body.insert("permissions".into(), permissions);
                    Ok(merged(body, change.clone()))
                });
                session.show(&edited.await?.told(&format!("role {role}")), &VIEW)
            }
            Verb::Delete { roles } => {
                let mut all = Vec::new();
                for name in roles {
                    all.push((session.role(&name).await?, name));
                }
                session.delete::<api::Delete>("role", &all).await
            }
            Verb::Templates => {
                let found = session.get::<api::ListTemplates>(&organization).await?;
                session.show_all(found.as_array().map_or(&[], Vec::as_slice), &VIEW)
            }
            Verb::Permissions => {
                let mut found = session.get::<authorization::ListGroups>(&()).await?;
                let groups = found.as_array_mut().map_or(&mut [][..], Vec::as_mut_slice);
                if session.format.is_table() {
                    for group in &mut *groups {
                        let actions = group["permissions"].as_array().into_iter().flatten();
                        let actions: Vec<Value> = actions.map(|entry| entry["action"].clone()).collect();
                        group["actions"] = actions.into();
                    }
                }
                session.show_all(groups, &GROUPS)
            }
        }
    }
}

fn permissions(current: &Value, added: &[String], removed: &[String]) -> Value {
    let current = current.as_array().into_iter().flatten().filter_map(Value::as_str);
    let kept = current.filter(|name| !removed.iter().any(|other| other == name));
    let mut all: Vec<&str> = kept.collect();
    all.extend(added.iter().map(String::as_str).filter(|name| !all.contains(name)).collect::<Vec<_>>());
    all.into()
}
