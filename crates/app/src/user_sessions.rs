//! The caller's own sessions: what is signed in as the person, and how to end it.
//!
//! Nobody sees or ends the sessions of others here. Ending one revokes its token, or removes the session of a browser that was
//! begun with another token; every replica looks both up for each request, and open streams end when they learn of it.

use podium_api::enums::SessionKind;
use podium_api::user_sessions::{self as api, SessionsPaginated, UserSession};
use podium_api::{CredentialId, Many, Nothing, SessionId};
use podium_db::Conn;
use podium_domain::Refusal;
use podium_store::user_sessions::{self, SessionOrigin, UserSessionRow};
use podium_store::{Paging, credentials, device_sign_ins, sessions, users};

use crate::authority::sessions_change;
use crate::cx::{Call, Cx};
use crate::error::Result;

crate::system::acts_for_the_system!();

const NO_PERSON: &str = "sign in as the user whose sessions are meant";

pub async fn list(cx: Cx<()>, call: Call<api::List>) -> Result<Many<SessionsPaginated>> {
    let user_id = cx.users_only(NO_PERSON)?;
    let (current, token_id) = (cx.session_id(), cx.authority().credential.token_id);
    let read = move |cx: &Cx<()>, conn: &Conn, paging: &Paging| {
        Ok(user_sessions::list(conn, &system(cx.app()), user_id, paging, cx.now())?)
    };
    cx.list(&call.query.page, read, |row| show(row, current, token_id)).await
}

/// Ends one of the caller's sessions, which may be the one that asks.
pub async fn end(cx: Cx<()>, call: Call<api::End>) -> Result<Nothing> {
    let user_id = cx.users_only(NO_PERSON)?;
    let id = call.path.session_id;
    cx.change_rights(move |cx, tx| {
        let (system, now) = (system(cx.app()), cx.now());
        let found = user_sessions::get(tx, &system, user_id, id, now)?;
        let session = found.ok_or_else(|| Refusal::not_found("session"))?;
        if session.origin.kind == SessionKind::Browser {
            if let Some(hash) = sessions::hash_of(tx, &system, user_id.into(), id)? {
                crate::sessions::end(tx, &system, &hash, now)?;
            }
            return Ok(Nothing);
        }
        credentials::end(tx, &system, session.token_id)?;
        device_sign_ins::forget_of(tx, &system, user_id)?;
        sessions_change(tx, &system, user_id.into(), now)?;
        Ok(Nothing)
    })
    .await
}

/// Ends the caller's other sessions. Tokens that never expire stay, and so does the token that a browser's session was begun
/// with.
pub async fn end_others(cx: Cx<()>, _: Call<api::EndOthers>) -> Result<Nothing> {
    let user_id = cx.users_only(NO_PERSON)?;
    let kept = cx.session_id();
    cx.change_rights(move |cx, tx| {
        let system = system(cx.app());
        // A sign-in that is being stored ends too, or comes after this.
        users::lock(tx, &system, user_id)?;
        credentials::delete_other_sessions(tx, &system, user_id, cx.authority().credential.token_id)?;
        sessions::delete_others_of_subject(tx, &system, user_id.into(), kept)?;
        device_sign_ins::forget_of(tx, &system, user_id)?;
        sessions_change(tx, &system, user_id.into(), cx.now())?;
        Ok(Nothing)
    })
    .await
}

fn show(row: UserSessionRow, current: SessionId, token_id: CredentialId) -> UserSession {
    let SessionOrigin { kind, client_name, address, user_agent } = row.origin;
    let known = |text: String| (!text.is_empty()).then_some(text);
    UserSession {
        id: row.id,
        kind,
        is_current: row.id == current,
        ends_current: row.id == current || (kind != SessionKind::Browser && row.token_id == token_id),
        client_name: known(client_name),
        address: known(address),
        user_agent: known(user_agent),
        created_at: row.created_at,
        last_used_at: row.last_used_at,
        expires_at: row.expires_at,
    }
}
