//! Invites: created, withdrawn, and turned into links. Accepting one is part of signing in.

use std::time::Duration;

use podium_api::enums::UserStatus;
use podium_api::invites::{self as api, Invite, InviteLink};
use podium_api::{InviteId, Nothing, One};
use podium_db::{Conn, Tx};
use podium_domain::emails::{self, Email};
use podium_domain::{Held, On, Refusal, names, no_escalation};
use podium_store::invites::{self, InviteRow};
use podium_store::users::{self, Invitee};
use podium_store::{Scope, organizations};

use crate::cx::{Call, Cx};
use crate::error::Result;
use crate::secrets::sha256_hex;
use crate::users::about;

const LASTS: Duration = Duration::from_hours(7 * 24);

/// Invites a person, or renews the invite of one who has not accepted yet.
pub async fn create(cx: Cx<Scope>, call: Call<api::Create>) -> Result<One<Invite>> {
    let role = call.body.role;
    let email = emails::email("inviteeEmail", &call.body.invitee_email)?;
    no_escalation::may_give(cx.grants(), &Held::Organization(role), &On::Organization)?;
    let invite = InviteRow {
        id: cx.new_id(),
        organization_id: cx.organization_id(),
        user_id: cx.new_id(),
        role,
        inviter_id: cx.subject_id(),
        expires_at: cx.now() + LASTS,
        version: 1,
    };
    let mailer = cx.app().config.mailer.clone();
    let mail = mailer.map(|mailer| (mailer, new_link(&cx)));
    let secret_hash = mail.as_ref().map(|(_, link)| sha256_hex(link.token.as_bytes()));
    let to = email.address.clone();
    let One { version, body } = cx
        .change_rights(move |cx, tx| {
            cx.rights_change(tx)?;
            let address = (email.address.as_str(), email.key.as_str());
            let invitee = users::find_or_make_invitee(tx, cx.scope(), address, invite.user_id, cx.now())?;
            let mut invite = InviteRow { user_id: invitee.id, ..invite.clone() };
            join(cx, tx, &invitee, &email)?;
            match invites::by_user(tx, cx.scope(), invitee.id)? {
                Some(InviteRow { id, version, .. }) => {
                    invite = InviteRow { id, version: version + 1, ..invite };
                    invites::renew(tx, cx.scope(), &invite)?;
                }
                None => invites::insert(tx, cx.scope(), &invite, cx.now())?,
            }
            if let Some(hash) = &secret_hash {
                invites::set_secret(tx, cx.scope(), invite.id, hash, invite.expires_at)?;
                invite.version += 1;
            }
            cx.logged(tx, invites::KIND, invite.id.id(), invite.version)?;
            cx.event(tx, about(invitee.id, &invitee.username))?;
            let body = Invite {
                invite_id: invite.id,
                expires_at: invite.expires_at,
                invitee: invitee.profile(),
                inviter: cx.profile(),
                organization_id: invite.organization_id,
                organization_name: organizations::name(tx, cx.scope())?,
                user_id: Some(invitee.id),
            };
            Ok(One { version: invite.version, body })
        })
        .await?;
    if let Some((mailer, link)) = mail {
        let organization = body.organization_name.clone().unwrap_or_default();
        crate::plans::once_committed(move || mailer.send_invite(&to, &organization, &link.url));
    }
    Ok(One { version, body })
}

/// Withdraws an invite. One who never accepted belongs to the organization no more.
pub async fn delete(cx: Cx<Scope>, call: Call<api::Delete>) -> Result<Nothing> {
    let id = call.path.invite_id;
    cx.change_rights(move |cx, tx| {
        cx.rights_change(tx)?;
        let invite = find(tx, cx.scope(), id)?;
        cx.expect_version(invite.version)?;
        invites::delete(tx, cx.scope(), id)?;
        cx.logged(tx, invites::KIND, id.id(), invite.version + 1)?;
        if let Some(user) = users::get(tx, cx.scope(), invite.user_id)? {
            if user.status == UserStatus::Pending {
                crate::users::remove(cx, tx, user.id, user.version)?;
            }
            cx.event(tx, about(user.id, &user.username))?;
        }
        Ok(Nothing)
    })
    .await
}

/// Makes a fresh link to accept an invite; earlier links stop working.
pub async fn create_link(cx: Cx<Scope>, call: Call<api::CreateLink>) -> Result<One<InviteLink>> {
    no_escalation::only_owners(cx.grants(), "create links to accept invites")?;
    let id = call.path.invite_id;
    let link = new_link(&cx);
    cx.mutate(move |cx, tx| {
        let InviteRow { version, user_id, .. } = find(tx, cx.scope(), id)?;
        cx.expect_version(version)?;
        let hash = sha256_hex(link.token.as_bytes());
        invites::set_secret(tx, cx.scope(), id, &hash, link.expires_at)?;
        cx.logged(tx, invites::KIND, id.id(), version + 1)?;
        if let Some(user) = users::get(tx, cx.scope(), user_id)? {
            cx.event(tx, about(user.id, &user.username))?;
        }
        Ok(One { version: version + 1, body: link.clone() })
    })
    .await
}

fn find(conn: &Conn, scope: &Scope, id: InviteId) -> Result<InviteRow> {
    invites::get(conn, scope, id)?.ok_or_else(|| Refusal::not_found("invite").into())
}

fn new_link(cx: &Cx<Scope>) -> InviteLink {
    let token = cx.app().world.secret();
    let url = format!("{}/accept-invite?token={token}", cx.app().config.public_url);
    InviteLink { url, token, expires_at: cx.now() + LASTS }
}

/// Makes the invitee a pending member; refuses to invite one who is a member already.
fn join(cx: &Cx<Scope>, tx: &Tx, invitee: &Invitee, email: &Email) -> Result<()> {
    let version = match users::get(tx, cx.scope(), invitee.id)? {
        None => {
            let keys = (email.key.as_str(), &*names::fold(&invitee.full_name));
            users::join(tx, cx.scope(), invitee.id, keys, UserStatus::Pending, cx.now())?;
            1
        }
        Some(user) if user.status == UserStatus::Pending => {
            users::touch(tx, cx.scope(), invitee.id, user.version, cx.now())?;
            user.version + 1
        }
        Some(_) => {
            let message = format!("`{}` already belongs to the organization.", invitee.username);
            return Err(Refusal::Conflict(message).into());
        }
    };
    cx.logged(tx, users::KIND, invitee.id.id(), version)
}
