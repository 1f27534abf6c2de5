//! `podium team`.

use clap::{Args, Subcommand};
use podium_api::path::OfTeamMember;
use podium_api::teams as api;
use podium_client::Call;
use serde_json::json;

use crate::client::edit::{Edited, pick};
use crate::client::ending::{Failed, Outcome};
use crate::client::fields::{given, merged};
use crate::client::grants::{RoleChanges, full_name};
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::Setup;

/// Teams of users, and their roles.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium team create Data --member ada@example.com --member bob@example.com
  podium team member add Data eve@example.com
  podium team update Data --workspace-role Reports=author
  podium team delete Data --yes")]
pub(crate) struct Teams {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List teams.
    List(Listing),
    /// Show a team.
    Get {
        /// Name or id.
        team: String,
    },
    /// Create a team.
    Create {
        /// Name of the team.
        name: String,
        /// Description of the team.
        #[arg(long)]
        description: Option<String>,
        /// Role of the team in the organization; the default is member.
        #[arg(long)]
        role: Option<String>,
        /// E-mail address or id of a member.
        #[arg(long, value_name = "USER")]
        member: Vec<String>,
    },
    /// Change a team or its roles; other settings and roles are kept.
    Update {
        /// Name or id.
        team: String,
        /// New name of the team.
        #[arg(long)]
        name: Option<String>,
        /// Description of the team.
        #[arg(long)]
        description: Option<String>,
        #[command(flatten)]
        roles: RoleChanges,
    },
    /// Delete teams.
    Delete {
        /// Names or ids.
        #[arg(required = true)]
        teams: Vec<String>,
    },
    /// Members of a team.
    #[command(subcommand)]
    Member(Member),
}

#[derive(Subcommand)]
enum Member {
    /// List the members of a team.
    List {
        /// Name or id of the team.
        team: String,
        #[command(flatten)]
        listing: Listing,
    },
    /// Add members to a team.
    Add {
        /// Name or id of the team.
        team: String,
        /// E-mail addresses or ids.
        #[arg(required = true)]
        users: Vec<String>,
    },
    /// Remove members from a team.
    Remove {
        /// Name or id of the team.
        team: String,
        /// E-mail addresses or ids.
        #[arg(required = true)]
        users: Vec<String>,
    },
}

pub(crate) const VIEW: View = View {
    name: "name",
    columns: &[
        column("NAME", "name"),
        column("ID", "id"),
        column("ROLE", "organizationRole"),
        column("DESCRIPTION", "description"),
        wide("ROLES", "rolesCount"),
        wide("CREATED", "createdAt"),
    ],
};

const MEMBERS: View = View {
    name: "username",
    columns: &[
        column("USER", "username"),
        column("NAME", "fullName"),
        column("ID", "userId"),
        wide("SINCE", "createdAt"),
    ],
};

impl Teams {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let organization = session.in_organization().await?;
        match self.verb {
            Verb::List(listing) => session.list(Call::to::<api::List>(&organization), &VIEW, &listing).await,
            Verb::Get { team } => {
                let path = session.team(&team).await?;
                session.show(&session.get::<api::Get>(&path).await?, &VIEW)
            }
            Verb::Create { name, description, role, member } => {
                let mut members = Vec::new();
                for user in member {
                    members.push(session.user(&user).await?.user_id);
                }
                let role = role.map(|role| full_name("ORGANIZATION", &role));
                let body = given(json!({
                    "name": name, "description": description, "organizationRole": role, "memberIds": members,
                }));
                let made = session.post::<api::Create>(&organization, &body).await?;
                eprintln!("Created team {name}.");
                session.show(&made, &VIEW)
            }
            Verb::Update { team, name, description, roles } => {
                let change = given(json!({ "name": name, "description": description }));
                let has_settings = change != json!({});
                if !has_settings && roles.is_empty() {
                    return Err(Failed::usage("nothing to change: give --name, --description or a role"));
                }
                let path = session.team(&team).await?;
                session.hold_plan();
                let before = session.get::<api::Get>(&path).await?;
                if has_settings {
                    let edit =
                        |current: &_| Ok(merged(pick(current, &["name", "description"]), change.clone()));
                    session.edit::<api::Get, api::Update>(&path, edit).await?;
                }
                if !roles.is_empty() {
                    let roles = roles.resolve(&session).await?;
                    session
                        .edit::<api::Get, api::UpdateRoles>(&path, |current| Ok(roles.body(current)))
                        .await?;
                }
                session.show_plan().await?;
                let edited = Edited::of(&before, session.get::<api::Get>(&path).await?);
                session.show(&edited.told(&format!("team {team}")), &VIEW)
            }
            Verb::Delete { teams } => {
                let mut all = Vec::new();
                for name in teams {
                    all.push((session.team(&name).await?, name));
                }
                session.delete::<api::Delete>("team", &all).await
            }
            Verb::Member(Member::List { team, listing }) => {
                let path = session.team(&team).await?;
                session.list(Call::to::<api::ListMembers>(&path), &MEMBERS, &listing).await
            }
            Verb::Member(Member::Add { team, users }) => {
                let path = session.team(&team).await?;
                let mut ids = Vec::new();
                for user in &users {
                    ids.push(session.user(user).await?.user_id);
                }
                let call = Call::to::<api::AddMembers>(&path).body(&json!({ "memberIds": ids }))?;
                session.change(call).await?;
                eprintln!("Added {} to {team}.", users.join(", "));
                Ok(())
            }
            Verb::Member(Member::Remove { team, users }) => {
                let path = session.team(&team).await?;
                session.hold_plan();
                for user in &users {
                    let member_id = session.user(user).await?.user_id;
                    let (organization_id, team_id) = (path.organization_id, path.team_id);
                    let path = OfTeamMember { organization_id, team_id, member_id };
                    session.change(Call::to::<api::RemoveMember>(&path)).await?;
                    if !session.is_planning() {
                        eprintln!("Removed {user} from {team}.");
                    }
                }
                session.show_plan().await
            }
        }
    }
}
