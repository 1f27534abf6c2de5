//! Makes one call of a plan, and finds out what it changed.

use podium_api::enums::{PlannedEffectType, PlannedMethod};
use podium_api::openapi::PREFIX;
use podium_api::plans::{PlannedCall, PlannedEffect};
use podium_api::{Description, ErrorBody, FieldError, Method, ReplyKind};
use podium_db::{Tx, joined};
use podium_domain::{Refusal, plans as rules};
use podium_store::Scope;
use serde_json::{Map, Value};

use super::outcome::{Done, Outcome};
use super::{Calls, Found, Handled, JoinedCall};
use crate::cx::Cx;
use crate::error::{Error, Result};

/// A resource as it is read.
type Resource = Map<String, Value>;

/// The making of one call.
pub(super) struct Making<'a> {
    pub(super) cx: &'a Cx<Scope>,
    pub(super) tx: &'a Tx,
    pub(super) calls: &'a dyn Calls,
    pub(super) index: usize,
    pub(super) is_first: bool,
}

impl Making<'_> {
    pub(super) fn make(&self, call: &PlannedCall, results: &[Option<Resource>]) -> Result<Outcome> {
        let resolved = rules::resolve_path(&call.path, self.index, results).and_then(|path| {
            let body = call.body.as_ref().map(|body| rules::resolve_body(body, self.index, results));
            Ok((path, body.transpose()?))
        });
        let (path, body) = match resolved {
            Ok(resolved) => resolved,
            Err(error) => return Ok(self.refused(None, &error.into())),
        };
        let path = path.strip_prefix(PREFIX).unwrap_or(&path);
        let endpoint = match self.endpoint(call.method, path) {
            Ok(endpoint) => endpoint,
            Err(refusal) => return Ok(self.refused(None, &refusal)),
        };
        let item = self.item_of(path);
        let (version, before) = self.read_opt(item.as_deref())?.unzip();
        let effects = match &before {
            Some(before) if endpoint.method == Method::Delete => self.deleted_along(endpoint, before)?,
            _ => Vec::new(),
        };
        let (status, result) = match self.handle(call.method.as_str(), path, body, call.if_match.clone())? {
            Handled::Done { status, body, .. } => (status, object(body)),
            Handled::Refused(error) => return Ok(Outcome::refused(Some(endpoint), error)),
            Handled::Stale if self.is_first => return Err(Error::STALE),
            Handled::Stale => {
                let message = "An earlier call of this plan changes your own rights: make this call before it, or in another plan.";
                return Ok(self.refused(Some(endpoint), &Refusal::Conflict(message.into())));
            }
        };
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
        let restarts =
            if endpoint.id == "UpdateDeployment" { rules::of_deployment(&changes) } else { Vec::new() };
        let effects = effects.into_iter().chain(restarts).collect();
        let version = version.flatten();
        Ok(Outcome::done(endpoint, status, Done { version, changes, is_made, effects, result }))
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
    fn read_opt(&self, path: Option<&str>) -> Result<Option<(Option<i64>, Resource)>> {
        let Some(path) = path else { return Ok(None) };
        match self.handle("GET", path, None, None)? {
            Handled::Done { version, body, .. } => Ok(object(body).map(|body| (version, body))),
            Handled::Refused(_) | Handled::Stale => Ok(None),
        }
    }

    /// What is lost along with a resource that is deleted.
    fn deleted_along(&self, endpoint: &Description, before: &Resource) -> Result<Vec<PlannedEffect>> {
        use PlannedEffectType::{Access, Delete, Stop};
        let id = before.get("id").and_then(Value::as_str).unwrap_or_default();
        let lists = match endpoint.id {
            "DeleteWorkspace" => vec![
                (Delete, "Its API tokens are deleted.", format!("tokens?workspaceId={id}")),
                (
                    Delete,
                    "Its environment objects are deleted.",
                    format!("environment-objects?workspaceId={id}"),
                ),
            ],
            "DeleteDeployment" => vec![
                (Delete, "Its deploys are deleted.", format!("deployments/{id}/deploys?offset=0")),
                (Delete, "Its API tokens are deleted.", format!("tokens?deploymentId={id}")),
            ],
            "DeleteTeam" => {
                vec![(
                    Access,
                    "Its members lose what they may do through the team.",
                    format!("teams/{id}/members?offset=0"),
                )]
            }
            _ => Vec::new(),
        };
        let mut effects = Vec::new();
        for (kind, message, list) in lists {
            let path = format!("/organizations/{}/{list}&limit=0", self.cx.organization_id());
            let listed = self.read_opt(Some(&path))?;
            let count =
                listed.and_then(|(_, list)| list.get("totalCount")?.as_u64()).filter(|count| *count > 0);
            if count.is_some() {
                effects.push(PlannedEffect { kind, message: message.to_owned(), names: Vec::new(), count });
            }
        }
        if endpoint.id == "DeleteDeployment" {
            let message = "Its environment is stopped and its data is deleted.".to_owned();
            effects.push(PlannedEffect { kind: Stop, message, names: Vec::new(), count: None });
        }
        Ok(effects)
    }

    /// Handles a call in the transaction. Its units never wait there, so it is done when it is polled once.
    fn handle(
        &self,
        method: &'static str,
        path: &str,
        body: Option<Value>,
        if_match: Option<String>,
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
            field_errors: Some(fields).filter(|fields| !fields.is_empty()),
        };
        Outcome::refused(endpoint, error)
    }
}

fn object(value: Option<Value>) -> Option<Resource> {
    if let Some(Value::Object(members)) = value { Some(members) } else { None }
}
