//! `podium whoami`: the user, or the API token, that commands act as.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;
use podium_api::path::{OfDeployment, OfToken, OfWorkspace};
use podium_api::{OrganizationId, TokenId, deployments, tokens, users, workspaces};
use podium_client::{Call, Client};
use serde_json::{Value, json};

use crate::client::ending::{Outcome, one_line};
use crate::client::output::{Output, View, column};
use crate::client::session::{Session, Setup, text};

/// Show the user or token that you are signed in as, and where.
#[derive(Args)]
#[command(after_help = "\
Examples:
  podium whoami
  podium whoami --output json")]
pub(crate) struct Whoami {
    #[command(flatten)]
    setup: Setup,
}

const VIEW: View = View {
    name: "username",
    columns: &[
        column("USER", "username"),
        column("NAME", "fullName"),
        column("STATUS", "status"),
        column("ORGANIZATION", "organizationId"),
        column("ID", "id"),
    ],
};

/// What is shown of an API token.
const TOKEN: View = View {
    name: "name",
    columns: &[
        column("TOKEN", "name"),
        column("SCOPE", "scope"),
        column("ROLES", "roles"),
        column("EXPIRES", "endAt"),
        column("ORGANIZATION", "organizationId"),
        column("ID", "id"),
    ],
};

/// Who a caller is that is no user, where nothing else is known.
pub(super) const API_TOKEN: &str = "an API token";

impl Whoami {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let user = match session.get::<users::GetSelf>(&()).await {
            // An API token is no user.
            Err(failed) if failed.status() == Some(403) => return show_token(&session).await,
            found => found?,
        };
        if let Some(socket) = session.client.socket() {
            eprintln!("You are the operator of this server, through {}.", socket.display());
        }
        session.show(&user, &VIEW)
    }
}

/// Shows the API token that the session calls with: its name, what it belongs to, and its roles.
async fn show_token(session: &Session) -> Outcome {
    let organization_id = session.organization().await?;
    let Some(mut token) = own_token(&session.client, organization_id).await? else {
        return session.show(&json!({ "username": API_TOKEN, "organizationId": organization_id }), &VIEW);
    };
    token["organizationId"] = json!(organization_id);
    if matches!(session.format.output(), Output::Table | Output::Wide) {
        let mut roles = Vec::new();
        for role in token["roles"].as_array().into_iter().flatten() {
            roles.push(described(session, organization_id, role).await);
        }
        token["roles"] = roles.join(", ").into();
    }
    session.show(&token, &TOKEN)
}

/// A role and what it is held on, by name where the token may read that.
async fn described(session: &Session, organization_id: OrganizationId, role: &Value) -> String {
    let (name, id) = (text(&role["role"]), text(&role["entityId"]));
    let found = match text(&role["entityType"]) {
        "WORKSPACE" => match id.parse() {
            Ok(workspace_id) => {
                session.get::<workspaces::Get>(&OfWorkspace { organization_id, workspace_id }).await.ok()
            }
            Err(_) => None,
        },
        "DEPLOYMENT" => match id.parse() {
            Ok(deployment_id) => {
                session.get::<deployments::Get>(&OfDeployment { organization_id, deployment_id }).await.ok()
            }
            Err(_) => None,
        },
        "ORGANIZATION" => return name.to_owned(),
        _ => None,
    };
    let kind = text(&role["entityType"]).to_lowercase();
    let on = found.as_ref().map_or(id, |found| text(&found["name"]));
    one_line(&format!("{name} on {kind} {on}"))
}

/// The API token that a client calls with; none if the server does not let it read itself.
pub(super) async fn own_token(client: &Client, organization_id: OrganizationId) -> Outcome<Option<Value>> {
    let Some(token_id) = client.token().and_then(id_in) else { return Ok(None) };
    let path = OfToken { organization_id, token_id };
    match client.send::<Value>(Call::to::<tokens::Get>(&path)).await {
        Ok(token) => Ok(Some(token.body)),
        Err(error) if matches!(error.status(), Some(403 | 404)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The id that a token says it has. Only the server can tell whether that is so.
fn id_in(token: &str) -> Option<TokenId> {
    let claims = token.split('.').nth(1)?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    text(&claims["apiTokenId"]).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_of_a_token_is_read_from_it() {
        let claims = URL_SAFE_NO_PAD.encode(r#"{"apiTokenId":"c00000000000000000000000a"}"#);
        let id = id_in(&format!("e30.{claims}.signature")).map(|id| id.to_string());
        assert_eq!(id.as_deref(), Some("c00000000000000000000000a"));
        for wrong in ["", "abc", "e30.e30.x", "a.b.c"] {
            assert_eq!(id_in(wrong), None, "{wrong}");
        }
    }
}
