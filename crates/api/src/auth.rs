//! Accounts without an identity provider: accept an invite, sign in and out, change a password.

use crate::reply::Many;
use crate::{OrganizationId, Timestamp, UserId};

endpoints! {
    tag "Auth";

    /// Accept an invite
    AcceptInvite: POST "/auth/accept-invite" as "AcceptInvite" {
        body: AcceptInviteRequest, reply: Many<AcceptedInvite>,
        open_to: Anyone, event: UserJoined, also: [401, 403, 404], marks: [secret_reply],
    }
    /// Sign in with a password
    SignIn: POST "/auth/sign-in" as "SignIn" {
        body: SignInRequest, reply: Many<Session>,
        open_to: Anyone, without_event: "an account belongs to no organization",
        also: [401], marks: [secret_reply],
    }
    /// Renew a session
    Renew: POST "/auth/renew" as "RenewSession" {
        reply: Many<Session>,
        open_to: SignedIn, without_event: "a session belongs to no organization",
        also: [403], marks: [secret_reply],
    }
    /// Sign out
    SignOut: POST "/auth/sign-out" as "SignOut" {
        open_to: SignedIn, without_event: "a session belongs to no organization", also: [403],
    }
    /// Change your password
    ChangePassword: POST "/auth/change-password" as "ChangePassword" {
        body: ChangePasswordRequest,
        open_to: SignedIn, without_event: "an account belongs to no organization", also: [403],
    }
}

wire! {
    /// A name and a password.
    pub struct SignInRequest {
        /// The user's e-mail address.
        #[schemars(length(min = 1, max = 254))]
        pub username: String,
        /// The user's password.
        #[schemars(length(min = 1, max = 1024), extend("format" = "password"))]
        pub password: String,
    }

    /// A session: a token that works for some hours.
    pub struct Session {
        /// The token, for the `Authorization: Bearer` header.
        #[schemars(extend("format" = "password"))]
        pub token: String,
        /// When it expires.
        pub expires_at: Timestamp,
        /// The user who signed in.
        pub user_id: UserId,
    }

    /// Accepts an invite. A user who already has a password signs in and sends only the link's secret.
    pub struct AcceptInviteRequest {
        /// The secret of the link.
        #[schemars(length(min = 1, max = 256), extend("format" = "password"))]
        pub token: String,
        /// The new user's name.
        #[schemars(length(max = 128))]
        pub full_name: Option<String>,
        /// The new user's password, at least 12 characters.
        #[schemars(length(min = 12, max = 1024), extend("format" = "password"))]
        pub password: Option<String>,
    }

    /// The result of accepting an invite.
    pub struct AcceptedInvite {
        /// The organization.
        pub organization_id: OrganizationId,
        /// The user.
        pub user_id: UserId,
        /// A session, where a new user set a password.
        pub session: Option<Session>,
    }

    /// A new password.
    pub struct ChangePasswordRequest {
        /// The password until now.
        #[schemars(length(max = 1024), extend("format" = "password"))]
        pub current_password: String,
        /// The new password, at least 12 characters.
        #[schemars(length(min = 12, max = 1024), extend("format" = "password"))]
        pub new_password: String,
    }
}
