//! Accounts without an identity provider: sign in and out, renew a session, change a password.

mod accept;
mod attempt;

pub use accept::accept_invite;

use std::sync::Arc;

use podium_api::auth::{ChangePasswordRequest, Session, SignInRequest};
use podium_api::enums::UserStatus;
use podium_api::{Id, Many, Nothing, Timestamp};
use podium_db::{Conn, Tx};
use podium_domain::{Fields, Refusal, names, passwords};
use podium_store::credentials;
use podium_store::users::{self, Account};

use crate::App;
use crate::authority::sessions_change;
use crate::cx::{Call, Cx};
use crate::error::{Error, Result, Unauthenticated};
use crate::start::Issued;
use crate::visit::Visit;
use attempt::Attempt;

const WRONG_PASSWORD: &str = "is not your password; send \"\" where you have none yet";

/// Signs in with a password. Whatever is wrong, the answer is the same and takes as long.
pub async fn sign_in(visit: Visit, call: Call<(), Nothing, SignInRequest>) -> Result<Many<Session>> {
    let Visit { app, request, .. } = visit;
    let SignInRequest { username, password } = call.body;
    let username_key = names::fold(&username);
    let attempt = Attempt::begin(&app, &username_key, request.address, request.now)?;
    let known = app.db.read(None, move |conn| may_sign_in(conn, &username_key)).await?;
    let fits = attempt.fits(password, known.as_ref().map(|(_, hash)| hash.clone())).await?;
    let wrong = || Error::Unauthenticated(Unauthenticated::Password);
    let (id, hash) = known.filter(|_| fits).ok_or_else(wrong)?;
    let (issued, session) = new_session(&app, id, request.now);
    let store = move |tx: &Tx| {
        users::lock(tx, id)?;
        // A password that was changed meanwhile opens nothing.
        let current = users::account(tx, id)?.and_then(|account| account.password_hash);
        if current.as_ref() == Some(&hash) { issued.store(tx) } else { Err(wrong()) }
    };
    app.db.write(None, store).await?;
    Ok(Many(session))
}

/// Exchanges a session for a fresh one; the old one stops working.
pub async fn renew(cx: Cx<()>, _: Call<(), Nothing, Nothing>) -> Result<Many<Session>> {
    users_only(&cx, "rotate the API token instead")?;
    if cx.authority().credential.expires_at.is_none() {
        return Err(Refusal::invalid("This token has no end, so it needs no renewal: go on using it.").into());
    }
    let (issued, session) = new_session(cx.app(), cx.subject_id(), cx.now());
    cx.mutate(move |cx, tx| {
        // A change of the password ends the fresh session too, or finds the old one.
        users::lock(tx, cx.subject_id())?;
        end_session(cx, tx)?;
        issued.store(tx)?;
        Ok(Many(session.clone()))
    })
    .await
}

/// Ends the session.
pub async fn sign_out(cx: Cx<()>, _: Call<(), Nothing, Nothing>) -> Result<Nothing> {
    users_only(&cx, "delete the API token instead")?;
    cx.mutate(|cx, tx| {
        end_session(cx, tx)?;
        Ok(Nothing)
    })
    .await
}

/// Changes the caller's password, or sets the first one; every other session of the caller ends.
pub async fn change_password(cx: Cx<()>, call: Call<(), Nothing, ChangePasswordRequest>) -> Result<Nothing> {
    users_only(&cx, "sign in as the user whose password is to change")?;
    let ChangePasswordRequest { current_password, new_password } = call.body;
    let account = own_account(&cx).await?;
    let mut fields = Fields::new();
    fields.take(passwords::password("newPassword", &new_password, &account.username));
    if !knows_password(&cx, &account, current_password).await? {
        fields.push("currentPassword", "wrong", WRONG_PASSWORD);
    }
    fields.into_result()?;
    let hash = cx.app().passwords.hash(new_password).await?;
    cx.mutate(move |cx, tx| {
        let before = account.password_hash.as_deref();
        if !users::set_password(tx, account.id, before, &hash, cx.now())? {
            return Err(Refusal::field("currentPassword", "wrong", WRONG_PASSWORD).into());
        }
        credentials::delete_other_sessions(tx, account.id, cx.authority().credential.token_id)?;
        sessions_change(tx, account.id, cx.now())?;
        Ok(Nothing)
    })
    .await
}

/// The caller's account; ends the call here if it was answered before, while the password was another.
async fn own_account(cx: &Cx<()>) -> Result<Account> {
    let running = cx.app().running.enter(cx)?;
    let entered = Arc::clone(&running);
    let read = move |cx: &Cx<()>, conn: &Conn| {
        running.replay(cx, conn)?;
        Ok(users::account(conn, cx.subject_id())?)
    };
    let account = cx.read(read).await;
    entered.leave();
    account?.ok_or(Error::Unauthenticated(Unauthenticated::Revoked))
}

/// Whether the caller knows its password; one that has none yet says so.
async fn knows_password(cx: &Cx<()>, account: &Account, password: String) -> Result<bool> {
    let Some(hash) = account.password_hash.clone() else { return Ok(password.is_empty()) };
    let username_key = names::fold(&account.username);
    let attempt = Attempt::begin(cx.app(), &username_key, cx.request().address, cx.now())?;
    attempt.fits(password, Some(hash)).await
}

/// The id and password hash of a user who may sign in: a member of some organization, or one who is invited back.
fn may_sign_in(conn: &Conn, username_key: &str) -> Result<Option<(Id, String)>> {
    let Some(account) = users::account_by_username(conn, username_key)? else { return Ok(None) };
    let memberships = users::memberships(conn, account.id)?;
    let is_wanted =
        memberships.iter().any(|(_, status)| matches!(status, UserStatus::Active | UserStatus::Pending));
    Ok(account.password_hash.filter(|_| is_wanted).map(|hash| (account.id, hash)))
}

/// A session that works once it is stored.
fn new_session(app: &App, user_id: Id, now: Timestamp) -> (Issued, Session) {
    let expires_at = now + app.config.session;
    let issued = app.issue_session(user_id, Some(expires_at), now);
    let session = Session { token: issued.value.clone(), expires_at, user_id };
    (issued, session)
}

/// Revokes the token in use, unless somebody else just did.
fn end_session(cx: &Cx<()>, tx: &Tx) -> Result<()> {
    if !credentials::delete(tx, cx.authority().credential.token_id)? {
        return Err(Error::Unauthenticated(Unauthenticated::Revoked));
    }
    sessions_change(tx, cx.subject_id(), cx.now())
}

fn users_only(cx: &Cx<()>, instead: &str) -> Result<()> {
    if cx.authority().is_api_token() {
        let message = format!("An API token is not a user's session: {instead}.");
        return Err(Refusal::Forbidden(message).into());
    }
    Ok(())
}
