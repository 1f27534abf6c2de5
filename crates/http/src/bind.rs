//! Binds a function to an endpoint. The order of a request's judgement is written here, once:
//! token (401), rate (429), membership (404), address and permission (403, 404), query and body (400), the function.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use http::header::IF_NONE_MATCH;
use http::{HeaderName, HeaderValue, Response};
use podium_api::endpoint::{MembersOnly, Permitted, SignedIn};
use podium_api::path::PathParams;
use podium_api::{Description, Endpoint, EntityId, Id, Method, Reply, ReplyKind};
use podium_app::authority::Authority;
use podium_app::{App, Call, Cx, Error};
use tokio::sync::watch;

use crate::admission::{Admission, Caller, Guarded, PublicHandler};
use crate::agents::AgentHandler;
use crate::body::Body;
use crate::checks::LazyChecks;
use crate::errors::Failure;
use crate::incoming::{Incoming, Input};
use crate::respond::{ReplyOutput, WriteReply, WrittenReply};
use crate::response_cache::{MadeFrom, ResponseCache};
use crate::settings::Settings;

/// Names the operation that a call has started.
const OPERATION: HeaderName = HeaderName::from_static("podium-operation");

/// How often a request is judged again because its caller's rights changed while it ran.
const ATTEMPTS: usize = 4;

pub(crate) type HttpResult = Result<Response<Body>, Failure>;

/// Handles the requests of one endpoint. It is compiled once for each kind of admission and not for each endpoint: only
/// [`Start`] depends on the types of an endpoint.
pub(crate) enum Handler {
    Public(PublicHandler),
    Agents(AgentHandler),
    SignedIn(GuardedHandler<SignedIn>),
    MembersOnly(GuardedHandler<MembersOnly>),
    Permitted(GuardedHandler<Permitted>),
    #[cfg(test)]
    Fake(Box<FakeHandler>),
}

#[cfg(test)]
type FakeHandler = dyn Fn(Incoming) -> Pin<Box<dyn Future<Output = HttpResult> + Send>> + Send + Sync;

impl Handler {
    /// Handles a request of a caller whose rights have been read: part of a plan, in its transaction.
    pub(crate) async fn handle_joined(&self, mut incoming: Incoming, caller: Arc<Authority>) -> HttpResult {
        match self {
            Self::MembersOnly(handler) => handler.judge(&mut incoming, (caller, true)).await,
            Self::Permitted(handler) => handler.judge(&mut incoming, (caller, true)).await,
            _ => Err(Error::Internal("only calls of members can be planned".into()).into()),
        }
    }

    /// Whether a caller whose rights have been read would be admitted, with these ids in the path and this target in the
    /// body.
    pub(crate) async fn admits(
        &self,
        caller: (&App, &Arc<Authority>),
        ids: &[Id],
        named: Option<EntityId>,
        address: IpAddr,
    ) -> bool {
        match self {
            Self::SignedIn(handler) => handler.admits(caller, ids, named, address).await,
            Self::MembersOnly(handler) => handler.admits(caller, ids, named, address).await,
            Self::Permitted(handler) => handler.admits(caller, ids, named, address).await,
            _ => false,
        }
    }

    pub(crate) async fn handle(&self, incoming: Incoming) -> HttpResult {
        match self {
            Self::Public(handler) => handler.handle(incoming).await,
            Self::Agents(handler) => handler.handle(incoming).await,
            Self::SignedIn(handler) => handler.handle(incoming).await,
            Self::MembersOnly(handler) => handler.handle(incoming).await,
            Self::Permitted(handler) => handler.handle(incoming).await,
            #[cfg(test)]
            Self::Fake(handler) => handler(incoming).await,
        }
    }
}

/// The running function behind an endpoint, including the serialization of its reply.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<ReplyOutput, Failure>> + Send>>;
/// Calls the function behind an endpoint with the ids of the path and the input. Errors in the input take precedence over
/// a failed admission.
pub(crate) type Start<C> =
    Box<dyn Fn(Result<C, Failure>, &[Id], Input) -> Result<Running, Failure> + Send + Sync>;

/// What every bound endpoint shares.
pub(crate) struct Env {
    pub(crate) settings: Settings,
    pub(crate) response_cache: ResponseCache,
    /// Signals that the server stops: open-ended responses end.
    pub(crate) stopping: watch::Sender<bool>,
}

/// An endpoint, and everything prepared for its requests.
pub(crate) struct Bound {
    pub(crate) endpoint: &'static Description,
    pub(crate) checks: LazyChecks,
    pub(crate) env: Arc<Env>,
}

/// What the function behind an endpoint is given of its caller.
type Context<E> = <<E as Endpoint>::Admission as Admission>::Context;
/// What the function behind an endpoint returns.
type Value<E> = <<E as Endpoint>::Reply as WriteReply>::Value;

pub(crate) fn bind<E, F, Fut>(env: Arc<Env>, function: F) -> Handler
where
    E: Endpoint<Admission: Admission, Reply: WriteReply>,
    F: Fn(Context<E>, Call<E>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value<E>, Error>> + Send + 'static,
{
    let (endpoint, checks) = (E::DESCRIPTION, LazyChecks::of(E::DESCRIPTION));
    let bound = Bound { endpoint, checks, env: Arc::clone(&env) };
    let start: Start<Context<E>> = Box::new(move |context, ids, input| {
        let (query, body) = input.typed::<E>()?;
        let call = Call { path: PathParams::from_ids(ids), query, body };
        let (running, env) = (function(context?, call), Arc::clone(&env));
        Ok(Box::pin(async move {
            match running.await {
                Ok(value) => E::Reply::write(value, &env).await,
                Err(error) => failed(E::Reply::KIND, error),
            }
        }))
    });
    E::Admission::before(bound, start)
}

fn failed(kind: ReplyKind, error: Error) -> Result<ReplyOutput, Failure> {
    match error {
        Error::Replay(replay) => Ok(ReplyOutput::WrittenReply(WrittenReply::again(kind, *replay))),
        error => Err(error.into()),
    }
}

/// The judgement of a request, and of what came of it.
pub(crate) struct GuardedHandler<A: Guarded> {
    required: A::Required,
    bound: Bound,
    start: Start<Cx<A::Proof>>,
}

impl<A: Guarded> GuardedHandler<A> {
    pub(crate) fn new(bound: Bound, start: Start<Cx<A::Proof>>) -> Self {
        Self { required: A::required(bound.endpoint), bound, start }
    }

    async fn handle(&self, mut incoming: Incoming) -> HttpResult {
        let credential = incoming.credential()?;
        let organization_id = A::organization(&incoming.ids);
        let app = incoming.app.clone();
        for attempt in 0..ATTEMPTS {
            let authority = credential.authority(&app, organization_id, incoming.now).await?;
            let is_first = attempt == 0;
            if is_first {
                credential.count(&app, &authority, self.bound.endpoint.method)?;
            }
            match self.judge(&mut incoming, (authority, is_first)).await {
                Err(failure) if failure.is_stale => credential.forget(&app, organization_id),
                answer => return answer,
            }
        }
        Err(Error::STALE.into())
    }

    async fn admits(
        &self,
        (app, authority): (&App, &Arc<Authority>),
        ids: &[Id],
        named: Option<EntityId>,
        address: IpAddr,
    ) -> bool {
        let caller = Caller { app, authority, is_first: true };
        A::enter(authority, address).is_ok() && A::admit(caller, &self.required, ids, named).await.is_ok()
    }

    async fn judge(
        &self,
        incoming: &mut Incoming,
        (authority, is_first): (Arc<Authority>, bool),
    ) -> HttpResult {
        let Self { required, bound, start } = self;
        let Bound { endpoint, checks, env } = bound;
        let app = incoming.app.clone();
        let caller = Caller { app: &app, authority: &authority, is_first };
        let admitted = match A::enter(&authority, incoming.address) {
            Ok(()) if endpoint.target_in_body.is_some() => Ok(None),
            Ok(()) => A::admit(caller, required, &incoming.ids, None).await.map(Some),
            Err(error) => Err(error),
        };
        if let Err(error) = &admitted
            && error.is_stale()
        {
            return Err(Error::STALE.into());
        }
        let known =
            incoming.parts.headers.get(IF_NONE_MATCH).filter(|_| endpoint.method == Method::Get).cloned();
        let may_remember =
            endpoint.method == Method::Get && !endpoint.live && admitted.is_ok() && incoming.is_told_by_uri();
        let data = incoming.app.generation().filter(|_| may_remember);
        let made_from = data.map(|data| MadeFrom { data, rights: authority.generation() });
        let token_id = authority.credential.token_id;
        if let Some(made_from) = made_from
            && let Some(answer) = env.response_cache.find(incoming.key_ref(token_id), made_from, incoming.now)
        {
            return Ok(answer.into_response(known.as_ref()));
        }
        let (admitted, audited_body) = match admitted {
            Err(error) => (Err(error.into()), None),
            Ok(proof) => {
                let checked = incoming.check(checks.get(), &env.settings, endpoint.access).await;
                let admitted = match (checked.input, proof) {
                    (Err(failure), _) => Err(failure),
                    (Ok(input), Some(proof)) => Ok((Ok(proof), input)),
                    (Ok(input), None) => {
                        let admitted = A::admit(caller, required, &incoming.ids, checked.target).await;
                        Ok((admitted.map_err(Failure::from), input))
                    }
                };
                (admitted, checked.audited_body)
            }
        };
        let (request, wrong) = match incoming.request(endpoint, audited_body.clone()) {
            Ok(request) => (request, None),
            Err(failure) => (incoming.request_without_key(endpoint, audited_body), Some(failure)),
        };
        let cx = Cx::new(app.clone(), Arc::clone(&authority), request, !is_first);
        let answer = match admitted {
            Err(failure) => Err(failure),
            Ok((admitted, input)) => {
                let context = match (admitted, wrong) {
                    (Err(failure), _) | (Ok(_), Some(failure)) => Err(failure),
                    (Ok(proof), None) => Ok(A::prove(cx.clone(), proof)),
                };
                match start(context, &incoming.ids, input) {
                    Ok(running) => running.await,
                    Err(failure) => Err(failure),
                }
            }
        };
        if let Err(failure) = answer.as_ref()
            && failure.is_stale
        {
            return answer.map(|sent| sent.into_response(None));
        }
        cx.confirm().await?;
        match &answer {
            Err(failure) if failure.is_refusal && endpoint.audited => {
                cx.record_refusal(failure.status.as_u16()).await?;
            }
            Ok(ReplyOutput::WrittenReply(written)) if let Some(made_from) = made_from => {
                env.response_cache.remember(incoming.key_ref(token_id), made_from, incoming.now, written);
            }
            _ => {}
        }
        let mut response = answer?.into_response(known.as_ref());
        if let Some(id) = cx.operation().and_then(|id| HeaderValue::from_str(id.as_str()).ok()) {
            response.headers_mut().insert(OPERATION, id);
        }
        Ok(response)
    }
}
