//! Invites: how a person comes to belong to an organization.

use crate::enums::OrganizationRole;
use crate::path::{InOrganization, OfInvite};
use crate::reply::One;
use crate::subjects::SubjectProfile;
use crate::{InviteId, OrganizationId, Timestamp, UserId};

endpoints! {
    tag "Invite";

    /// Invite a user
    Create: POST "/organizations/{organizationId}/invites" as "CreateUserInvite" {
        path: InOrganization, body: CreateUserInviteRequest, reply: One<Invite>,
        permission: "organization.users.create", event: UserInvited, also: [409],
    }
    /// Withdraw an invite
    Delete: DELETE "/organizations/{organizationId}/invites/{inviteId}" as "DeleteUserInvite" {
        path: OfInvite,
        permission: "organization.users.delete", event: UserInviteWithdrawn, also: [412],
    }
    /// Create a new link to accept an invite
    CreateLink: POST "/organizations/{organizationId}/invites/{inviteId}/link" as "CreateUserInviteLink" {
        path: OfInvite, reply: One<InviteLink>,
        permission: "organization.users.create", event: UserInviteLinkCreated, marks: [secret_reply],
    }
}

wire! {
    /// A person to invite.
    pub struct CreateUserInviteRequest {
        /// The person's e-mail address.
        #[schemars(length(max = 254))]
        pub invitee_email: String,
        /// The role in the organization once accepted.
        pub role: OrganizationRole,
    }

    /// An open invite.
    pub struct Invite {
        /// Its id.
        pub invite_id: InviteId,
        /// When it expires.
        pub expires_at: Timestamp,
        /// The invited user.
        pub invitee: SubjectProfile,
        /// The user who sent the invite.
        pub inviter: SubjectProfile,
        /// To which organization.
        pub organization_id: OrganizationId,
        /// The name of that organization.
        pub organization_name: Option<String>,
        /// The user that the invitee is, pending until the invite is accepted.
        pub user_id: Option<UserId>,
    }

    /// A link that accepts an invite.
    pub struct InviteLink {
        /// The link; give it to the invited user and nobody else.
        pub url: String,
        /// The secret in the link, as `POST /auth/accept-invite` takes it.
        #[schemars(extend("format" = "password"))]
        pub token: String,
        /// When it expires.
        pub expires_at: Timestamp,
    }
}
