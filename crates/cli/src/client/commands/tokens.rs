//! `podium token`.

use clap::{Args, Subcommand};
use podium_api::enums::{TokenEntity, TokenScope};
use podium_api::{Nothing, agent_tokens, tokens as api};

use super::{Answer, Edited, Failed, Kind, Listing, Noun, One, Outcome, Session, Several, Verbs, View};
use crate::client::grants::{assignment, full_name};

pub(crate) const EXAMPLES: &str = "\
Examples:
  podium token create ci --workspace Reports --role operator --expires-in-days 90
  podium token create audit --role member --output json
  podium token rotate ci
  podium token list --deployment nightly
  podium token agent create worker-1 --deployment nightly";

#[derive(Subcommand)]
pub(crate) enum Verb {
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
    Get(One),
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
    Rotate(One),
    /// Delete tokens.
    Delete(Several),
    /// Tokens of remote agents.
    Agent(Agent),
}

#[derive(Args)]
pub(crate) struct Agent {
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
    Get(One),
    /// Create an agent token and print its value, which is shown only once.
    Create {
        /// Name of the token.
        name: String,
        /// Days until the token expires; by default it never expires.
        #[arg(long, value_name = "DAYS")]
        expires_in_days: Option<u32>,
    },
    /// Delete agent tokens.
    Delete(Several),
}

const VIEW: View = View {
    name: "name",
    columns: "NAME name, ID id, SCOPE scope, ENDS WITH shortToken, EXPIRES endAt, LAST USED lastUsedAt",
    wide: "DESCRIPTION description, CREATED createdAt",
};

impl Noun for api::Get {
    type List = api::List;
    const KIND: Kind = Kind::listed("token", "token list", "scope");
    const VIEW: &'static View = &VIEW;
}

impl Noun for agent_tokens::Get {
    type List = agent_tokens::List;
    const KIND: Kind = Kind::listed("agent token", "token agent list --deployment NAME", "createdAt");
    const VIEW: &'static View = &VIEW;
}

impl Verbs for Verb {
    async fn run(self, session: &Session) -> Outcome {
        let organization = session.in_organization().await?;
        match self {
            Self::List { workspace, deployment, listing } => {
                let (workspace, deployment) =
                    session.ids_in(workspace.as_deref(), deployment.as_deref()).await?;
                let query = api::ListApiTokens {
                    workspace_id: workspace.map(Into::into),
                    deployment_id: deployment.map(Into::into),
                    ..api::ListApiTokens::default()
                };
                session.list_where::<api::List>(&organization, &query, &VIEW, &listing).await
            }
            Self::Get(one) => session.show_named::<api::Get>(&one.name).await,
            Self::Create { name, description, role, workspace, deployment, expires_in_days } => {
                let (scope, entity_id) =
                    match session.ids_in(workspace.as_deref(), deployment.as_deref()).await? {
                        (_, Some(id)) => (TokenScope::Deployment, Some(id.into())),
                        (Some(id), _) => (TokenScope::Workspace, Some(id.into())),
                        _ => (TokenScope::Organization, None),
                    };
                let body = api::CreateApiTokenRequest {
                    name: name.clone(),
                    description,
                    scope,
                    entity_id,
                    role: full_name(scope.as_str(), &role),
                    kind: None,
                    token_expiry_period_in_days: expires_in_days,
                };
                let made = session.post::<api::Create>(&organization, &body).await?;
                eprintln!("Created token {name}. Its value is shown only once:");
                show_value(session, &made)
            }
            Self::Update { token, name, description, workspace_role } => {
                let has_settings = name.is_some() || description.is_some();
                if !has_settings && workspace_role.is_empty() {
                    return Err(Failed::usage("nothing to change: see podium token update --help"));
                }
                let path = session.named::<api::Get>(&token).await?;
                session.hold_plan();
                let before = session.get::<api::Get>(&path).await?;
                if has_settings {
                    let edit = |now: api::ApiToken| {
                        let (name, description) = (name.clone(), description.clone());
                        Ok(api::UpdateApiTokenRequest {
                            name: name.unwrap_or(now.name),
                            description: description.or(Some(now.description)),
                        })
                    };
                    session.edit::<api::Get, api::Update, _>(&path, edit).await?;
                }
                let mut added = Vec::new();
                for text in &workspace_role {
                    let (name, role) = assignment(text, "WORKSPACE")?;
                    added.push(api::ApiTokenRole {
                        entity_type: TokenEntity::Workspace,
                        entity_id: session.workspace(name).await?.workspace_id.to_string(),
                        deployment_id: None,
                        role: full_name("WORKSPACE", role),
                    });
                }
                if !added.is_empty() {
                    let edit = |now: api::ApiToken| {
                        let mut roles = now.roles.unwrap_or_default();
                        // One on the same thing is replaced.
                        roles.retain(|role| !added.iter().any(|new| new.entity_id == role.entity_id));
                        roles.extend_from_slice(&added);
                        Ok(api::UpdateApiTokenRolesRequest { roles })
                    };
                    session.edit::<api::Get, api::UpdateRoles, _>(&path, edit).await?;
                }
                session.show_plan().await?;
                let edited = Edited::of(&before.raw, session.get::<api::Get>(&path).await?.raw);
                session.show(&edited.told(&format!("token {token}")), &VIEW)
            }
            Self::Rotate(One { name: token }) => {
                let path = session.named::<api::Get>(&token).await?;
                session.agree(&format!(
                    "Replace the value of token {token}? The old one stops working at once."
                ))?;
                let rotated = session.post::<api::Rotate>(&path, &Nothing).await?;
                eprintln!("Rotated token {token}. Its new value is shown only once:");
                show_value(session, &rotated)
            }
            Self::Delete(all) => session.delete_named::<api::Get, api::Delete>(&all.names).await,
            Self::Agent(agent) => agent.run(session).await,
        }
    }
}

impl Agent {
    async fn run(self, session: &Session) -> Outcome {
        if self.deployment.is_empty() {
            return Err(Failed::usage("name the deployment of the agents with --deployment"));
        }
        let deployment = session.deployment(&self.deployment, None).await?;
        let find = async |token: &str| session.find::<agent_tokens::Get>(&deployment, &Nothing, token).await;
        match self.verb {
            AgentVerb::List(listing) => {
                session.list::<agent_tokens::List>(&deployment, &VIEW, &listing).await
            }
            AgentVerb::Get(one) => session.show_at::<agent_tokens::Get>(&find(&one.name).await?, &VIEW).await,
            AgentVerb::Create { name, expires_in_days } => {
                let body = agent_tokens::CreateAgentTokenRequest {
                    name: name.clone(),
                    description: None,
                    token_expiry_period_in_days: expires_in_days,
                };
                let made = session.post::<agent_tokens::Create>(&deployment, &body).await?;
                eprintln!("Created agent token {name}. Its value is shown only once:");
                show_value(session, &made)
            }
            AgentVerb::Delete(all) => {
                session.delete::<agent_tokens::Get, agent_tokens::Delete>(&all.names, find, &Nothing).await
            }
        }
    }
}

/// Shows the value of a token, which is shown only once.
fn show_value(session: &Session, token: &Answer<api::ApiToken>) -> Outcome {
    session.show_secret(token, |token| token.token, &VIEW)
}
