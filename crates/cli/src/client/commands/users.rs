//! `podium user`.

use clap::{Args, Subcommand};
use podium_api::users as api;
use podium_client::Call;
use serde_json::json;

use super::teams;
use crate::client::edit::Edited;
use crate::client::ending::Outcome;
use crate::client::grants::RoleChanges;
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::Setup;

/// Users of the organization, and their roles.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium user list --output wide
  podium user update ada@example.com --role owner
  podium user update ada@example.com --workspace-role Reports=author --remove-workspace-role Default
  podium user remove eve@example.com --yes")]
pub(crate) struct Users {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List users.
    List {
        /// Only users with a role in this workspace.
        #[arg(long)]
        workspace: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show a user.
    Get {
        /// E-mail address or id.
        user: String,
    },
    /// Change the roles of a user; other roles are kept.
    Update {
        /// E-mail address or id.
        user: String,
        #[command(flatten)]
        roles: RoleChanges,
    },
    /// Remove a user from the organization, with all roles and team memberships.
    #[command(alias = "delete")]
    Remove {
        /// E-mail address or id.
        user: String,
    },
    /// List the teams of a user.
    Teams {
        /// E-mail address or id.
        user: String,
        #[command(flatten)]
        listing: Listing,
    },
}

const VIEW: View = View {
    name: "username",
    columns: &[
        column("USER", "username"),
        column("NAME", "fullName"),
        column("STATUS", "status"),
        column("ROLE", "organizationRole"),
        column("ID", "id"),
        wide("CREATED", "createdAt"),
    ],
};

impl Users {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let organization = session.in_organization().await?;
        match self.verb {
            Verb::List { workspace, listing } => {
                let workspace_id = match workspace {
                    Some(name) => Some(session.workspace(&name).await?.workspace_id),
                    None => None,
                };
                let call = Call::to::<api::List>(&organization)
                    .query_params(&json!({ "workspaceId": workspace_id }))?;
                session.list(call, &VIEW, &listing).await
            }
            Verb::Get { user } => {
                let path = session.user(&user).await?;
                session.show(&session.get::<api::Get>(&path).await?, &VIEW)
            }
            Verb::Update { user, roles } => {
                let path = session.user(&user).await?;
                let roles = roles.resolve(&session).await?;
                let before = session.get::<api::Get>(&path).await?;
                session.edit::<api::Get, api::UpdateRoles>(&path, |current| Ok(roles.body(current))).await?;
                let edited = Edited::of(&before, session.get::<api::Get>(&path).await?);
                session.show(&edited.told(&format!("the roles of {user}")), &VIEW)
            }
            Verb::Remove { user } => {
                let path = session.user(&user).await?;
                session.agree(&format!("Remove {user} from the organization?"))?;
                session.post::<api::UpdateRoles>(&path, &json!({ "organizationRole": null })).await?;
                eprintln!("Removed {user}.");
                Ok(())
            }
            Verb::Teams { user, listing } => {
                let path = session.user(&user).await?;
                session.list(Call::to::<api::ListTeams>(&path), &teams::VIEW, &listing).await
            }
        }
    }
}
