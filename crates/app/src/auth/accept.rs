//! Accepting an invite: with the link alone for a new user, signed in for everybody else.

use std::sync::Arc;

use podium_api::auth::{self as api, AcceptInviteRequest, AcceptedInvite, Session};
use podium_api::enums::{EventType, UserStatus};
use podium_api::subjects::SubjectProfile;
use podium_api::{Many, OrganizationId};
use podium_db::{Change, Conn, Tx};
use podium_domain::events::NewEvent;
use podium_domain::names::Name;
use podium_domain::{Fields, Grant, Held, On, Refusal, names, passwords};
use podium_store::credentials::NewSession;
use podium_store::invites::{self, InviteRow};
use podium_store::users::{self, Account};
use podium_store::{Doorkeeper, Scope, changes, events, grants, subjects};

use super::db;
use super::{new_session, system};
use crate::authority::{Authority, rights_change, rights_lock};
use crate::cx::Call;
use crate::error::{Error, Result, Unauthenticated};
use crate::issued::Issued;
use crate::passwords::Requester;
use crate::public_cx::PublicCx;
use crate::request::Request;
use crate::secrets::sha256_hex;
use crate::users::about;
use crate::{App, allowed_addresses, audit};

const MAX_FULL_NAME: usize = 128;

/// Accepts an invite by the secret of its link.
pub async fn accept_invite(cx: PublicCx, call: Call<api::AcceptInvite>) -> Result<Many<AcceptedInvite>> {
    let PublicCx { app, request, bearer } = cx;
    let (request, body) = (Arc::new(request), call.body);
    let secret_hash = sha256_hex(body.token.as_bytes());
    app.sign_in_throttle.check(None, request.address.into(), request.now)?;
    let caller = match &bearer {
        Some(token) => Some(app.authority(token, None, request.now).await?),
        None => None,
    };
    let invited = look_up(&app, &request, secret_hash.clone()).await?;
    let guest = match &caller {
        Some(caller) => Guest::Known(invited.known(caller, &body)?),
        None => Guest::New(Box::new(invited.newcomer(&app, &request, body).await?)),
    };
    let session = guest.session();
    let (organization_id, user_id) = (invited.invite.organization_id, invited.account.id);
    let (system, audit_id) = (system(&app), app.world.id());
    let signed_in = caller.as_ref().map(|caller| caller.guard());
    let accept = move |tx: &Tx| {
        if let Some(guard) = &signed_in
            && !tx.holds(guard)?
        {
            return Err(Error::STALE);
        }
        rights_change(tx, &system.scope(organization_id), request.now)?;
        // Everything is checked again: another link, or the same one, may have been used in the meantime.
        let invited = Invited::find(tx, system, &request, &secret_hash)?;
        let profile = guest.enter(tx, system, &request, &invited)?;
        invited.join(tx, system, &request, &profile)?;
        let status = request.endpoint.reply_kind.status();
        audit::write(tx, &system, &request, Some(organization_id), &profile, audit_id, status)
    };
    let guard = caller.as_ref().map(|caller| caller.guard());
    let mut locks = vec![rights_lock(organization_id.id(), true)];
    locks.extend(caller.iter().flat_map(|caller| caller.locks(false)));
    db(&app).write_locked(guard, locks, accept).await.map_err(|error| {
        // The guard of a caller without an organization only checks that its token is valid.
        if error.is_stale() { Error::Unauthenticated(Unauthenticated::Revoked) } else { error }
    })?;
    Ok(Many(AcceptedInvite { organization_id, user_id, session }))
}

/// Finds the invite of a link; links that are not there slow their address down.
async fn look_up(app: &App, request: &Arc<Request>, secret_hash: String) -> Result<Invited> {
    let (system, asked) = (system(app), Arc::clone(request));
    let found = db(app).read(None, move |conn| Invited::find(conn, system, &asked, &secret_hash)).await;
    if let Err(Error::Refused(Refusal::NotFound(_))) = found {
        app.sign_in_throttle.failed(None, request.address.into(), request.now);
    }
    found
}

/// An open invite, and whom it is for.
struct Invited {
    invite: InviteRow,
    account: Account,
    member_version: i64,
    /// Whether the account is already in use: then a link must not take it over.
    is_claimed: bool,
}

impl Invited {
    /// Finds an invite that can be accepted now and from this address.
    fn find(conn: &Conn, system: Doorkeeper, request: &Request, secret_hash: &str) -> Result<Self> {
        let unknown = || Error::from(Refusal::not_found("invite"));
        let invite = invites::by_secret(conn, &system, secret_hash)?;
        let invite = invite.filter(|invite| invite.expires_at > request.now).ok_or_else(unknown)?;
        let organization_id = invite.organization_id;
        let account = users::account(conn, &system, invite.user_id)?.ok_or_else(unknown)?;
        let member = users::get(conn, &system.scope(organization_id), account.id)?;
        let member = member.filter(|member| member.status == UserStatus::Pending).ok_or_else(unknown)?;
        admit_address(conn, &system.scope(organization_id), request)?;
        let belongs_elsewhere = |(id, status): &(OrganizationId, UserStatus)| {
            *id != organization_id && *status != UserStatus::Pending
        };
        let is_claimed = account.password_hash.is_some()
            || users::memberships(conn, &system, account.id)?.iter().any(belongs_elsewhere);
        Ok(Self { invite, account, member_version: member.version, is_claimed })
    }

    /// The invited user itself, signed in.
    fn known(&self, caller: &Authority, body: &AcceptInviteRequest) -> Result<SubjectProfile> {
        if caller.credential.subject_id != self.account.id.into() {
            let message = "This invite is for another user: sign in as the invited user.";
            return Err(Refusal::Forbidden(message.into()).into());
        }
        let mut fields = Fields::new();
        for (field, value) in [("fullName", &body.full_name), ("password", &body.password)] {
            if value.as_ref().is_some_and(|text| !text.is_empty()) {
                fields.push(
                    field,
                    "excluded",
                    "must be omitted: you are signed in, so your account stays as it is",
                );
            }
        }
        fields.into_result()?;
        Ok(caller.profile.clone())
    }

    /// A person who is new here, with a name and a password.
    async fn newcomer(&self, app: &App, request: &Request, body: AcceptInviteRequest) -> Result<Newcomer> {
        self.require_unclaimed()?;
        let password = body.password.unwrap_or_default();
        let mut fields = Fields::new();
        let name = names::name("fullName", body.full_name.as_deref().unwrap_or_default(), MAX_FULL_NAME);
        let name = fields.take(name);
        fields.take(passwords::password("password", &password, &self.account.username));
        let name = fields.finish(name)?;
        let password_hash = app.passwords.hash(password, &[Requester::at(request.address)]).await?;
        let (issued, session) = new_session(app, self.account.id, "", request);
        Ok(Newcomer { name, password_hash, issued, session })
    }

    fn require_unclaimed(&self) -> Result<()> {
        if self.is_claimed {
            return Err(sign_in_first());
        }
        Ok(())
    }

    /// Makes the user a member: the invite is used up. Roles that were set while it waited stay.
    fn join(&self, tx: &Tx, system: Doorkeeper, request: &Request, profile: &SubjectProfile) -> Result<()> {
        let Self { invite, account, member_version, .. } = self;
        let scope = system.scope(invite.organization_id);
        users::set_status(tx, &scope, account.id, UserStatus::Active, request.now)?;
        let has_role =
            grants::of(tx, &scope, account.id.into())?.iter().any(|grant| grant.on == On::Organization);
        if !has_role {
            let grant = Grant { on: On::Organization, held: Held::Organization(invite.role) };
            grants::insert(tx, &scope, grants::Subject::User, account.id.into(), &grant)?;
        }
        invites::delete(tx, &scope, invite.id)?;
        let changed = [
            (users::KIND, account.id.id(), *member_version),
            (invites::KIND, invite.id.id(), invite.version),
        ];
        for (kind, id, version) in changed {
            changes::append(tx, &scope, request.now, Change::new(kind, &id, version + 1))?;
        }
        let about = about(account.id, &account.username);
        let event = NewEvent::new(EventType::UserJoined, invite.organization_id, about, Some(profile));
        Ok(events::append(tx, &scope, request.now, &event)?)
    }
}

enum Guest {
    Known(SubjectProfile),
    /// A person who has just chosen a name and a password.
    New(Box<Newcomer>),
}

struct Newcomer {
    name: Name,
    password_hash: String,
    issued: Issued<NewSession>,
    session: Session,
}

impl Guest {
    fn session(&self) -> Option<Session> {
        if let Self::New(newcomer) = self { Some(newcomer.session.clone()) } else { None }
    }

    /// Sets up the account of a new user; returns the user.
    fn enter(
        &self,
        tx: &Tx,
        system: Doorkeeper,
        request: &Request,
        invited: &Invited,
    ) -> Result<SubjectProfile> {
        let newcomer = match self {
            Self::Known(profile) => return Ok(profile.clone()),
            Self::New(newcomer) => newcomer,
        };
        invited.require_unclaimed()?;
        let (account, name) = (&invited.account, &newcomer.name);
        if !users::set_password(tx, &system, account.id, None, &newcomer.password_hash, request.now)? {
            return Err(sign_in_first());
        }
        users::rename(tx, &system, account.id, &name.text, &name.key, request.now)?;
        let profile = subjects::user_profile(account.id, &account.username, &name.text);
        subjects::put(tx, &system, &profile)?;
        newcomer.issued.store(tx, &system)?;
        Ok(profile)
    }
}

fn sign_in_first() -> Error {
    let message = "The invited user already has an account: sign in as that user, then accept the invite.";
    Refusal::Forbidden(message.into()).into()
}

/// Refuses to let anybody in from outside the organization's allowed ranges.
fn admit_address(conn: &Conn, scope: &Scope, request: &Request) -> Result<()> {
    if allowed_addresses::of(conn, scope)?.admits(request.address) {
        return Ok(());
    }
    let message = format!(
        "Requests from {} are not allowed: ask an owner to allow your address range.",
        request.address
    );
    Err(Refusal::Forbidden(message).into())
}
