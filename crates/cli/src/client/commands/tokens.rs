//! `podium token`.

use clap::{Args, Subcommand};
use podium_api::{agent_tokens, tokens as api};
use podium_client::Call;
use serde_json::{Value, json};

use crate::client::edit::{Edited, pick};
use crate::client::ending::{Failed, Outcome};
use crate::client::fields::{given, merged};
use crate::client::grants::full_name;
use crate::client::output::{Listing, View, column, wide};
use crate::client::session::{Session, Setup};

/// API tokens, and tokens of remote agents.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium token create ci --workspace Reports --role operator --expires-in-days 90
  podium token create audit --role member --output json
  podium token rotate ci
  podium token list --deployment nightly
  podium token agent create worker-1 --deployment nightly")]
pub(crate) struct Tokens {
    #[command(flatten)]
    setup: Setup,
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// List tokens.
    List {
        /// Only tokens with a role in this workspace.
        #[arg(long)]
        workspace: Option<String>,
        /// Only tokens with a role on this deployment.
        #[arg(long)]
        deployment: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show a token, without its value.
    Get {
        /// Name or id.
        token: String,
    },
    /// Create a token and print its value, which is shown only once.
    Create {
        /// Name of the token.
        name: String,
        /// Description of the token.
        #[arg(long)]
        description: Option<String>,
        /// Role of the token.
        #[arg(long)]
        role: String,
        /// Workspace that the token belongs to; the default is the organization.
        #[arg(long, conflicts_with = "deployment")]
        workspace: Option<String>,
        /// Deployment that the token belongs to.
        #[arg(long)]
        deployment: Option<String>,
        /// Days until the token expires; by default it never expires.
        #[arg(long, value_name = "DAYS")]
        expires_in_days: Option<u32>,
    },
    /// Change a token; other settings are kept.
    Update {
        /// Name or id.
        token: String,
        /// New name of the token.
        #[arg(long)]
        name: Option<String>,
        /// Description of the token.
        #[arg(long)]
        description: Option<String>,
        /// Role on another workspace, such as Reports=author; existing roles are kept.
        #[arg(long, value_name = "WORKSPACE=ROLE")]
        workspace_role: Vec<String>,
    },
    /// Give a token a new value, and print it; the old one stops working at once.
    Rotate {
        /// Name or id.
        token: String,
    },
    /// Delete tokens.
    Delete {
        /// Names or ids.
        #[arg(required = true)]
        tokens: Vec<String>,
    },
    /// Tokens of remote agents.
    Agent(Agent),
}

#[derive(Args)]
struct Agent {
    /// Deployment that the agents work for.
    #[arg(long, global = true, env = "PODIUM_DEPLOYMENT", default_value = "")]
    deployment: String,
    #[command(subcommand)]
    verb: AgentVerb,
}

#[derive(Subcommand)]
enum AgentVerb {
    /// List agent tokens.
    List(Listing),
    /// Show an agent token, without its value.
    Get {
        /// Name or id.
        token: String,
    },
    /// Create an agent token and print its value, which is shown only once.
    Create {
        /// Name of the token.
        name: String,
        /// Days until the token expires; by default it never expires.
        #[arg(long, value_name = "DAYS")]
        expires_in_days: Option<u32>,
    },
    /// Delete agent tokens.
    Delete {
        /// Names or ids.
        #[arg(required = true)]
        tokens: Vec<String>,
    },
}

const VIEW: View = View {
    name: "name",
    columns: &[
        column("NAME", "name"),
        column("ID", "id"),
        column("SCOPE", "scope"),
        column("ENDS WITH", "shortToken"),
        column("EXPIRES", "endAt"),
        column("LAST USED", "lastUsedAt"),
        wide("DESCRIPTION", "description"),
        wide("CREATED", "createdAt"),
    ],
};

impl Tokens {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let organization = session.in_organization().await?;
        match self.verb {
            Verb::List { workspace, deployment, listing } => {
                let (workspace_id, deployment_id) = entities(&session, workspace, deployment).await?;
                let params = json!({ "workspaceId": workspace_id, "deploymentId": deployment_id });
                session
                    .list(Call::to::<api::List>(&organization).query_params(&params)?, &VIEW, &listing)
                    .await
            }
            Verb::Get { token } => {
                let path = session.token(&token).await?;
                session.show(&session.get::<api::Get>(&path).await?, &VIEW)
            }
            Verb::Create { name, description, role, workspace, deployment, expires_in_days } => {
                let (workspace_id, deployment_id) = entities(&session, workspace, deployment).await?;
                let scope = match (&workspace_id, &deployment_id) {
                    (_, Some(_)) => "DEPLOYMENT",
                    (Some(_), _) => "WORKSPACE",
                    _ => "ORGANIZATION",
                };
                let body = given(json!({
                    "name": name,
                    "description": description,
                    "scope": scope,
                    "entityId": deployment_id.or(workspace_id),
                    "role": full_name(scope, &role),
                    "tokenExpiryPeriodInDays": expires_in_days,
                }));
                let made = session.post::<api::Create>(&organization, &body).await?;
                eprintln!("Created token {name}. Its value is shown only once:");
                session.show_secret(&made, "token", &VIEW)
            }
            Verb::Update { token, name, description, workspace_role } => {
                let change = given(json!({ "name": name, "description": description }));
                if change == json!({}) && workspace_role.is_empty() {
                    return Err(Failed::usage("nothing to change: see podium token update --help"));
                }
                let path = session.token(&token).await?;
                session.hold_plan();
                let before = session.get::<api::Get>(&path).await?;
                if change != json!({}) {
                    let edit =
                        |current: &_| Ok(merged(pick(current, &["name", "description"]), change.clone()));
                    session.edit::<api::Get, api::Update>(&path, edit).await?;
                }
                let mut added = Vec::new();
                for text in &workspace_role {
                    let wrong = || Failed::usage(format!("{text:?} names no role: write WORKSPACE=ROLE"));
                    let (name, role) = text.rsplit_once('=').ok_or_else(wrong)?;
                    let id = session.workspace(name).await?.workspace_id;
                    let role = full_name("WORKSPACE", role);
                    added.push(json!({ "entityType": "WORKSPACE", "entityId": id, "role": role }));
                }
                if !added.is_empty() {
                    let edit =
                        |current: &Value| Ok(json!({ "roles": with_roles(&current["roles"], &added) }));
                    session.edit::<api::Get, api::UpdateRoles>(&path, edit).await?;
                }
                session.show_plan().await?;
                let edited = Edited::of(&before, session.get::<api::Get>(&path).await?);
                session.show(&edited.told(&format!("token {token}")), &VIEW)
            }
            Verb::Rotate { token } => {
                let path = session.token(&token).await?;
                session.agree(&format!(
                    "Replace the value of token {token}? The old one stops working at once."
                ))?;
                let rotated = session.post::<api::Rotate>(&path, &Value::Null).await?;
                eprintln!("Rotated token {token}. Its new value is shown only once:");
                session.show_secret(&rotated, "token", &VIEW)
            }
            Verb::Delete { tokens } => {
                let mut all = Vec::new();
                for name in tokens {
                    all.push((session.token(&name).await?, name));
                }
                session.delete::<api::Delete>("token", &all).await
            }
            Verb::Agent(agent) => agent.run(&session).await,
        }
    }
}

impl Agent {
    async fn run(self, session: &Session) -> Outcome {
        if self.deployment.is_empty() {
            return Err(Failed::usage("name the deployment of the agents with --deployment"));
        }
        let deployment = session.deployment(&self.deployment, None).await?;
        match self.verb {
            AgentVerb::List(listing) => {
                session.list(Call::to::<agent_tokens::List>(&deployment), &VIEW, &listing).await
            }
            AgentVerb::Get { token } => {
                let path = session.agent_token(deployment, &token).await?;
                session.show(&session.get::<agent_tokens::Get>(&path).await?, &VIEW)
            }
            AgentVerb::Create { name, expires_in_days } => {
                let body = given(json!({ "name": name, "tokenExpiryPeriodInDays": expires_in_days }));
                let made = session.post::<agent_tokens::Create>(&deployment, &body).await?;
                eprintln!("Created agent token {name}. Its value is shown only once:");
                session.show_secret(&made, "token", &VIEW)
            }
            AgentVerb::Delete { tokens } => {
                let mut all = Vec::new();
                for name in tokens {
                    all.push((session.agent_token(deployment, &name).await?, name));
                }
                session.delete::<agent_tokens::Delete>("agent token", &all).await
            }
        }
    }
}

/// The ids of a workspace and a deployment, where they are named.
async fn entities(
    session: &Session,
    workspace: Option<String>,
    deployment: Option<String>,
) -> Outcome<(Option<String>, Option<String>)> {
    let workspace_id = match workspace {
        Some(name) => Some(session.workspace(&name).await?.workspace_id.to_string()),
        None => None,
    };
    let deployment_id = match deployment {
        Some(name) => Some(session.deployment(&name, None).await?.deployment_id.to_string()),
        None => None,
    };
    Ok((workspace_id, deployment_id))
}

/// Roles with some added; one on the same thing is replaced.
fn with_roles(current: &Value, added: &[Value]) -> Vec<Value> {
    let is_kept = |role: &&Value| !added.iter().any(|new| new["entityId"] == role["entityId"]);
    current.as_array().into_iter().flatten().filter(is_kept).chain(added).cloned().collect()
}
