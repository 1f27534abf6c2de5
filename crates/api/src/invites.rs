//! Invites: how a person comes to belong to an organization.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::enums::OrganizationRole;
use crate::operation::{Nothing, Operation, Permitted};
use crate::path::{InOrganization, OfInvite};
use crate::reply::One;
use crate::subjects::SubjectProfile;
use crate::{InviteId, OrganizationId, Timestamp, UserId};

const TAG: &str = "Invite";

/// Invites a person.
pub const CREATE: Operation<Permitted, InOrganization, Nothing, CreateUserInviteRequest, One<Invite>> =
    Operation::post(
        "CreateUserInvite",
        "/organizations/{organizationId}/invites",
        "organization.users.create",
    )
    .about(TAG, "Invite a user")
    .also(&[409]);
/// Withdraws an invite.
pub const DELETE: Operation<Permitted, OfInvite, Nothing, Nothing, Nothing> = Operation::delete(
    "DeleteUserInvite",
    "/organizations/{organizationId}/invites/{inviteId}",
    "organization.users.delete",
)
.about(TAG, "Withdraw an invite")
.also(&[412]);
/// Makes a fresh link to accept an invite; earlier links stop working.
pub const CREATE_LINK: Operation<Permitted, OfInvite, Nothing, Nothing, One<InviteLink>> = Operation::post(
    "CreateUserInviteLink",
    "/organizations/{organizationId}/invites/{inviteId}/link",
    "organization.users.create",
)
.about(TAG, "Make a fresh link to accept an invite")
.secret_reply();

/// A person to invite.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CreateUserInviteRequest {
    /// The person's e-mail address.
    #[schemars(length(max = 254))]
    pub invitee_email: String,
    /// The role in the organization once accepted.
    pub role: OrganizationRole,
}

/// An open invite.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Invite {
    /// Its id.
    pub invite_id: InviteId,
    /// When it lapses.
    pub expires_at: Timestamp,
    /// Who is invited.
    pub invitee: SubjectProfile,
    /// Who invites.
    pub inviter: SubjectProfile,
    /// To which organization.
    pub organization_id: OrganizationId,
    /// The name of that organization.
    pub organization_name: Option<String>,
    /// The user that the invitee is, pending until the invite is accepted.
    pub user_id: Option<UserId>,
}

/// A link that accepts an invite.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InviteLink {
    /// The link, to be handed to the invitee and nobody else.
    pub url: String,
    /// The secret in the link, as `POST /auth/accept-invite` takes it.
    #[schemars(extend("format" = "password"))]
    pub token: String,
    /// When it lapses.
    pub expires_at: Timestamp,
}
