//! Forwards one request to an environment. The order of checks is defined here, once: the caller (401, 404, 429, 403
//! by address), the form of the path (400), paths closed to everybody (403), whether the environment is up (503), the
//! permission (403), the page that it comes from (403); then it is forwarded.

use http::header::{CONTENT_LENGTH, LOCATION, UPGRADE};
use http::{Method, Response, StatusCode};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use podium_api::enums::DeploymentStatus;
use podium_app::Error;
use podium_app::front_door::{
    AdmittedCaller, DeploymentRef, ForwardedRequest, PresentedCredential, bearer_for_three, header_for_two,
};
use podium_dataplane::{Line, WebServer};
use podium_domain::Refusal;
use podium_domain::airflow::{AirflowPath, Decision, Rule, closed, find, judge};

use super::upstream::{BODY_LIMIT, Outgoing};
use super::{FrontDoor, HttpResult, InboundRequest, Place, headers, isolation};
use crate::body::{Body, RequestBody};
use crate::errors::Failure;
use crate::incoming::query_pairs;

const USER_HEADER: &str = "x-podium-user";
/// What is escaped in a query: everything but what never needs it.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

struct Judged {
    path: AirflowPath,
    query: Option<String>,
    door: WebServer,
    is_write: bool,
}

impl FrontDoor {
    /// Checks a request and forwards it. `rest` is the path below the environment's own, as it was sent.
    pub(super) async fn forward(
        &self,
        (inbound, body): (InboundRequest, RequestBody),
        place: Place,
        shown: PresentedCredential<'_>,
        deployment: Option<DeploymentRef>,
        rest: &str,
    ) -> HttpResult {
        let counts_as = counted(&inbound.parts.method, rest);
        let caller = self.app.admit(shown, deployment, inbound.address, counts_as, inbound.now).await?;
        let judged = match self.judged(&inbound, &place, shown, &caller, rest).await {
            Ok(judged) => judged,
            Err(failure) => {
                if failure.is_refusal && inbound.is_unsafe() {
                    self.app.record_forwarded(&caller, passed(&inbound, failure.status, true)).await?;
                }
                return Err(failure);
            }
        };
        self.send_on((inbound, body), place, caller, judged).await
    }

    async fn judged(
        &self,
        inbound: &InboundRequest,
        place: &Place,
        shown: PresentedCredential<'_>,
        caller: &AdmittedCaller,
        rest: &str,
    ) -> Result<Judged, Failure> {
        let (method, sent) = (&inbound.parts.method, &inbound.parts.headers);
        if sent.contains_key(UPGRADE) {
            let message =
                "The front door forwards HTTP and no other protocol: send the request without `Upgrade`.";
            return Err(Failure::server(StatusCode::NOT_IMPLEMENTED, message));
        }
        let length = sent.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if length.is_some_and(|length| length > BODY_LIMIT) {
            return Err(too_large());
        }
        let path = AirflowPath::parse(rest)?;
        if let Some(why) = closed(&path) {
            let message = format!("This path is closed: {why}");
            return Err(Refusal::Forbidden(message).into());
        }
        let door = self.open_door(caller).await?;
        let Some((rule, dag)) = find(door.line, method.as_str(), &path) else {
            return Err(unknown(method, &path));
        };
        let query = inbound.parts.uri.query().unwrap_or_default();
        let pairs = query_pairs(query);
        let narrowed = match judge(rule, dag, &pairs, &caller.rights())? {
            Decision::Unchanged => None,
            Decision::Narrowed(pairs) => Some(pairs),
            Decision::IfTagged(tagged) => {
                let tags = self.tags_of(&door, caller, &tagged.dag_id, inbound).await?;
                tagged.settle(&tags)?;
                None
            }
        };
        if let (PresentedCredential::Pass(_), Place::Own { origin }) = (shown, place) {
            isolation::check(sent, method, rule.is_write(), origin)?;
        }
        let query = sent_query(rule, query, &pairs, narrowed);
        Ok(Judged { query, path, door, is_write: rule.is_write() })
    }

    /// The address of the environment, if it is up.
    async fn open_door(&self, caller: &AdmittedCaller) -> Result<WebServer, Failure> {
        let away = |message: &'static str, seconds| {
            Err(Failure::later(StatusCode::SERVICE_UNAVAILABLE, message, seconds))
        };
        if caller.at.get().status() == DeploymentStatus::Hibernating {
            let message = "The deployment is hibernating: wake it by overriding its hibernation, or wait for its schedule.";
            return away(message, 60);
        }
        let id = caller.deployment().id();
        let shown = self.planes.web_server(&caller.at.location()).await;
        if matches!(shown, Ok(None))
            && let Some(node) = self.app.other_node_of(id).await?
        {
            return Err(Error::OtherNode(node).into());
        }
        match shown {
            Ok(Some(door)) => Ok(door),
            Ok(None) if caller.at.get().status() == DeploymentStatus::Creating => {
                away("The deployment is still being created: try again once it is HEALTHY.", 5)
            }
            Ok(None) => {
                let message = "The environment's web server is not up: it may be starting or restarting. The deployment's \
                               status and its reason say more.";
                away(message, 10)
            }
            Err(error) => {
                tracing::warn!(%error, %id, "the data plane returned no address for an environment");
                away("The data plane does not respond: try again in a few seconds.", 5)
            }
        }
    }

    async fn send_on(
        &self,
        (inbound, body): (InboundRequest, RequestBody),
        place: Place,
        caller: AdmittedCaller,
        judged: Judged,
    ) -> HttpResult {
        let Judged { path, query, door, is_write } = judged;
        let namespace = caller.deployment().namespace().to_owned();
        let public = self.app.public_url();
        let authority = match &place {
            Place::Console => public.authority().to_owned(),
            Place::Own { origin } => origin.split("://").last().unwrap_or_default().to_owned(),
        };
        let mut target = format!("/airflow/{namespace}{}", path.encoded());
        if let Some(query) = query.filter(|query| !query.is_empty()) {
            target.push('?');
            target.push_str(&query);
        }
        let mut sent = headers::for_environment(&inbound, &authority, public.scheme());
        add_identity(&mut sent, &door, &caller.name(), caller.rights().airflow_role(), inbound.now)?;
        let method = inbound.parts.method.clone();
        let mut record = passed(&inbound, StatusCode::OK, false);
        let watch = self.app.watch(&caller.authority, caller.session);
        let outgoing = Outgoing { method, target, headers: sent, body, watch };
        let (app, upstreams) = (self.app.clone(), self.upstreams.clone());
        let work = async move {
            let who = (caller.deployment().id(), caller.authority.credential.subject_id);
            let answer = upstreams.send(who, &door, outgoing).await;
            if is_write {
                record.status =
                    answer.as_ref().map_or_else(|failure| failure.status, Response::status).as_u16();
                app.record_forwarded(&caller, record).await?;
            }
            let mut response = believed(answer?, door.line)?;
            headers::for_client(response.headers_mut(), &place, &namespace, &door, &authority);
            Ok::<Response<Body>, Failure>(response)
        };
        if !is_write {
            return work.await;
        }
        // The audit record is written even if the client disconnects.
        tokio::spawn(work).await.unwrap_or_else(|error| {
            tracing::error!(%error, request_id = inbound.request_id, "a request to an environment was not completed");
            Err(Failure::server(
                StatusCode::INTERNAL_SERVER_ERROR,
                "The request was not completed: check whether it had an effect.",
            ))
        })
    }
}

pub(super) fn add_identity(
    sent: &mut http::HeaderMap,
    door: &WebServer,
    name: &str,
    role: podium_domain::airflow::AirflowRole,
    now: podium_api::Timestamp,
) -> Result<(), Failure> {
    let key = door.key.reveal();
    let (header, value) = match door.line {
        Line::Three => ("authorization", format!("Bearer {}", bearer_for_three(key, name, role, now))),
        Line::Two => (USER_HEADER, header_for_two(key, name, role, now)),
    };
    let mut value = http::HeaderValue::from_str(&value).map_err(|_| {
        Failure::server(StatusCode::INTERNAL_SERVER_ERROR, "Your name cannot be sent in a header.")
    })?;
    value.set_sensitive(true);
    sent.insert(header, value);
    Ok(())
}

/// The query to forward: exactly the one that was checked.
fn sent_query(
    rule: &Rule,
    sent: &str,
    pairs: &[(String, String)],
    narrowed: Option<Vec<(String, String)>>,
) -> Option<String> {
    match narrowed {
        Some(pairs) => Some(written(&pairs)),
        None if rule.is_judged_by_query() => Some(written(pairs)),
        None => Some(sent.to_owned()),
    }
}

/// Encodes a query unambiguously: a space is `%20`, since not every decoder accepts `+`.
fn written(pairs: &[(String, String)]) -> String {
    let pair = |(name, value): &(String, String)| {
        format!("{}={}", utf8_percent_encode(name, ESCAPED), utf8_percent_encode(value, ESCAPED))
    };
    pairs.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// An environment that rejects our identity has another key than the front door; its callers cannot fix that.
fn believed(response: Response<Body>, line: Line) -> HttpResult {
    let location =
        response.headers().get(LOCATION).and_then(|location| location.to_str().ok()).unwrap_or_default();
    let is_sent_to_sign_in =
        line == Line::Two && response.status().is_redirection() && location.contains("/login/");
    if response.status() != StatusCode::UNAUTHORIZED && !is_sent_to_sign_in {
        return Ok(response);
    }
    tracing::error!("an environment rejects the tokens of the front door");
    let message = "The environment does not recognize the control plane: its operator can restart it.";
    Err(Failure::later(StatusCode::BAD_GATEWAY, message, 30))
}

/// How the rate limits count a request; static files of pages are not counted.
fn counted(method: &Method, rest: &str) -> Option<podium_api::Method> {
    match *method {
        Method::GET | Method::HEAD if rest.starts_with("/static/") => None,
        Method::GET | Method::HEAD => Some(podium_api::Method::Get),
        Method::DELETE => Some(podium_api::Method::Delete),
        _ => Some(podium_api::Method::Post),
    }
}

fn passed(inbound: &InboundRequest, status: StatusCode, is_refusal: bool) -> ForwardedRequest {
    ForwardedRequest {
        now: inbound.now,
        address: inbound.address,
        user_agent: inbound.user_agent(),
        method: inbound.parts.method.to_string(),
        path: inbound.path().to_owned(),
        request_id: inbound.request_id.clone(),
        status: status.as_u16(),
        is_refusal,
    }
}

fn unknown(method: &Method, path: &AirflowPath) -> Failure {
    let message = format!(
        "{method} {} is not allowed: the front door forwards only the Airflow paths that it knows.",
        path.encoded()
    );
    Refusal::Forbidden(message).into()
}

fn too_large() -> Failure {
    let message = format!("The body is too large: at most {BODY_LIMIT} bytes are forwarded.");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}
