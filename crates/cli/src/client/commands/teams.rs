//! `podium team`.

use clap::Subcommand;
use podium_api::enums::OrganizationRole;
use podium_api::path::OfTeamMember;
use podium_api::{Nothing, teams as api, users};

use super::{Edited, Failed, Kind, Listing, Noun, One, Outcome, Session, Several, Verbs, View};
use crate::client::grants::{RoleChanges, organization_role};

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium team create Data --member ada@example.com --member bob@example.com
  podium team member add Data eve@example.com
  podium team update Data --workspace-role Reports=author
  podium team delete Data --yes";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List teams.
    List(Listing),
    /// Show a team.
    Get(One),
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
    Delete(Several),
    /// Members of a team.
    #[command(subcommand)]
    Member(Member),
}

#[derive(Subcommand)]
pub(crate) enum Member {
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
    columns: "NAME name, ID id, ROLE organizationRole, DESCRIPTION description",
    wide: "ROLES rolesCount, CREATED createdAt",
};

const MEMBERS: View =
    View { name: "username", columns: "USER username, NAME fullName, ID userId", wide: "SINCE createdAt" };

impl Noun for api::Get {
    type List = api::List;
    const KIND: Kind = Kind::listed("team", "team list", "createdAt").asked("names");
    const VIEW: &'static View = &VIEW;
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        match self {
            Self::List(listing) => session.list_named::<api::Get>(&listing).await,
            Self::Get(one) => session.show_named::<api::Get>(&one.name).await,
            Self::Create { name, description, role, member } => {
                let body = api::CreateTeamRequest {
                    member_ids: Some(session.ids_of::<users::Get, _>(&member).await?),
                    organization_role: role.as_deref().map(organization_role).transpose()?,
                    name: name.clone(),
                    description,
                };
                session.create_named::<api::Get, api::Create>(&name, &body).await
            }
            Self::Update { team, name, description, roles } => {
                let has_settings = name.is_some() || description.is_some();
                if !has_settings && roles.is_empty() {
                    return Err(Failed::usage("nothing to change: give --name, --description or a role"));
                }
                let path = session.named::<api::Get>(&team).await?;
                session.hold_plan();
                let before = session.get::<api::Get>(&path).await?;
                if has_settings {
                    let edit = |now: api::Team| {
                        let (name, description) = (name.clone(), description.clone());
                        Ok(api::UpdateTeamRequest {
                            name: name.unwrap_or(now.name),
                            description: description.or(now.description),
                        })
                    };
                    session.edit::<api::Get, api::Update, _>(&path, edit).await?;
                }
                if !roles.is_empty() {
                    let roles = roles.resolve(session).await?;
                    let edit = |now: api::Team| {
                        let role = roles.organization(Some(now.organization_role));
                        Ok(api::UpdateTeamRolesRequest {
                            organization_role: role.unwrap_or(OrganizationRole::Member.to_string()),
                            workspace_roles: roles.workspaces(now.workspace_roles),
                            deployment_roles: roles.deployments(now.deployment_roles),
                            dag_roles: None,
                        })
                    };
                    session.edit::<api::Get, api::UpdateRoles, _>(&path, edit).await?;
                }
                session.show_plan().await?;
                let edited = Edited::of(&before.raw, session.get::<api::Get>(&path).await?.raw);
                session.show(&edited.told(&format!("team {team}")), &VIEW)
            }
            Self::Delete(all) => session.delete_named::<api::Get, api::Delete>(&all.names).await,
            Self::Member(Member::List { team, listing }) => {
                let path = session.named::<api::Get>(&team).await?;
                session.list::<api::ListMembers>(&path, &MEMBERS, &listing).await
            }
            Self::Member(Member::Add { team, users }) => {
                let path = session.named::<api::Get>(&team).await?;
                let member_ids = session.ids_of::<users::Get, _>(&users).await?;
                session.post::<api::AddMembers>(&path, &api::AddTeamMembersRequest { member_ids }).await?;
                eprintln!("Added {} to {team}.", users.join(", "));
                Ok(())
            }
            Self::Member(Member::Remove { team, users }) => {
                let path = session.named::<api::Get>(&team).await?;
                session.hold_plan();
                for user in &users {
                    let member_id = session.named::<users::Get>(user).await?.user_id;
                    let (organization_id, team_id) = (path.organization_id, path.team_id);
                    let path = OfTeamMember { organization_id, team_id, member_id };
                    session.post::<api::RemoveMember>(&path, &Nothing).await?;
                    if !session.is_planning() {
                        eprintln!("Removed {user} from {team}.");
                    }
                }
                session.show_plan().await
            }
        }
    }
}
