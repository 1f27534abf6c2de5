//! `podium user`.

use clap::Subcommand;
use podium_api::{Patch, users as api};

use super::{Edited, Kind, Listing, Noun, Outcome, Session, Verbs, View, teams};
use crate::client::grants::RoleChanges;

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium user list --output wide
  podium user update ada@example.com --role owner
  podium user update ada@example.com --workspace-role Reports=author --remove-workspace-role Default
  podium user remove eve@example.com --yes";

#[derive(Subcommand)]
pub(crate) enum Verb {
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

impl Noun for api::Get {
    type List = api::List;
    const KIND: Kind = Kind::listed("user", "user list", "fullName");
    const VIEW: &'static View = &View {
        name: "username",
        columns: "USER username, NAME fullName, STATUS status, ROLE organizationRole, ID id",
        wide: "CREATED createdAt",
    };
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        let organization = session.in_organization().await?;
        match self {
            Self::List { workspace, listing } => {
                let workspace_id = session.ids_in(workspace.as_deref(), None).await?.0.map(Into::into);
                let query = api::ListUsers { workspace_id, ..api::ListUsers::default() };
                session.list_where::<api::List>(&organization, &query, api::Get::VIEW, &listing).await
            }
            Self::Get { user } => session.show_named::<api::Get>(&user).await,
            Self::Update { user, roles } => {
                let path = session.named::<api::Get>(&user).await?;
                let roles = roles.resolve(session).await?;
                let before = session.get::<api::Get>(&path).await?;
                let edit = |now: api::User| {
                    Ok(api::UpdateUserRolesRequest {
                        organization_role: patch(roles.organization(now.organization_role)),
                        workspace_roles: patch(roles.workspaces(now.workspace_roles)),
                        deployment_roles: patch(roles.deployments(now.deployment_roles)),
                        dag_roles: Patch::Keep,
                    })
                };
                session.edit::<api::Get, api::UpdateRoles, _>(&path, edit).await?;
                let edited = Edited::of(&before.raw, session.get::<api::Get>(&path).await?.raw);
                session.show(&edited.told(&format!("the roles of {user}")), api::Get::VIEW)
            }
            Self::Remove { user } => {
                let path = session.named::<api::Get>(&user).await?;
                session.agree(&format!("Remove {user} from the organization?"))?;
                let body =
                    api::UpdateUserRolesRequest { organization_role: Patch::Clear, ..Default::default() };
                session.post::<api::UpdateRoles>(&path, &body).await?;
                eprintln!("Removed {user}.");
                Ok(())
            }
            Self::Teams { user, listing } => {
                let path = session.named::<api::Get>(&user).await?;
                session.list::<api::ListTeams>(&path, &teams::VIEW, &listing).await
            }
        }
    }
}

fn patch<T>(wanted: Option<T>) -> Patch<T> {
    wanted.map_or(Patch::Keep, Patch::Set)
}
