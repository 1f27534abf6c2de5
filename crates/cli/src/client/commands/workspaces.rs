//! `podium workspace`.

use clap::{Args, Subcommand};
use podium_api::workspaces as api;
use podium_client::Call;
use serde_json::json;

use crate::client::edit::pick;
use crate::client::ending::{Failed, Outcome};
use crate::client::fields::{given, merged};
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::Setup;

/// Workspaces, which group deployments.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium workspace list --sort name
  podium workspace create Reports --description 'Numbers for everyone'
  podium workspace update Reports --name Figures
  podium workspace delete Figures --yes")]
pub(crate) struct Workspaces {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List workspaces.
    List(Listing),
    /// Show a workspace.
    Get {
        /// Name or id.
        workspace: String,
    },
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
    Delete {
        /// Names or ids.
        #[arg(required = true)]
        workspaces: Vec<String>,
    },
}

#[derive(Args)]
struct Settings {
    /// Description of the workspace.
    #[arg(long)]
    description: Option<String>,
    /// Whether new deployments accept deploys only from API tokens.
    #[arg(long, value_name = "BOOL")]
    cicd_enforced: Option<bool>,
}

const VIEW: View = View {
    name: "name",
    columns: &[
        column("NAME", "name"),
        column("ID", "id"),
        column("DESCRIPTION", "description"),
        column("CREATED", "createdAt"),
        wide("CI/CD ENFORCED", "cicdEnforcedDefault"),
        wide("CREATED BY", "createdBy.username"),
        wide("UPDATED", "updatedAt"),
    ],
};

impl Workspaces {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let organization = session.in_organization().await?;
        match self.verb {
            Verb::List(listing) => session.list(Call::to::<api::List>(&organization), &VIEW, &listing).await,
            Verb::Get { workspace } => {
                let path = session.workspace(&workspace).await?;
                session.show(&session.get::<api::Get>(&path).await?, &VIEW)
            }
            Verb::Create { name, settings } => {
                let body = given(json!({
                    "name": name,
                    "description": settings.description,
                    "cicdEnforcedDefault": settings.cicd_enforced,
                }));
                let made = session.post::<api::Create>(&organization, &body).await?;
                eprintln!("Created workspace {name}.");
                session.show(&made, &VIEW)
            }
            Verb::Update { workspace, name, settings } => {
                let change = given(json!({
                    "name": name,
                    "description": settings.description,
                    "cicdEnforcedDefault": settings.cicd_enforced,
                }));
                if change == json!({}) {
                    return Err(Failed::usage(
                        "nothing to change: give --name, --description or --cicd-enforced",
                    ));
                }
                let path = session.workspace(&workspace).await?;
                let edited = session.edit::<api::Get, api::Update>(&path, |current| {
                    let mut kept = pick(current, &["name", "description", "cicdEnforcedDefault"]);
                    kept.entry("description").or_insert_with(|| "".into());
                    Ok(merged(kept, change.clone()))
                });
                session.show(&edited.await?.told(&format!("workspace {workspace}")), &VIEW)
            }
            Verb::Delete { workspaces } => {
                let mut all = Vec::new();
                for name in workspaces {
                    all.push((session.workspace(&name).await?, name));
                }
                session.delete::<api::Delete>("workspace", &all).await
            }
        }
    }
}
