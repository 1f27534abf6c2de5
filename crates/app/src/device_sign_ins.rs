//! Signing in a terminal with a browser (RFC 8628 in spirit).
//!
//! The terminal starts a sign-in and gets two codes: a secret one that it polls with, and a short one that it shows. A
//! person who is signed in approves the short one, and the next poll gets a session of that person, once. Everything
//! is in the database, so that any replica can serve any step, also after a restart. What a poll or a guess finds is
//! looked up by a hash, so that the time it takes says nothing about codes.

use std::net::IpAddr;
use std::time::Duration;

use podium_api::auth::SignIn;
use podium_api::device_sign_ins::{self as api, DeviceSignInProgress, StartedDeviceSignIn};
use podium_api::enums::{DeviceSignInDecision, DeviceSignInStatus};
use podium_api::{Endpoint, Many, Nothing, Reply, Timestamp, hex};
use podium_db::{AdvisoryLock, Tx};
use podium_domain::{Refusal, device_sign_ins as rules};
use podium_store::device_sign_ins::{self, DeviceSignIn, NewDeviceSignIn};
use podium_store::{Doorkeeper, credentials, subjects, users};
use quick_cache::sync::Cache;

use crate::auth::{is_wanted, new_session, not_the_operator};
use crate::authority::Authority;
use crate::cx::{Call, Cx};
use crate::error::{Error, Result};
use crate::public_cx::PublicCx;
use crate::request::Request;
use crate::secrets::{sha256, sha256_hex};
use crate::throttle::{Account, Place};
use crate::{App, audit, sessions};

crate::system::acts_for_the_system!();
crate::system::reaches_rows!();

/// The page where a person decides, and the purpose of the keyed hash of what is typed there.
pub const PAGE: &str = "/sign-in/device";
const TYPED: &str = "code of a device sign-in";
/// Why terminals cannot be signed in with a browser.
const NO_BROWSERS: &str = "Browsers cannot sign in here, because this address is reached without encryption: sign in with a \
    password or a token.";

/// How often one terminal may ask in a minute.
const MOST_POLLS: u32 = 120;
const WINDOW: Duration = Duration::from_mins(1);
const REMEMBERED: usize = 10_000;

/// Counts how often terminals ask.
pub(crate) struct Polls(Cache<[u8; 32], (Timestamp, u32)>);

impl Default for Polls {
    fn default() -> Self {
        Self(Cache::new(REMEMBERED))
    }
}

impl Polls {
    fn count(&self, hash: [u8; 32], now: Timestamp) -> Result<()> {
        let (since, count) = self.0.get(&hash).filter(|(since, _)| *since + WINDOW > now).unwrap_or((now, 0));
        if count >= MOST_POLLS {
            let left = (since + WINDOW).millis() - now.millis();
            return Err(Error::TooMany { retry_after: left.max(0).unsigned_abs().div_ceil(1000) });
        }
        self.0.insert(hash, (since, count + 1));
        Ok(())
    }
}

/// Starts a sign-in; one address can have so many open, and so can one site, and all together.
pub async fn start(cx: PublicCx, call: Call<api::Start>) -> Result<Many<StartedDeviceSignIn>> {
    let PublicCx { app, request, .. } = cx;
    if !app.lets_browsers_sign_in() {
        return Err(Refusal::Forbidden(NO_BROWSERS.into()).into());
    }
    let (device_code, user_code) = (app.world.secret(), app.new_user_code());
    let place = Place::from(request.address);
    let new = NewDeviceSignIn {
        hash: sha256_hex(device_code.as_bytes()),
        user_code_hash: app.secrets.sign(TYPED, &user_code),
        place: place.to_string(),
        site: place.site().to_string(),
        address: request.address.to_string(),
        client_name: rules::client_name(call.body.client_name.as_deref().unwrap_or_default()),
        user_agent: rules::client_name(&request.user_agent),
        created_at: request.now,
        expires_at: request.now + rules::LASTS,
    };
    let user_code = rules::shown(&user_code);
    let started = StartedDeviceSignIn {
        device_code,
        verification_url: format!("{}{PAGE}?code={user_code}", app.config.public_url),
        user_code,
        expires_at: new.expires_at,
        interval_seconds: u32::try_from(rules::INTERVAL.as_secs()).unwrap_or(u32::MAX),
    };
    let (system, counted) = (system(&app), new.clone());
    // Refused starts must not cause database writes.
    db(&app).read(None, move |conn| admit(conn, system, &counted)).await?;
    let store = move |tx: &Tx| {
        admit(tx, system, &new)?;
        Ok::<_, Error>(device_sign_ins::insert(tx, &system, &new)?)
    };
    db(&app).write_locked(None, vec![starting()], store).await?;
    Ok(Many(started))
}

/// Says what was decided; gives the session once, to one of those who ask.
pub async fn finish(cx: PublicCx, call: Call<api::Finish>) -> Result<Many<DeviceSignInProgress>> {
    let PublicCx { app, request, .. } = cx;
    let (place, now, code) = (Place::from(request.address), request.now, call.body.device_code);
    app.device_polls.count(sha256(code.as_bytes()), now)?;
    let hash = sha256_hex(code.as_bytes());
    let (system, looked_up) = (system(&app), hash.clone());
    let found = db(&app).read(None, move |conn| device_sign_ins::by_hash(conn, &system, &looked_up)).await?;
    // Only wrong codes are slowed down: whoever shares an address with somebody who guesses gets in.
    let Some(waiting) = found.filter(|waiting| waiting.expires_at > now) else {
        app.sign_in_throttle.check(None, place, now)?;
        app.sign_in_throttle.failed(None, place, now);
        return Err(unknown());
    };
    let (Some(decision), Some(user_id)) = (waiting.decision, waiting.user_id) else {
        return Ok(Many(DeviceSignInProgress { status: DeviceSignInStatus::Pending, session: None }));
    };
    if decision == DeviceSignInDecision::Deny {
        return Ok(Many(DeviceSignInProgress { status: DeviceSignInStatus::Denied, session: None }));
    }
    let (issued, session) = new_session(&app, user_id, &waiting.client_name, &request);
    let (status, audit_id) = (<Many<DeviceSignInProgress> as Reply>::KIND.status(), app.world.id());
    // In the audit log it is a sign-in like the others.
    let request = Request { endpoint: SignIn::DESCRIPTION, audited_body: None, ..request };
    let exchange = move |tx: &Tx| {
        // A change of the password ends the fresh session too, or has forgotten the approval.
        users::lock(tx, &system, user_id)?;
        let Some(taken) = device_sign_ins::take(tx, &system, &hash)? else { return Ok(false) };
        let is_approved = taken.user_id == Some(user_id) && is_still_approved(tx, system, &taken, now)?;
        if !is_approved || !is_wanted(&users::memberships(tx, &system, user_id)?) {
            return Ok(false);
        }
        let Some(profile) = subjects::get(tx, &system, user_id.into())? else { return Ok(false) };
        issued.store(tx, &system)?;
        let home = sessions::home_of(tx, &system, user_id)?;
        audit::write(tx, &system, &request, home, &profile, audit_id, status)?;
        Ok::<_, Error>(true)
    };
    if !db(&app).write(None, exchange).await? {
        return Err(unknown());
    }
    Ok(Many(DeviceSignInProgress { status: DeviceSignInStatus::Approved, session: Some(session) }))
}

/// Approves or denies a sign-in as the caller, who must be a user.
pub async fn decide(cx: Cx<()>, call: Call<api::Decide>) -> Result<Nothing> {
    let user_id = cx.users_only("sign in as the user that the terminal is to act for")?;
    not_the_operator(&cx)?;
    let code = rules::typed("userCode", &call.body.user_code).map_err(Refusal::from)?;
    let app = cx.app();
    let guess = Guess::begin(app, cx.authority(), cx.request().address, cx.now())?;
    let (code_hash, decision) = (app.secrets.sign(TYPED, &code), call.body.decision);
    let decided = cx.mutate(move |cx, tx| {
        let credential_hash = hex(&cx.authority().token_hash());
        let by = (user_id, credential_hash.as_str());
        // An approval in the last moment is still fetched.
        let times = (cx.now(), cx.now() + rules::FETCHED_WITHIN);
        match device_sign_ins::decide(tx, &system(cx.app()), &code_hash, decision, by, times)? {
            true => Ok(Nothing),
            false => Err(unknown()),
        }
    });
    guess.end(decided.await)
}

impl App {
    /// The sign-in of a code that a person typed, while nobody has decided about it.
    pub async fn waiting_device_sign_in(
        &self,
        authority: &Authority,
        address: IpAddr,
        code: &str,
        now: Timestamp,
    ) -> Result<DeviceSignIn> {
        let code = rules::typed("code", code).map_err(Refusal::from)?;
        let guess = Guess::begin(self, authority, address, now)?;
        let (system, hash) = (system(self), self.secrets.sign(TYPED, &code));
        let found =
            db(self).read(None, move |conn| device_sign_ins::by_user_code(conn, &system, &hash)).await?;
        let found = found.filter(|waiting| waiting.expires_at > now && waiting.decision.is_none());
        guess.end(found.ok_or_else(unknown))
    }

    fn new_user_code(&self) -> String {
        loop {
            let mut random = [0; 32];
            self.world.fill(&mut random);
            if let Some(code) = rules::user_code(&random) {
                return code;
            }
        }
    }
}

/// A code that somebody typed: wrong ones slow down whoever types them.
struct Guess<'a> {
    app: &'a App,
    who: Account,
    place: Place,
    now: Timestamp,
}

impl<'a> Guess<'a> {
    fn begin(app: &'a App, authority: &Authority, address: IpAddr, now: Timestamp) -> Result<Self> {
        let who = Account::named(&format!("device sign-ins of {}", authority.credential.subject_id));
        let place = Place::from(address);
        app.sign_in_throttle.check(Some(who), place, now)?;
        Ok(Self { app, who, place, now })
    }

    fn end<T>(&self, answer: Result<T>) -> Result<T> {
        if let Err(Error::Refused(Refusal::NotFound(_))) = &answer {
            self.app.sign_in_throttle.failed(Some(self.who), self.place, self.now);
        }
        answer
    }
}

/// Refuses one more where there are too many.
fn admit(conn: &podium_db::Conn, system: Doorkeeper, new: &NewDeviceSignIn) -> Result<()> {
    let open = device_sign_ins::count(conn, &system, (&new.place, &new.site), new.created_at)?;
    let is_free = open.of_place < rules::MOST_OF_A_PLACE && open.of_site < rules::MOST_OF_A_SITE;
    if is_free && open.all < rules::MOST {
        return Ok(());
    }
    Err(Error::TooMany { retry_after: rules::LASTS.as_secs() })
}

/// Whether the token that approved it is still valid, and its holder's.
fn is_still_approved(tx: &Tx, system: Doorkeeper, taken: &DeviceSignIn, now: Timestamp) -> Result<bool> {
    let Some(hash) = &taken.credential_hash else { return Ok(false) };
    let Some(credential) = credentials::by_hash(tx, &system, hash)? else { return Ok(false) };
    Ok(credential.user_id() == taken.user_id && credential.expires_at.is_none_or(|end| end > now))
}

/// Starts take turns, so that together they keep to their bounds.
fn starting() -> AdvisoryLock {
    let hash = sha256(b"starts of device sign-ins");
    AdvisoryLock { key: i64::from_be_bytes(hash.first_chunk().copied().unwrap_or_default()), exclusive: true }
}

fn unknown() -> Error {
    Refusal::not_found("sign-in of a terminal").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_asks_so_often_in_a_minute() {
        let polls = Polls::default();
        let now = Timestamp::from_millis(1_000_000);
        for _ in 0..MOST_POLLS {
            polls.count([1; 32], now).unwrap();
        }
        let refused = polls.count([1; 32], now + Duration::from_secs(20));
        assert!(matches!(refused, Err(Error::TooMany { retry_after: 40 })), "{refused:?}");
        assert!(polls.count([2; 32], now).is_ok(), "another one is counted by itself");
        assert!(polls.count([1; 32], now + WINDOW).is_ok());
    }
}
