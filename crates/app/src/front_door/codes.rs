//! One-time codes, which a browser takes to an environment's origin, and the passes that it gets for them.

use std::time::Duration;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use podium_api::front_door::{self as api, OpenedDeployment};
use podium_api::{DeploymentId, Many, Timestamp, hex};
use podium_domain::Refusal;
use podium_store::Scope;
use podium_store::front_door::{self, DeploymentRef, EnvironmentAccess};

use super::db;
use super::system;
use crate::App;
use crate::authority::Authority;
use crate::cx::{Call, Cx};
use crate::deployments;
use crate::error::{Error, Result};
use crate::secrets::sha256_hex;

const CODE: Duration = Duration::from_secs(60);
/// The characters escaped in the path that a browser is redirected to.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

#[derive(Debug)]
pub struct Entered {
    pub pass: String,
    /// How long that can work.
    pub lasts: Duration,
}

/// A code that works once it is stored.
struct Code {
    hash: String,
    access: EnvironmentAccess,
    url: String,
}

/// Makes a link that opens the environment in a browser.
pub async fn open(cx: Cx<Scope>, call: Call<api::Open>) -> Result<Many<OpenedDeployment>> {
    let id = call.path.deployment_id;
    let row = cx.read(move |cx, conn| deployments::find(conn, cx.scope(), id)).await?;
    let to = format!("/airflow/{}/", row.namespace);
    let code = cx.app().new_code(cx.authority(), (id, &row.namespace), &to, None, cx.now()).await?;
    cx.mutate(move |cx, tx| {
        cx.expect_version(deployments::find(tx, cx.scope(), id)?.stamp.version)?;
        front_door::add_code(tx, &system(cx.app()), &code.hash, &code.access)?;
        Ok(Many(OpenedDeployment { url: code.url.clone(), expires_at: code.access.expires_at }))
    })
    .await
}

impl App {
    /// Where a browser with a session goes to enter an environment; `to` is where it wants to be then, a path.
    pub async fn way_in(
        &self,
        authority: &Authority,
        session: &str,
        deployment: &DeploymentRef,
        to: &str,
        now: Timestamp,
    ) -> Result<String> {
        let session = Some(sha256_hex(session.as_bytes()));
        let code =
            self.new_code(authority, (deployment.id(), deployment.namespace()), to, session, now).await?;
        let (system, url) = (system(self), code.url.clone());
        db(self).write(None, move |tx| front_door::add_code(tx, &system, &code.hash, &code.access)).await?;
        Ok(url)
    }

    async fn new_code(
        &self,
        authority: &Authority,
        (deployment_id, namespace): (DeploymentId, &str),
        to: &str,
        session_hash: Option<String>,
        now: Timestamp,
    ) -> Result<Code> {
        let origin = self.environment_origin(deployment_id, namespace).await?;
        let code = self.world.secret();
        let access = EnvironmentAccess {
            deployment_id,
            credential_hash: hex(&authority.token_hash()),
            expires_at: now + CODE,
            session_hash,
        };
        let url = format!("{origin}/.podium/enter?code={code}&to={}", utf8_percent_encode(to, ESCAPED));
        Ok(Code { hash: sha256_hex(code.as_bytes()), access, url })
    }

    /// Exchanges a code for a pass. The code is used up in any case.
    pub async fn enter(
        &self,
        code: &str,
        deployment: Option<&DeploymentRef>,
        now: Timestamp,
    ) -> Result<Entered> {
        let used_up = || {
            Error::from(Refusal::Forbidden(
                "This link has been used or has expired: open the environment again.".into(),
            ))
        };
        let (system, pass) = (system(self), self.world.secret());
        let (code_hash, pass_hash) = (sha256_hex(code.as_bytes()), sha256_hex(pass.as_bytes()));
        // Guesses must not cause database writes.
        let looked_up = code_hash.clone();
        db(self)
            .read(None, move |conn| front_door::code(conn, &system, &looked_up))
            .await?
            .ok_or_else(used_up)?;
        let (here, session) = (deployment.map(DeploymentRef::id), self.config.session);
        let exchange = move |tx: &podium_db::Tx| {
            let found = front_door::take_code(tx, &system, &code_hash)?;
            let fits =
                |found: &EnvironmentAccess| Some(found.deployment_id) == here && found.expires_at > now;
            let Some(found) = found.filter(fits) else { return Ok(None) };
            let Some(credential) = podium_store::credentials::by_hash(tx, &system, &found.credential_hash)?
            else {
                return Ok(None);
            };
            let mut expires_at = now + session;
            if let Some(hash) = &found.session_hash {
                let Some(session) = podium_store::sessions::by_hash(tx, &system, hash)? else {
                    return Ok(None);
                };
                expires_at = expires_at.min(session.expires_at);
            }
            if let Some(end) = credential.expires_at {
                expires_at = expires_at.min(end);
            }
            front_door::add_pass(tx, &system, &pass_hash, &EnvironmentAccess { expires_at, ..found })?;
            Ok::<_, Error>(Some(expires_at))
        };
        let expires_at = db(self).write(None, exchange).await?.ok_or_else(used_up)?;
        let millis = (expires_at.millis() - now.millis()).max(0).unsigned_abs();
        Ok(Entered { pass, lasts: Duration::from_millis(millis) })
    }
}
