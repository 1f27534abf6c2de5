//! How a call changes something: once under an `Idempotency-Key`, with its audit record, all or nothing, by a caller whose
//! rights are checked again inside the transaction.

use std::sync::{Arc, Mutex, PoisonError};

use podium_api::{Id, Reply, ReplyKind};
use podium_db::{Change, Tx};
use podium_domain::Refusal;
use podium_store::{Scope, changes};
use serde::de::DeserializeOwned;

use super::{Cx, Inner, db};
use crate::audit;
use crate::error::{Error, Result};
use crate::idempotency::Written;

/// Checks rights before the stored response of an earlier call is given again.
type May<C> = Box<dyn FnMut(&C, &Tx, &[u8]) -> Result<()> + Send>;
/// The effect of a call, which returns the reply as it is stored if there is an `Idempotency-Key`.
type Effect<C> = Box<dyn FnMut(&C, &Tx) -> Result<Option<Written>> + Send>;

impl Cx<()> {
    /// Writes an audit record of the refused call. In a plan, nothing of a refused call remains.
    pub async fn record_refusal(&self, status: u16) -> Result<()> {
        if podium_db::joined::is_joined() || !self.app().refusals.allow(self.subject_id()) {
            return Ok(());
        }
        let cx = self.clone();
        let id = self.new_id();
        db(self.app()).write(None, move |tx| audit::record(tx, &cx, id, status)).await
    }
}

impl Cx<Scope> {
    /// Records in the change log that a resource of the organization changed, without an event.
    pub fn logged(&self, tx: &Tx, kind: &'static str, id: Id, version: i64) -> Result<()> {
        let workspace_id = (kind == podium_store::workspaces::KIND).then(|| id.to_string());
        let change = Change { workspace_id, ..Change::new(kind, &id, version) };
        Ok(changes::append(tx, self.scope(), self.now(), change)?)
    }

    /// Announces that rights in the organization change. Must come first in a transaction that changes any, which is
    /// one of [`Cx::change_rights`].
    pub fn rights_change(&self, tx: &Tx) -> Result<()> {
        if !self.exclusive {
            return Err(Error::Internal(format!(
                "{} changes rights outside a transaction that locks them",
                self.request().endpoint.id
            )));
        }
        crate::authority::rights_change(tx, self.scope(), self.now())
    }
}

impl<P: Clone + Send + Sync + 'static> Cx<P> {
    /// Runs the effect of a call: once under an `Idempotency-Key`, with its audit record, all or nothing.
    pub async fn mutate<R: Reply>(
        &self,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.write(false, |_, _, _| Ok(()), effect).await
    }

    /// The same if the effect requires rights beyond the endpoint's permission: `may` checks them again
    /// before a stored response is repeated.
    pub async fn mutate_where<R: Reply>(
        &self,
        mut may: impl FnMut(&Self, &Tx) -> Result<()> + Send + 'static,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.write(false, move |cx, tx, _| may(cx, tx), effect).await
    }

    /// Runs an effect that changes rights: exclusively, and while nobody acts on rights that it may take
    /// away. Without an organization, the caller's own sessions change.
    pub async fn change_rights<R: Reply>(
        &self,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.write(true, |_, _, _| Ok(()), effect).await
    }

    /// The same if the effect requires further rights.
    pub async fn change_rights_where<R: Reply>(
        &self,
        mut may: impl FnMut(&Self, &Tx) -> Result<()> + Send + 'static,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        self.write(true, move |cx, tx, _| may(cx, tx), effect).await
    }

    /// The same if those rights depend on the stored response.
    pub async fn change_rights_checking_reply<R: Reply<Body: DeserializeOwned>>(
        &self,
        mut may: impl FnMut(&Self, &Tx, R::Body) -> Result<()> + Send + 'static,
        effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let judged = move |cx: &Self, tx: &Tx, kept: &[u8]| {
            may(cx, tx, serde_json::from_slice(kept).map_err(|error| Error::Internal(error.to_string()))?)
        };
        self.write(true, judged, effect).await
    }

    /// Runs a unit in a transaction and takes it back. It may do whatever the caller may, also change rights.
    pub(crate) async fn rehearse<T: Send + 'static>(
        &self,
        mut unit: impl FnMut(&Self, &Tx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let Inner { app, authority, .. } = &*self.inner;
        let cx = Self { exclusive: true, ..self.clone() };
        let locks = if db(app).is_shared() { authority.locks(true) } else { Vec::new() };
        let answer = db(app).rehearse(self.guard(), locks, move |tx: &Tx| {
            cx.confirm_in_database(tx)?;
            unit(&cx, tx)
        });
        self.note_confirmed(answer.await)
    }

    /// Stores something for the caller that changes no resource, and so leaves no audit record.
    pub(crate) async fn write_unaudited<T: Send + 'static>(
        &self,
        mut unit: impl FnMut(&Self, &Tx) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let cx = self.clone();
        let answer = db(&self.inner.app).write(self.guard(), move |tx: &Tx| {
            cx.confirm_in_database(tx)?;
            unit(&cx, tx)
        });
        self.note_confirmed(answer.await)
    }

    async fn write<R: Reply>(
        &self,
        exclusive: bool,
        may: impl FnMut(&Self, &Tx, &[u8]) -> Result<()> + Send + 'static,
        mut effect: impl FnMut(&Self, &Tx) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let slot = Arc::<Mutex<Option<R>>>::default();
        let made = Arc::clone(&slot);
        let effect = move |cx: &Self, tx: &Tx| {
            let reply = effect(cx, tx)?;
            let written = cx.request().idempotency.as_ref().map(|_| Written::of(&reply)).transpose()?;
            *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(reply);
            Ok(written)
        };
        self.write_erased(exclusive, Box::new(may), (Box::new(effect), R::KIND)).await?;
        let reply = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        reply.ok_or_else(|| Error::Internal("an effect was committed without a reply".into()))
    }

    /// The same whatever the reply is, so that it is compiled once and not for each endpoint.
    async fn write_erased(
        &self,
        exclusive: bool,
        mut may: May<Self>,
        (mut effect, kind): (Effect<Self>, ReplyKind),
    ) -> Result<()> {
        let Inner { app, authority, request, .. } = &*self.inner;
        authority.has_not_ended(request.session, app.world.now())?;
        let running = app.running.enter(self)?;
        let entered = Arc::clone(&running);
        let cx = Self { exclusive, ..self.clone() };
        let audit_id = self.new_id();
        let unit = move |tx: &Tx| {
            cx.note_operation(None);
            cx.confirm_in_database(tx)?;
            running.replay(&cx, tx, &mut |kept| may(&cx, tx, kept))?;
            running.claim(&cx, tx)?;
            let written = effect(&cx, tx)?;
            audit::record(tx, &cx, audit_id, kind.status())?;
            running.keep(&cx, tx, written)
        };
        // A database with a single writer needs no locks, so their keys are not computed.
        let locks = if db(app).is_shared() { authority.locks(exclusive) } else { Vec::new() };
        let answer = db(app).write_locked(self.guard(), locks, unit).await;
        entered.leave();
        self.note_confirmed(answer)
    }

    /// Compares the caller's `If-Match` with the version of the resource to change.
    pub fn expect_version(&self, version: i64) -> Result<()> {
        let Some(header) = &self.inner.request.if_match else { return Ok(()) };
        let fits = |tag: &str| {
            let tag = tag.trim();
            let quoted = tag.strip_prefix("W/").unwrap_or(tag).trim_matches('"');
            tag == "*" || quoted.split('-').next().is_some_and(|expected| expected == version.to_string())
        };
        if header.split(',').any(fits) {
            return Ok(());
        }
        let message =
            "The resource has changed since the version in If-Match: read it again, then repeat your change.";
        Err(Refusal::Precondition(message.into()).into())
    }
}
