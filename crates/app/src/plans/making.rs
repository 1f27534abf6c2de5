//! Makes one call of a plan, and finds out what it changed.

use podium_api::enums::PlannedMethod;
use podium_api::openapi::PREFIX;
use podium_api::plans::PlannedCall;
use podium_api::{Description, ErrorBody, FieldError, Method, ReplyKind};
use podium_db::{Tx, joined};
use podium_domain::{Refusal, plans as rules};
use podium_store::Scope;
use serde_json::{Map, Value};

use super::begun;
use super::calls::{CallKey, Calls, Found, Handled, JoinedCall};
use super::outcome::{Done, Outcome};
use crate::cx::Cx;
use crate::error::{Error, Result};

/// A resource as it is read.
pub(super) type Resource = Map<String, Value>;

pub(super) struct Making<'a> {
    pub(super) cx: &'a Cx<Scope>,
    pub(super) tx: &'a Tx,
    pub(super) calls: &'a dyn Calls,
    pub(super) index: usize,
    pub(super) is_first: bool,
    pub(super) kept_under: Option<CallKey>,
}

impl Making<'_> {
    pub(super) fn make(&self, call: &PlannedCall, results: &[Option<Resource>]) -> Result<Outcome> {
        let (path, body) = match self.resolved(call, results) {
            Ok(resolved) => resolved,
            Err(refusal) => return Ok(self.refused(None, &refusal)),
        };
        let path = path.strip_prefix(PREFIX).unwrap_or(&path);
        let endpoint = match self.endpoint(call.method, path) {
            Ok(endpoint) => endpoint,
            Err(refusal) => return Ok(self.refused(None, &refusal)),
        };
        let item = self.item_of(path);
        let (version, before) = self.read_opt(item.as_deref())?.unzip();
        let mut effects = match &before {
            Some(before) if endpoint.method == Method::Delete => self.deleted_along(endpoint, before)?,
            _ => Vec::new(),
        };
        effects.extend(self.access(endpoint, before.as_ref())?);
        begun::take();
        let kept_under = self.kept_under.clone();
        let (status, result) = match self.handle(
            call.method.as_str(),
            path,
            body,
            call.if_match.clone(),
            kept_under,
        )? {
            Handled::Done { status, body, .. } => (status, object(body)),
            Handled::Refused(error) => return Ok(Outcome::refused(Some(endpoint), error)),
            Handled::Stale if self.is_first => return Err(Error::STALE),
            Handled::Stale => {
                let message = "An earlier call of this plan changes your own rights: make this call before it, or in another plan.";
                return Ok(self.refused(Some(endpoint), &Refusal::Conflict(message.into())));
            }
        };
        let begun = begun::take();
        let made = self.made(path, result.as_ref())?;
        let is_made = made.is_some();
        let changes = match (made, before) {
            (Some(made), _) => rules::created(&made),
            (None, Some(before)) => match self.read_opt(item.as_deref())? {
                Some((_, after)) => rules::difference(&before, &after),
                None => rules::deleted(&before),
            },
            (None, None) => result.as_ref().map(rules::created).unwrap_or_default(),
        };
        let (rolled_out, interrupted) = self.rolled_out((endpoint, path), &changes, begun)?;
        effects.extend(rolled_out);
        let version = version.flatten();
        let done = Done { version, changes, is_made, effects, interrupted, result };
        Ok(Outcome::done(endpoint, status, done))
    }

    /// What a call answered when it was made, if the caller still may make it.
    pub(super) fn answer(
        &self,
        call: &PlannedCall,
        results: &[Option<Resource>],
    ) -> Result<Option<Resource>> {
        let (path, body) = self.resolved(call, results)?;
        let path = path.strip_prefix(PREFIX).unwrap_or(&path);
        let kept_under = self.kept_under.clone();
        match self.handle(call.method.as_str(), path, body, call.if_match.clone(), kept_under)? {
            Handled::Done { body, .. } => Ok(object(body)),
            Handled::Refused(error) => Err(Outcome::refused(None, error).refusal(self.index)),
            Handled::Stale => Err(Error::STALE),
        }
    }

    /// The path and body of a call, with what they refer to.
    fn resolved(
        &self,
        call: &PlannedCall,
        results: &[Option<Resource>],
    ) -> Result<(String, Option<Value>), Refusal> {
        let path = rules::resolve_path(&call.path, self.index, results)?;
        let body = call.body.as_ref().map(|body| rules::resolve_body(body, self.index, results));
        Ok((path, body.transpose()?))
    }

    /// The endpoint of a call, if it can be planned.
    fn endpoint(&self, method: PlannedMethod, path: &str) -> Result<&'static Description, Refusal> {
        let field = |message: &str| {
            Refusal::from(FieldError::new(format!("calls[{}].path", self.index), "path", message))
        };
        let Some(Found { endpoint, first_id }) = self.calls.find(method.as_str(), path) else {
            return Err(field("leads to no endpoint that takes this method: see /docs for the API"));
        };
        if !rules::can_be_planned(endpoint) {
            return Err(field("leads to an endpoint that cannot be planned: call it by itself"));
        }
        if first_id != Some(self.cx.organization_id().id()) {
            return Err(field("must be of the organization of the plan"));
        }
        Ok(endpoint)
    }

    /// The path of the resource that a call acts on: the longest part of its path that can be read.
    fn item_of(&self, path: &str) -> Option<String> {
        let mut item = path.split('?').next()?;
        loop {
            match self.readable(item) {
                // What is made in an organization does not change the organization.
                Some(found) if found.endpoint.path_params.len() == 1 && item != path => return None,
                Some(_) => return Some(item.to_owned()),
                None => item = item.rsplit_once('/')?.0,
            }
        }
    }

    fn readable(&self, path: &str) -> Option<Found> {
        self.calls.find("GET", path).filter(|found| found.endpoint.reply_kind == ReplyKind::One)
    }

    /// The resource that a call has made, if it has made one that can be read.
    fn made(&self, path: &str, result: Option<&Resource>) -> Result<Option<Resource>> {
        let id = result.and_then(|result| result.get("id")).and_then(Value::as_str);
        let item = id.map(|id| format!("{path}/{id}")).filter(|item| self.readable(item).is_some());
        Ok(self.read_opt(item.as_deref())?.map(|(_, made)| made))
    }

    /// Reads a resource and its version; `None` if there is none, or the caller may not see it.
    pub(super) fn read_opt(&self, path: Option<&str>) -> Result<Option<(Option<i64>, Resource)>> {
        let Some(path) = path else { return Ok(None) };
        match self.handle("GET", path, None, None, None)? {
            Handled::Done { version, body, .. } => Ok(object(body).map(|body| (version, body))),
            Handled::Refused(_) | Handled::Stale => Ok(None),
        }
    }

    /// Handles a call in the transaction. Its units never wait there, so it is done when it is polled once.
    fn handle(
        &self,
        method: &'static str,
        path: &str,
        body: Option<Value>,
        if_match: Option<String>,
        kept_under: Option<CallKey>,
    ) -> Result<Handled> {
        use futures_util::FutureExt as _;
        let (cx, request) = (self.cx, self.cx.request());
        let handling = self.calls.handle(JoinedCall {
            app: cx.app().clone(),
            authority: cx.shared_authority(),
            method,
            path: path.to_owned(),
            body,
            if_match,
            kept_under,
            address: request.address,
            user_agent: request.user_agent.clone(),
            request_id: request.id.clone(),
            now: request.now,
        });
        let handled = joined::within(self.tx, || handling.now_or_never())?;
        handled.ok_or_else(|| Error::Internal("a planned call waited for more than the database".into()))
    }

    fn refused(&self, endpoint: Option<&'static Description>, refusal: &Refusal) -> Outcome {
        let fields = if let Refusal::Invalid { fields, .. } = refusal { fields.clone() } else { Vec::new() };
        let error = ErrorBody {
            message: refusal.message(),
            request_id: self.cx.request().id.clone(),
            status_code: refusal.status(),
            code: Some(refusal.code().to_string()),
            field_errors: Some(fields).filter(|fields| !fields.is_empty()),
        };
        Outcome::refused(endpoint, error)
    }
}

fn object(value: Option<Value>) -> Option<Resource> {
    if let Some(Value::Object(members)) = value { Some(members) } else { None }
}
