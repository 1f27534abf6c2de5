//! `podium workspace`.

use clap::{Args, Subcommand};
use podium_api::{Patch, Shown, workspaces as api};

use super::{Failed, Kind, Listing, Noun, One, Outcome, Session, Several, Verbs, View, value_of};

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium workspace list --sort name
  podium workspace create Reports --description 'Numbers for everyone'
  podium workspace update Reports --name Figures
  podium workspace delete Figures --yes";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// List workspaces.
    List(Listing),
    /// Show a workspace.
    Get(One),
    /// Create a workspace.
    Create {
        /// Name of the workspace.
        name: String,
        #[command(flatten)]
        settings: Settings,
    },
    /// Change a workspace; other settings are kept.
    Update {
        /// Name or id.
        workspace: String,
        /// New name of the workspace.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        settings: Settings,
    },
    /// Delete workspaces, with their tokens and environment objects; one that still has deployments is refused.
    Delete(Several),
}

#[derive(Args)]
pub(crate) struct Settings {
    /// Description of the workspace.
    #[arg(long)]
    description: Option<String>,
    /// Whether new deployments accept deploys only from API tokens.
    #[arg(long, value_name = "BOOL")]
    cicd_enforced: Option<bool>,
}

impl Noun for api::Get {
    type List = api::List;
    const KIND: Kind = Kind::listed("workspace", "workspace list", "createdAt").asked("names");
    const VIEW: &'static View = &View {
        name: "name",
        columns: "NAME name, ID id, DESCRIPTION description, CREATED createdAt",
        wide: "CI/CD ENFORCED cicdEnforcedDefault, CREATED BY createdBy.username, UPDATED updatedAt",
    };
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        match self {
            Self::List(listing) => session.list_named::<api::Get>(&listing).await,
            Self::Get(one) => session.show_named::<api::Get>(&one.name).await,
            Self::Create { name, settings } => {
                let Settings { description, cicd_enforced: cicd_enforced_default } = settings;
                let new = api::CreateWorkspaceRequest::default();
                let body = api::CreateWorkspaceRequest { name, description, cicd_enforced_default, ..new };
                session.create_named::<api::Get, api::Create>(&body.name, &body).await
            }
            Self::Update { workspace, name, settings: Settings { description, cicd_enforced } } => {
                if name.is_none() && description.is_none() && cicd_enforced.is_none() {
                    return Err(Failed::usage(
                        "nothing to change: give --name, --description or --cicd-enforced",
                    ));
                }
                let path = session.workspace(&workspace).await?;
                let edit = |now: Shown<api::Workspace>| {
                    let (now, name, description) = (value_of(now)?, name.clone(), description.clone());
                    Ok(api::UpdateWorkspaceRequest {
                        name: name.unwrap_or(now.name),
                        description: description.or(now.description).unwrap_or_default(),
                        cicd_enforced_default: cicd_enforced.unwrap_or(now.cicd_enforced_default),
                        default_cluster_id: Patch::Keep,
                        default_cloud_provider: Patch::Keep,
                        default_region: Patch::Keep,
                    })
                };
                let edited = session.edit::<api::Get, api::Update, _>(&path, edit).await?;
                session.show(&edited.told(&format!("workspace {workspace}")), api::Get::VIEW)
            }
            Self::Delete(all) => session.delete_named::<api::Get, api::Delete>(&all.names).await,
        }
    }
}
