//! Accounts without an identity provider: accept an invite, sign in and out, change a password.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::operation::{Anyone, Method, Nothing, Operation, SignedIn};
use crate::reply::Many;
use crate::{OrganizationId, Timestamp, UserId};

const TAG: &str = "Auth";

/// Accepts an invite by the secret of its link.
pub const ACCEPT_INVITE: Operation<Anyone, (), Nothing, AcceptInviteRequest, Many<AcceptedInvite>> =
    Operation::public(Method::Post, "AcceptInvite", "/auth/accept-invite")
        .about(TAG, "Accept an invite")
        .also(&[401, 403, 404])
        .secret_reply();
/// Signs in with a password.
pub const SIGN_IN: Operation<Anyone, (), Nothing, SignInRequest, Many<Session>> =
    Operation::public(Method::Post, "SignIn", "/auth/sign-in")
        .about(TAG, "Sign in with a password")
        .also(&[401])
        .secret_reply();
/// Exchanges a session for a fresh one; the old one stops working.
pub const RENEW: Operation<SignedIn, (), Nothing, Nothing, Many<Session>> =
    Operation::with_token(Method::Post, "RenewSession", "/auth/renew")
        .about(TAG, "Renew a session")
        .also(&[403])
        .secret_reply();
/// Ends the session.
pub const SIGN_OUT: Operation<SignedIn, (), Nothing, Nothing, Nothing> =
    Operation::with_token(Method::Post, "SignOut", "/auth/sign-out").about(TAG, "Sign out").also(&[403]);
/// Changes the caller's password; every other session of the caller ends.
pub const CHANGE_PASSWORD: Operation<SignedIn, (), Nothing, ChangePasswordRequest, Nothing> =
    Operation::with_token(Method::Post, "ChangePassword", "/auth/change-password")
        .about(TAG, "Change your password")
        .also(&[403]);

/// A name and a password.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct SignInRequest {
    /// The user's e-mail address.
    #[schemars(length(min = 1, max = 254))]
    pub username: String,
    /// The user's password.
    #[schemars(length(min = 1, max = 1024), extend("format" = "password"))]
    pub password: String,
}

/// A session: a token that works for some hours.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Session {
    /// The token, for the `Authorization: Bearer` header.
    #[schemars(extend("format" = "password"))]
    pub token: String,
    /// Until when it works.
    pub expires_at: Timestamp,
    /// Whose it is.
    pub user_id: UserId,
}

/// Accepts an invite. A user who has a password already signs in and sends only the link's secret.
#[skip_serializing_none]
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
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

/// What came of accepting an invite.
#[skip_serializing_none]
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AcceptedInvite {
    /// The organization.
    pub organization_id: OrganizationId,
    /// The user.
    pub user_id: UserId,
    /// A session, where a new user set a password.
    pub session: Option<Session>,
}

/// A new password.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangePasswordRequest {
    /// The password until now.
    #[schemars(length(max = 1024), extend("format" = "password"))]
    pub current_password: String,
    /// The new password, at least 12 characters.
    #[schemars(length(min = 12, max = 1024), extend("format" = "password"))]
    pub new_password: String,
}
