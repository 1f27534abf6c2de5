//! Accounts without an identity provider: sign in and out, renew a session, change a password.

mod accept;
mod attempt;
mod reset;

pub use accept::accept_invite;

use std::sync::Arc;

use podium_api::auth::{self as api, ChangePasswordRequest, Session, SignInRequest};
use podium_api::enums::{SessionKind, UserStatus};
use podium_api::subjects::SubjectProfile;
use podium_api::{Many, Nothing, OrganizationId, Reply, UserId};
use podium_db::{Conn, Tx};
use podium_domain::{Fields, Refusal, names, passwords};
use podium_store::credentials::NewSession;
use podium_store::users::{self, Account};
use podium_store::{Doorkeeper, credentials, device_sign_ins, sessions, subjects, user_sessions};

use crate::authority::sessions_change;
use crate::cx::{Call, Cx};
use crate::error::{Error, Result, Unauthenticated};
use crate::issued::Issued;
use crate::passwords::Requester;
use crate::public_cx::PublicCx;
use crate::request::Request;
use crate::{App, audit};
use attempt::Attempt;

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

const WRONG_PASSWORD: &str = "is not your password; send \"\" if you have none yet";
/// Why the operator of the machine gets no session to take away.
const NO_SESSIONS: &str = "The operator's socket gives no sessions: sign in as a user instead.";

/// Signs in with a password. Whatever is wrong, the answer is the same and takes as long.
pub async fn sign_in(cx: PublicCx, call: Call<api::SignIn>) -> Result<Many<Session>> {
    let PublicCx { app, request, .. } = cx;
    let request = Arc::new(request);
    let proven = prove(&app, &request, call.body).await?;
    let (issued, session) = new_session(&app, proven.id, "", &request);
    let status = <Many<Session> as Reply>::KIND.status();
    let system = system(&app);
    enter(&app, proven, request, status, move |tx| issued.store(tx, &system)).await?;
    Ok(Many(session))
}

/// A user whose password has been verified.
pub(crate) struct Proven {
    pub(crate) id: UserId,
    known: Known,
    hash: String,
}

/// An account, as far as signing in is concerned.
struct Known {
    id: UserId,
    profile: SubjectProfile,
    /// The organization that its sign-ins are recorded in.
    home: Option<OrganizationId>,
    /// The hash of its password, where it may sign in: a member of some organization, or one who is invited back.
    hash: Option<String>,
}

/// Verifies the password of an account. Failures are recorded in the audit log of the account's
/// organization; if there is no such account there is no organization, and they are in the server's own log.
pub(crate) async fn prove(app: &App, request: &Arc<Request>, body: SignInRequest) -> Result<Proven> {
    let SignInRequest { username, password } = body;
    let username_key = names::fold(&username);
    let attempt = Attempt::begin(app, &username_key, request.address, request.now)?;
    let system = system(app);
    let known = db(app).read(None, move |conn| Known::find(conn, system, &username_key)).await?;
    let hash = known.as_ref().and_then(|known| known.hash.clone());
    let fits = attempt.fits(password, hash.clone()).await?;
    match (known, hash) {
        (Some(known), Some(hash)) if fits => Ok(Proven { id: known.id, known, hash }),
        (known, _) => {
            note_failure(app, request, known);
            Err(Error::Unauthenticated(Unauthenticated::Password))
        }
    }
}

/// Signs in a user whose password has been verified: the token and the audit record, in one transaction.
pub(crate) async fn enter(
    app: &App,
    proven: Proven,
    request: Arc<Request>,
    status: u16,
    gets: impl Fn(&Tx) -> Result<()> + Send + 'static,
) -> Result<()> {
    let (system, audit_id) = (system(app), app.world.id());
    let store = move |tx: &Tx| {
        let Proven { id, known, hash } = &proven;
        users::lock(tx, &system, *id)?;
        // A password that was changed in the meantime is no longer valid.
        let current = users::account(tx, &system, *id)?.and_then(|account| account.password_hash);
        if current.as_ref() != Some(hash) {
            return Err(Error::Unauthenticated(Unauthenticated::Password));
        }
        gets(tx)?;
        audit::write(tx, &system, &request, known.home, &known.profile, audit_id, status)
    };
    db(app).write(None, store).await
}

/// Records a failed sign-in, at most so many a second. It is not awaited: otherwise the time that
/// an answer takes would tell which accounts there are.
fn note_failure(app: &App, request: &Arc<Request>, known: Option<Known>) {
    let Some((known, home)) = known.and_then(|known| known.home.map(|home| (known, home))) else {
        return note_stranger(request);
    };
    if !app.refusals.allow(known.profile.id) {
        return;
    }
    let (app, system) = (app.clone(), system(app));
    let (request, audit_id) = (Arc::clone(request), app.world.id());
    tokio::spawn(async move {
        let write =
            move |tx: &Tx| audit::write(tx, &system, &request, Some(home), &known.profile, audit_id, 401);
        if let Err(error) = db(&app).write(None, write).await {
            tracing::warn!(%error, "could not record a failed sign-in");
        }
    });
}

/// Logs a failed sign-in that belongs to no organization. The input is not logged: it may be a
/// password in the wrong field.
pub(crate) fn note_stranger(request: &Request) {
    let (address, request_id) = (request.address, &request.id);
    tracing::warn!(target: "podium::sign_in", %address, request_id, "a sign-in failed: no such account or token");
}

/// Exchanges a session for a fresh one; the old one stops working.
pub async fn renew(cx: Cx<()>, _: Call<api::Renew>) -> Result<Many<Session>> {
    let user_id = cx.users_only("rotate the API token instead")?;
    not_the_operator(&cx)?;
    if cx.authority().credential.expires_at.is_none() {
        return Err(
            Refusal::invalid("This token never expires, so it needs no renewal: keep using it.").into()
        );
    }
    let (issued, session) = new_session(cx.app(), user_id, "", cx.request());
    cx.change_rights(move |cx, tx| {
        // A change of the password ends the fresh session too, or finds the old one.
        let system = system(cx.app());
        users::lock(tx, &system, user_id)?;
        let old = user_sessions::get(tx, &system, user_id, cx.session_id(), cx.now())?;
        end_session(cx, tx)?;
        let mut issued = issued.clone();
        issued.token.origin.client_name = old.map(|old| old.origin.client_name).unwrap_or_default();
        issued.store(tx, &system)?;
        Ok(Many(session.clone()))
    })
    .await
}

pub async fn sign_out(cx: Cx<()>, _: Call<api::SignOut>) -> Result<Nothing> {
    let user_id = cx.users_only("delete the API token instead")?;
    cx.change_rights(move |cx, tx| {
        end_session(cx, tx)?;
        device_sign_ins::forget_of(tx, &system(cx.app()), user_id)?;
        Ok(Nothing)
    })
    .await
}

/// Changes the caller's password, or sets the first one; every other session of the caller ends.
pub async fn change_password(cx: Cx<()>, call: Call<api::ChangePassword>) -> Result<Nothing> {
    let user_id = cx.users_only("sign in as the user whose password is to change")?;
    let ChangePasswordRequest { current_password, new_password } = call.body;
    let account = own_account(&cx, user_id).await?;
    let mut fields = Fields::new();
    fields.take(passwords::password("newPassword", &new_password, &account.username));
    if !knows_password(&cx, &account, current_password).await? {
        fields.push("currentPassword", "wrong", WRONG_PASSWORD);
    }
    fields.into_result()?;
    let requesters = [Requester::at(cx.request().address), Requester::of(&account.username)];
    let hash = cx.app().passwords.hash(new_password, &requesters).await?;
    cx.change_rights(move |cx, tx| {
        let (system, before) = (system(cx.app()), account.password_hash.as_deref());
        if !users::set_password(tx, &system, account.id, before, &hash, cx.now())? {
            return Err(Refusal::field("currentPassword", "wrong", WRONG_PASSWORD).into());
        }
        credentials::delete_other_sessions(tx, &system, account.id, cx.authority().credential.token_id)?;
        device_sign_ins::forget_of(tx, &system, account.id)?;
        sessions::delete_others_of_subject(tx, &system, account.id.into(), cx.session_id())?;
        sessions_change(tx, &system, account.id.into(), cx.now())?;
        Ok(Nothing)
    })
    .await
}

/// The caller's account; ends the call here if it was answered before, while the password was another.
async fn own_account(cx: &Cx<()>, user_id: UserId) -> Result<Account> {
    let running = cx.app().running.enter(cx)?;
    let entered = Arc::clone(&running);
    let read = move |cx: &Cx<()>, conn: &Conn| {
        running.replay(cx, conn, &mut |_| Ok(()))?;
        Ok(users::account(conn, &system(cx.app()), user_id)?)
    };
    let account = cx.read(read).await;
    entered.leave();
    account?.ok_or(Error::Unauthenticated(Unauthenticated::Revoked))
}

/// Whether the caller's password is correct; a caller without a password sends an empty one.
async fn knows_password(cx: &Cx<()>, account: &Account, password: String) -> Result<bool> {
    let Some(hash) = account.password_hash.clone() else { return Ok(password.is_empty()) };
    let username_key = names::fold(&account.username);
    let attempt = Attempt::begin(cx.app(), &username_key, cx.request().address, cx.now())?;
    attempt.fits(password, Some(hash)).await
}

impl Known {
    fn find(conn: &Conn, system: Doorkeeper, username_key: &str) -> Result<Option<Self>> {
        let Some(account) = users::account_by_username(conn, &system, username_key)? else { return Ok(None) };
        let Some(profile) = subjects::get(conn, &system, account.id.into())? else { return Ok(None) };
        let memberships = users::memberships(conn, &system, account.id)?;
        let is_wanted = is_wanted(&memberships);
        let home = memberships.iter().find(|(_, status)| *status == UserStatus::Active).map(|(id, _)| *id);
        Ok(Some(Self { id: account.id, profile, home, hash: account.password_hash.filter(|_| is_wanted) }))
    }
}

/// Whether some organization has the user as a member, or expects it.
pub(crate) fn is_wanted(memberships: &[(OrganizationId, UserStatus)]) -> bool {
    memberships.iter().any(|(_, status)| matches!(status, UserStatus::Active | UserStatus::Pending))
}

/// A session that a request asks for; it works once it is stored.
pub(crate) fn new_session(
    app: &App,
    user_id: UserId,
    client_name: &str,
    request: &Request,
) -> (Issued<NewSession>, Session) {
    let expires_at = request.now + app.config.session;
    let issued = app.issue_session(user_id, Some(expires_at), request.now);
    let issued = issued.begun(request.origin(SessionKind::Terminal, client_name));
    let session = Session { token: issued.value.clone(), expires_at, user_id };
    (issued, session)
}

/// Revokes the token in use, unless it was just revoked.
fn end_session(cx: &Cx<()>, tx: &Tx) -> Result<()> {
    let system = system(cx.app());
    if !credentials::end(tx, &system, cx.authority().credential.token_id)? {
        return Err(Error::Unauthenticated(Unauthenticated::Revoked));
    }
    sessions_change(tx, &system, cx.subject_id(), cx.now())
}

/// Refuses the operator of the machine a session that outlasts the socket, and that the audit log would not mark.
pub(crate) fn not_the_operator(cx: &Cx<()>) -> Result<()> {
    match cx.app().operator_sessions.mark(cx.authority().credential.token_id) {
        None => Ok(()),
        Some(_) => Err(Refusal::Forbidden(NO_SESSIONS.into()).into()),
    }
}
