//! `podium whoami`: the user, or the API token, that commands act as.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use clap::Args;
use podium_api::enums::{ErrorCode, TokenEntity};
use podium_api::path::{OfDeployment, OfToken, OfWorkspace, PathParams as _};
use podium_api::{Id, OrganizationId, TokenId, TypedId as _, deployments, tokens, users, workspaces};
use podium_client::{Call, Client};
use serde_json::{Value, json};

use crate::client::commands::{Called, Outcome, Output, Session, Setup, View, merged, one_line, read};
use crate::client::grants::HeldByToken;

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

const VIEW: View = View::plain(
    "username",
    "USER username, NAME fullName, STATUS status, ORGANIZATION organizationId, ID id",
);

const TOKEN: View = View::plain(
    "name",
    "TOKEN name, SCOPE scope, ROLES roles, EXPIRES endAt, ORGANIZATION organizationId, ID id",
);

/// Who a caller is that is no user, where nothing else is known.
pub(super) const API_TOKEN: &str = "an API token";

impl Whoami {
    pub(crate) async fn run(self) -> Outcome {
        let session = self.setup.open()?;
        let user = match session.get::<users::GetSelf>(&()).await {
            // An API token is no user.
            Err(failed) if failed.code() == Some(ErrorCode::Forbidden) => return show_token(&session).await,
            found => found?,
        };
        if let Some(socket) = session.client.socket() {
            eprintln!("You are the operator of this server, through {}.", socket.display());
        }
        session.show(&user.raw, &VIEW)
    }
}

/// Shows the API token that the session calls with: its name, what it belongs to, and its roles.
async fn show_token(session: &Session) -> Outcome {
    let organization_id = session.organization().await?;
    let Some(token) = own_token(&session.client, organization_id).await? else {
        return session.show(&json!({ "username": API_TOKEN, "organizationId": organization_id }), &VIEW);
    };
    let mut more = json!({ "organizationId": organization_id });
    if matches!(session.format.output(), Output::Table | Output::Wide) {
        let mut roles = Vec::new();
        for role in read::<Option<Vec<HeldByToken>>>(&token["roles"])?.into_iter().flatten() {
            roles.push(described(session, organization_id, role).await);
        }
        more = merged(more, json!({ "roles": roles.join(", ") }));
    }
    session.show(&merged(token, more), &TOKEN)
}

/// A role and what it is held on, by name where the token may read that.
async fn described(session: &Session, organization_id: OrganizationId, held: HeldByToken) -> String {
    let HeldByToken { role, entity_type, entity_id, .. } = held;
    let id = entity_id.parse::<Id>().ok().map(|id| [organization_id.raw(), id]);
    let found: Option<Called> = match (entity_type.known(), id) {
        (Some(TokenEntity::Organization), _) => return role,
        (Some(TokenEntity::Workspace), Some(ids)) => {
            session.get::<workspaces::Get>(&OfWorkspace::from_ids(&ids)).await.and_then(|it| it.part()).ok()
        }
        (Some(TokenEntity::Deployment), Some(ids)) => {
            session.get::<deployments::Get>(&OfDeployment::from_ids(&ids)).await.and_then(|it| it.part()).ok()
        }
        _ => None,
    };
    let on = found.map_or(entity_id, |found| found.name);
    one_line(&format!("{role} on {} {on}", entity_type.to_string().to_lowercase()))
}

/// The API token that a client calls with; none if the server does not let it read itself.
pub(super) async fn own_token(client: &Client, organization_id: OrganizationId) -> Outcome<Option<Value>> {
    let Some(token_id) = client.token().and_then(id_in) else { return Ok(None) };
    let path = OfToken { organization_id, token_id };
    match client.send::<Value>(Call::to::<tokens::Get>(&path)).await {
        Ok(token) => Ok(Some(token.body)),
        Err(error) if matches!(error.code(), Some(ErrorCode::Forbidden | ErrorCode::NotFound)) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The id that a token says it has. Only the server can tell whether that is so.
fn id_in(token: &str) -> Option<TokenId> {
    let claims = token.split('.').nth(1)?;
    let claims: Value = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
    claims["apiTokenId"].as_str()?.parse().ok()
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
