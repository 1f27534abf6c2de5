//! `Idempotency-Key`: repeated requests take effect once and get the same response.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use podium_api::json::Written as _;
use podium_api::{Reply, Timestamp};
use podium_db::{Conn, Tx};
use podium_domain::Refusal;
use podium_store::idempotency::{self as stored, IdempotencyKey, NewResponse, StoredResponse};
use podium_store::{credentials, invites, webhooks};

use crate::App;
use crate::cx::Cx;
use crate::error::{Error, Replay, Result};
use crate::request::Idempotency;
use crate::secrets::sha256_hex;

crate::system::acts_for_the_system!();

/// How long an answer is given again.
pub const KEPT_FOR: Duration = Duration::from_hours(24);
/// How long a secret in an answer is given again.
const SECRETS_KEPT_FOR: Duration = Duration::from_mins(10);

type RunningKeys = Arc<Mutex<HashSet<(podium_api::SubjectId, &'static str, String, String)>>>;

pub struct Written {
    version: Option<i64>,
    body: Vec<u8>,
}

impl Written {
    pub fn of(reply: &impl Reply) -> Result<Self> {
        let (version, body) = reply.parts();
        let mut json = Vec::new();
        if let Some(body) = body {
            body.write(&mut json).map_err(|error| Error::Internal(error.to_string()))?;
        }
        Ok(Self { version, body: json })
    }
}

/// The requests with a key that are running in this process.
#[derive(Default)]
pub struct Running(RunningKeys);

/// A running request; without a key nothing is stored.
pub struct Entered {
    keyed: Option<(IdempotencyKey, String)>,
    keys: RunningKeys,
    is_running: AtomicBool,
}

impl Running {
    /// Marks a request as running; refuses another with the same key until it is done.
    pub fn enter<P: Clone + Send + Sync + 'static>(&self, cx: &Cx<P>) -> Result<Arc<Entered>> {
        let request = cx.request();
        let keyed = request.idempotency.as_ref().map(|Idempotency { key, request_hash, .. }| {
            let answer_key = IdempotencyKey {
                subject_id: cx.subject_id(),
                operation_id: request.endpoint.id,
                target: request.path.clone(),
                key: key.clone(),
            };
            (answer_key, request_hash.clone())
        });
        if let Some((key, _)) = &keyed
            && !self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(name(key))
        {
            return Err(Error::StillRunning);
        }
        Ok(Arc::new(Entered { keyed, keys: Arc::clone(&self.0), is_running: AtomicBool::new(true) }))
    }
}

fn name(key: &IdempotencyKey) -> (podium_api::SubjectId, &'static str, String, String) {
    (key.subject_id, key.operation_id, key.target.clone(), key.key.clone())
}

/// A unit of work whose caller has gone runs on, and is done when it is dropped.
impl Drop for Entered {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Entered {
    /// Marks it as done. Its stored response is found from now on, although the unit may not have been dropped yet.
    pub fn leave(&self) {
        if let Some((key, _)) = &self.keyed
            && self.is_running.swap(false, Ordering::AcqRel)
        {
            self.keys.lock().unwrap_or_else(PoisonError::into_inner).remove(&name(key));
        }
    }

    /// Ends the call with the stored response, if there is one and the caller may still see it: `may` checks the rights
    /// to its content. A secret that is no longer repeated needs none.
    pub fn replay<P: Clone + Send + Sync + 'static>(
        &self,
        cx: &Cx<P>,
        conn: &Conn,
        may: &mut dyn FnMut(&[u8]) -> Result<()>,
    ) -> Result<()> {
        let Some((key, request_hash)) = &self.keyed else { return Ok(()) };
        let system = system(cx.app());
        let Some(answer) = stored::get(conn, &system, key)? else { return Ok(()) };
        if answer.created_at + KEPT_FOR <= cx.now() {
            return Ok(());
        }
        if answer.request_hash != *request_hash {
            let message = "This Idempotency-Key was already used for a different request: use a new key for a new request.";
            return Err(Refusal::Conflict(message.into()).into());
        }
        let body = if answer.is_sealed { Self::open(cx, conn, key, &answer)? } else { answer.body };
        may(&body)?;
        cx.note_operation(answer.started_id);
        Err(Error::Replay(Box::new(Replay { version: answer.version, body })))
    }

    /// The body of an answer, which is encrypted. One with a secret is opened for a short time only, and while the secret
    /// is valid.
    fn open<P: Clone + Send + Sync + 'static>(
        cx: &Cx<P>,
        conn: &Conn,
        key: &IdempotencyKey,
        answer: &StoredResponse,
    ) -> Result<Vec<u8>> {
        let has_secret = cx.request().endpoint.secret_reply;
        if has_secret && answer.created_at + SECRETS_KEPT_FOR <= cx.now() {
            return Err(not_again());
        }
        let body = cx.app().secrets.open(&key.key, &answer.body).map_err(|_| not_again())?;
        if !has_secret {
            return Ok(body.to_vec());
        }
        let value: serde_json::Value = serde_json::from_slice(&body).map_err(|_| not_again())?;
        let hash = sha256_hex(value["token"].as_str().unwrap_or_default().as_bytes());
        let system = system(cx.app());
        let lives = credentials::by_hash(conn, &system, &hash)?.is_some()
            || invites::by_secret(conn, &system, &hash)?.is_some()
            || is_secret_of_webhook(cx.app(), conn, &value)?;
        if lives { Ok(body.to_vec()) } else { Err(not_again()) }
    }

    /// Takes the key, before the effect: of two replicas that run the same request, one has it.
    pub fn claim<P: Clone + Send + Sync + 'static>(&self, cx: &Cx<P>, tx: &Tx) -> Result<()> {
        let Some((key, request_hash)) = &self.keyed else { return Ok(()) };
        if cx.request().idempotency.as_ref().is_some_and(|asked| asked.is_replay) {
            return Err(not_again());
        }
        let lapsed_before = Timestamp::from_millis(cx.now().millis() + 1) - KEPT_FOR;
        match stored::claim(tx, &system(cx.app()), key, request_hash, cx.now(), lapsed_before) {
            Err(podium_db::Error::Unique(_)) => Err(Error::StillRunning),
            claimed => Ok(claimed?),
        }
    }

    /// Stores the response in the transaction of its effect.
    pub fn keep<P: Clone + Send + Sync + 'static>(
        &self,
        cx: &Cx<P>,
        tx: &Tx,
        written: Option<Written>,
    ) -> Result<()> {
        let (Some((key, _)), Some(Written { version, mut body })) = (&self.keyed, written) else {
            return Ok(());
        };
        // What a caller is shown, such as the URL of a webhook, need not be in the database for everybody to read.
        let is_sealed = !body.is_empty();
        if is_sealed {
            body = cx.app().secrets.seal(&cx.app().world, &key.key, &body);
        }
        let response = NewResponse { version, body: &body, is_sealed, started_id: cx.operation() };
        Ok(stored::keep(tx, &system(cx.app()), key, &response)?)
    }
}

fn not_again() -> Error {
    let message = "This request was already answered, and the secret in its response is not shown again.";
    Refusal::Conflict(message.into()).into()
}

/// Whether a response holds the secret that a webhook has now.
fn is_secret_of_webhook(app: &App, conn: &Conn, response: &serde_json::Value) -> Result<bool> {
    let (id, secret) = (response["id"].as_str(), response["secret"].as_str());
    let Some((Ok(id), secret)) = id.map(str::parse).zip(secret) else { return Ok(false) };
    let webhook = webhooks::state(conn, &system(app), id)?;
    Ok(webhook.is_some_and(|webhook| app.is_secret_of(&webhook, secret)))
}
