//! The pages of the console: a browser with a session reads them and sends their forms.

use std::net::IpAddr;
use std::sync::Arc;

use futures_util::StreamExt as _;
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, LOCATION,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode};
use http_body_util::BodyExt as _;
use podium_api::path::{InOrganization, OfDeployment, filled};
use podium_api::{
    Description, EntityId, Id, OrganizationId, Timestamp, WorkspaceId, deployment_logs, events, organizations,
};
use podium_app::audit::shown_name;
use podium_app::authority::Authority;
use podium_app::request::OpenSession;
use podium_app::{App, Error};
use podium_console::{
    AirflowCall, AirflowQuestion, AirflowReply, Answer, ApiCall, ApiReply, Calling, Calls, Params, Problem,
    Visit, VisitMethod,
};
use podium_domain::{Permission, Target, require};
use serde_json::json;
use tokio::time::Instant;

use super::{FrontDoor, HttpResult, InboundRequest, headers, isolation};
use crate::body::{Body, RequestBody, whole};
use crate::errors::Failure;
use crate::in_process::{self, InProcessCalls};
use crate::incoming::{Given, Incoming, read_whole};
use crate::peer::Peer;
use crate::routes::Route;

const LARGEST_FORM: usize = 256 * 1024;
/// How much of a streamed reply a page keeps.
const MOST_STREAMED: usize = 1024 * 1024;
/// What the token of a form is signed for.
const FORM: &str = "console form";
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
     base-uri 'none'; frame-ancestors 'none'",
);
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");

/// Calls endpoints for the person behind a session.
pub(super) struct SessionCalls<'a> {
    pub(super) door: &'a FrontDoor,
    pub(super) app: App,
    endpoints: Arc<InProcessCalls>,
    session: OpenSession,
    pub(super) cookie: &'a str,
    pub(super) address: IpAddr,
    pub(super) peer: Arc<Peer>,
    pub(super) user_agent: String,
    pub(super) request_id: String,
    pub(super) now: Timestamp,
    /// Until when an environment may answer what this visit asks of it.
    pub(super) airflow_until: Instant,
}

pub(super) fn is_of_console(path: &str) -> bool {
    path.strip_prefix(podium_console::ROOT).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

impl FrontDoor {
    /// Shows a page of the console, or what pages load.
    pub(super) async fn show_console(&self, inbound: InboundRequest, body: RequestBody) -> HttpResult {
        if let Some(asset) = podium_console::asset(inbound.path()) {
            return Ok(asset_response(asset));
        }
        let (method, counted) = match inbound.parts.method {
            Method::GET | Method::HEAD => (VisitMethod::Read, podium_api::Method::Get),
            Method::POST => (VisitMethod::Send, podium_api::Method::Post),
            _ => {
                return Err(Failure::new(
                    StatusCode::METHOD_NOT_ALLOWED,
                    "This path supports GET and POST only.",
                ));
            }
        };
        let origin = self.app.public_url().origin();
        let to = if method == VisitMethod::Read { inbound.target() } else { podium_console::ROOT };
        let Some(cookie) = self.session_cookie(&inbound).map(str::to_owned) else {
            return self.ask_to_sign_in(&inbound, to);
        };
        self.check_cookies(&inbound).await?;
        match method {
            VisitMethod::Read => {
                isolation::check(&inbound.parts.headers, &inbound.parts.method, false, &origin)?;
            }
            VisitMethod::Send => {
                isolation::check_form(&inbound.parts.headers, &origin, podium_console::ROOT)?;
            }
        }
        let Some((session, authority)) = self.behind(&cookie, counted, inbound.now).await? else {
            return self.ask_to_sign_in(&inbound, to);
        };
        let form_token = self.app.secrets.sign(FORM, &cookie);
        let form = if method == VisitMethod::Send {
            self.form_sent(body, &cookie).await?
        } else {
            Params::default()
        };
        let calls = self.session_calls(&inbound, session, &cookie);
        let path = inbound.path().strip_prefix(podium_console::ROOT).unwrap_or_default();
        if let Some(stream) = Stream::at(path).filter(|_| method == VisitMethod::Read) {
            return calls.pass_on(stream, &inbound).await;
        }
        let visit = Visit {
            calls: &calls,
            method,
            path,
            query: Params::read(inbound.parts.uri.query().unwrap_or_default()),
            form,
            form_token,
            person: shown_name(&authority.profile).to_owned(),
            person_id: authority.credential.subject_id,
            address: inbound.address,
            now: inbound.now,
        };
        Ok(response(podium_console::answer(&visit).await))
    }

    /// The session behind a cookie and the rights of its person, whose request is counted; none if it has ended.
    pub(super) async fn behind(
        &self,
        cookie: &str,
        counted: podium_api::Method,
        now: Timestamp,
    ) -> Result<Option<(OpenSession, Arc<Authority>)>, Failure> {
        let opened = match self.app.open_session(cookie, now).await {
            Ok(session) => self.app.authority_of_session(session, None, now).await.map(|who| (session, who)),
            Err(error) => Err(error),
        };
        let (session, authority) = match opened {
            Err(Error::Unauthenticated(_)) => return Ok(None),
            opened => opened?,
        };
        self.app.rate_limits.count(authority.credential.subject_id, counted)?;
        Ok(Some((session, authority)))
    }

    /// Calls endpoints for the person behind a session, as parts of this request.
    pub(super) fn session_calls<'a>(
        &'a self,
        inbound: &InboundRequest,
        session: OpenSession,
        cookie: &'a str,
    ) -> SessionCalls<'a> {
        SessionCalls {
            door: self,
            cookie,
            peer: Arc::clone(&inbound.peer),
            airflow_until: Instant::now() + self.airflow_timeout,
            app: self.app.clone(),
            endpoints: Arc::clone(&self.endpoints),
            session,
            address: inbound.address,
            user_agent: inbound.user_agent(),
            request_id: inbound.request_id.clone(),
            now: inbound.now,
        }
    }

    /// Reads a form, and checks that a page of this session sent it.
    async fn form_sent(&self, body: RequestBody, cookie: &str) -> Result<Params, Failure> {
        let bytes = read_whole(body, LARGEST_FORM, self.form_timeout).await?;
        let form = Params::read(&String::from_utf8_lossy(&bytes));
        if self.app.secrets.verify(FORM, cookie, form.get("form-token")) {
            return Ok(form);
        }
        let message = "This form was made for another session: open its page again, and send it from there.";
        Err(Failure::new(StatusCode::FORBIDDEN, message))
    }
}

/// Something of the API that a browser reads as it comes.
struct Stream {
    /// What is called, without a query: that of the browser counts.
    call: ApiCall,
    /// The name of the file, if it is one to keep.
    file: Option<&'static str>,
}

impl Stream {
    /// What a path of the console leads to: events, lines of logs, or the audit log as a file.
    fn at(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.strip_prefix('/')?.split('/').collect();
        let organization_id: OrganizationId = parts.first()?.parse().ok()?;
        let here = InOrganization { organization_id };
        let (call, file) = match parts[1..] {
            ["events"] => (ApiCall::to::<events::Follow>(&here), None),
            ["audit", "export"] => (ApiCall::to::<organizations::AuditLogs>(&here), Some("audit.jsonl")),
            ["deployments", id, "logs", "follow"] => {
                let path = OfDeployment { organization_id, deployment_id: id.parse().ok()? };
                (ApiCall::to::<deployment_logs::Follow>(&path), None)
            }
            _ => return None,
        };
        Some(Self { call, file })
    }
}

impl SessionCalls<'_> {
    /// Passes on what the API streams.
    async fn pass_on(&self, stream: Stream, inbound: &InboundRequest) -> HttpResult {
        let query = inbound.parts.uri.query().unwrap_or_default();
        let (route, mut incoming) = self.incoming(stream.call, Some(query))?;
        let last = inbound.parts.headers.get("last-event-id").cloned();
        incoming.parts.headers.extend(last.map(|last| (HeaderName::from_static("last-event-id"), last)));
        let mut response = route.handler.handle(incoming).await?;
        if let Some(name) = stream.file {
            set_file(response.headers_mut(), name);
        }
        Ok(response)
    }

    /// A call as the endpoint takes it. A query in text, which a browser has sent, counts in the place of the call's own.
    fn incoming(&self, call: ApiCall, query: Option<&str>) -> Result<(Arc<Route>, Incoming), Failure> {
        let unbound = || Error::Internal("a page calls what is not bound".into());
        let route = Arc::clone(self.endpoints.route_of(call.endpoint).ok_or_else(unbound)?);
        let mut path = filled(call.endpoint.path, &call.ids);
        path.extend(query.map(|query| format!("?{query}")));
        let head = (self.user_agent.as_str(), call.if_match.as_deref());
        let parts = in_process::parts(call.endpoint.method.as_str(), &path, head)?;
        let from = (self.address, self.request_id.clone(), self.now);
        let asked = if call.query.is_null() { json!({}) } else { call.query };
        let given = Given { query: query.is_none().then_some(asked), body: call.body };
        let mut incoming = Incoming::joined(self.app.clone(), parts, call.ids, from, given);
        incoming.session = Some(self.session);
        Ok((route, incoming))
    }

    /// What the person may do in an organization.
    async fn authority(&self, organization_id: Option<OrganizationId>) -> Option<Arc<Authority>> {
        self.app.authority_of_session(self.session, organization_id, self.now).await.ok()
    }

    /// The response of an endpoint.
    pub(super) async fn answer(&self, call: ApiCall) -> HttpResult {
        let (route, incoming) = self.incoming(call, None)?;
        Box::pin(route.handler.handle(incoming)).await
    }
}

impl Calls for SessionCalls<'_> {
    fn call(&self, call: ApiCall) -> Calling<'_, ApiReply> {
        Box::pin(async move {
            let response = match self.answer(call).await {
                Ok(response) => response,
                Err(failure) => failure.into_response(&self.request_id),
            };
            let (parts, body) = response.into_parts();
            let etag = parts.headers.get(ETAG).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
            ApiReply { status: parts.status.as_u16(), etag, body: bounded(body).await }
        })
    }

    fn admits(
        &self,
        endpoint: &'static Description,
        ids: Vec<Id>,
        named: Option<EntityId>,
    ) -> Calling<'_, bool> {
        Box::pin(async move {
            let Some(route) = self.endpoints.route_of(endpoint) else { return false };
            let organization_id = ids.first().copied().map(OrganizationId::from_raw);
            let Some(authority) = self.authority(organization_id).await else { return false };
            route.handler.admits((&self.app, &authority), &ids, named, self.address).await
        })
    }

    fn holds(
        &self,
        organization_id: OrganizationId,
        permission: &'static str,
        workspace_id: WorkspaceId,
    ) -> Calling<'_, bool> {
        Box::pin(async move {
            let (caller, target) =
                (self.authority(Some(organization_id)).await, Target::Workspace(workspace_id));
            let member = caller.as_ref().and_then(|caller| caller.member.as_ref());
            let permission = Permission::named(permission);
            member
                .zip(permission)
                .is_some_and(|(member, permission)| require(member.grants(), permission, target).is_ok())
        })
    }

    fn simulates(&self) -> bool {
        self.door.planes.simulates()
    }

    fn airflow(&self, call: AirflowCall) -> Calling<'_, Result<AirflowReply, Problem>> {
        Box::pin(async move {
            let told = |failure: Failure| Problem::new(failure.status.as_u16(), failure.message());
            self.ask_airflow(call).await.map_err(told)
        })
    }

    fn airflow_admits(&self, namespace: String, asked: Vec<AirflowQuestion>) -> Calling<'_, Vec<bool>> {
        Box::pin(async move {
            let count = asked.len();
            let judged = self.judge_for_airflow(&namespace, asked).await;
            judged.unwrap_or_else(|_| vec![false; count])
        })
    }

    fn is_owner(&self, organization_id: OrganizationId) -> Calling<'_, bool> {
        Box::pin(async move {
            let caller = self.authority(Some(organization_id)).await;
            let member = caller.as_ref().and_then(|caller| caller.member.as_ref());
            member.is_some_and(|member| member.grants().is_owner())
        })
    }
}

/// A body in memory; of a stream, the whole lines at its end.
async fn bounded(body: Body) -> Vec<u8> {
    let mut stream = match body {
        Body::Whole(bytes) => return bytes.to_vec(),
        Body::Streamed(stream) => stream.into_data_stream(),
    };
    let mut read = Vec::new();
    while let Some(Ok(chunk)) = stream.next().await {
        read.extend_from_slice(&chunk);
        if read.len() > 2 * MOST_STREAMED {
            let from = read.len() - MOST_STREAMED;
            let line =
                read[from..].iter().position(|byte| *byte == b'\n').map_or(read.len(), |at| from + at + 1);
            read.drain(..line);
        }
    }
    read
}

pub(super) fn asset_response(asset: &'static podium_console::Asset) -> Response<Body> {
    let mut response = Response::new(whole(asset.content));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Lets a browser keep a response as a file, and nothing else.
fn set_file(headers: &mut HeaderMap, name: &'static str) {
    let disposition = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    headers.extend(disposition.map(|disposition| (CONTENT_DISPOSITION, disposition)));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers::set_no_store(headers);
}

fn response(answer: Answer) -> Response<Body> {
    let (status, media_type, text) = match answer {
        Answer::Page { status, html } => (status, "text/html; charset=utf-8", html),
        Answer::Json(json) => (200, "application/json", json),
        Answer::File { name, media_type, text } => {
            let mut response = Response::new(whole(text));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
            set_file(response.headers_mut(), name);
            return response;
        }
        Answer::Redirect { to } => {
            let mut response = Response::new(whole(""));
            *response.status_mut() = StatusCode::SEE_OTHER;
            response.headers_mut().extend(HeaderValue::from_str(&to).map(|to| (LOCATION, to)));
            headers::set_no_store(response.headers_mut());
            return response;
        }
    };
    let mut response = Response::new(whole(text));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers::set_no_store(headers);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(media_type));
    headers.insert(CONTENT_SECURITY_POLICY, POLICY);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    // Without it a browser would not send the origin of a form.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    response
}
