//! Binds a function to an endpoint. The order of a request's judgement is written here, once:
//! token (401), rate (429), membership (404), address and permission (403, 404), query and body (400), the function.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::Response;
use http::header::IF_NONE_MATCH;
use podium_api::{Description, Endpoint, Method, Reply};
use podium_app::authority::Authority;
use podium_app::{Call, Cx, Error};
use tokio::sync::watch;

use crate::admission::{Admission, Caller, Guarded};
use crate::body::Body;
use crate::errors::Failure;
use crate::incoming::{Checks, Incoming};
use crate::respond::{ReplyOutput, WriteReply, WrittenReply};
use crate::response_cache::ResponseCache;
use crate::settings::Settings;

/// How often a request is judged again because its caller's rights changed while it ran.
const ATTEMPTS: usize = 4;

pub(crate) type HttpResult = Result<Response<Body>, Failure>;
/// Handles the requests of one endpoint.
pub(crate) type Handler =
    Box<dyn Fn(Incoming) -> Pin<Box<dyn Future<Output = HttpResult> + Send>> + Send + Sync>;

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
    pub(crate) checks: Checks,
    pub(crate) env: Arc<Env>,
}

/// What the function behind an endpoint is given of its caller.
type Context<E> = <<E as Endpoint>::Admission as Admission>::Context;
/// What the function behind an endpoint returns.
type Value<E> = <<E as Endpoint>::Reply as WriteReply>::Value;

/// The function behind an endpoint, including the serialization of its reply.
pub(crate) trait Run<C, E: Endpoint>: Clone + Send + Sync + 'static {
    fn run(&self, context: C, call: Call<E>) -> impl Future<Output = Result<ReplyOutput, Failure>> + Send;
}

impl<C, E, F, Fut> Run<C, E> for F
where
    E: Endpoint,
    F: Fn(C, Call<E>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<ReplyOutput, Failure>> + Send,
{
    fn run(&self, context: C, call: Call<E>) -> impl Future<Output = Result<ReplyOutput, Failure>> + Send {
        self(context, call)
    }
}

/// Binds a function to an endpoint.
pub(crate) fn bind<E, F, Fut>(checks: Checks, env: Arc<Env>, function: F) -> Handler
where
    E: Endpoint<Admission: Admission, Reply: WriteReply>,
    F: Fn(Context<E>, Call<E>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Value<E>, Error>> + Send + 'static,
{
    let bound = Bound { endpoint: E::DESCRIPTION, checks, env: Arc::clone(&env) };
    let run = move |context: Context<E>, call: Call<E>| {
        let (running, env) = (function(context, call), Arc::clone(&env));
        async move {
            match running.await {
                Ok(value) => E::Reply::write(value, &env).await,
                Err(Error::Replay(replay)) => {
                    Ok(ReplyOutput::WrittenReply(WrittenReply::again(E::Reply::KIND, *replay)))
                }
                Err(error) => Err(error.into()),
            }
        }
    };
    E::Admission::before::<E, _>(bound, run)
}

/// The judgement of a request, and of what came of it.
pub(crate) fn guarded<E, F>(bound: Bound, function: F) -> Handler
where
    E: Endpoint<Admission: Guarded>,
    F: Run<Cx<<E::Admission as Guarded>::Proof>, E>,
{
    let guard = Arc::new((E::Admission::required(bound.endpoint), bound));
    Box::new(move |mut incoming| {
        let (guard, function) = (Arc::clone(&guard), function.clone());
        Box::pin(async move {
            let token = incoming.bearer()?.to_owned();
            let organization_id = E::Admission::organization(&incoming.ids);
            let app = incoming.app.clone();
            for attempt in 0..ATTEMPTS {
                let authority = app.authority(&token, organization_id, incoming.now).await?;
                let is_first = attempt == 0;
                if is_first {
                    app.rate_limits.count(authority.credential.subject_id, guard.1.endpoint.method)?;
                }
                let answer = judge::<E, F>(&guard, &function, &mut incoming, (authority, is_first));
                match answer.await {
                    Err(failure) if failure.is_stale => app.forget_caller(&token, organization_id),
                    answer => return answer,
                }
            }
            Err(Error::STALE.into())
        })
    })
}

async fn judge<E, F>(
    (required, bound): &(<E::Admission as Guarded>::Required, Bound),
    function: &F,
    incoming: &mut Incoming,
    (authority, is_first): (Arc<Authority>, bool),
) -> HttpResult
where
    E: Endpoint<Admission: Guarded>,
    F: Run<Cx<<E::Admission as Guarded>::Proof>, E>,
{
    let Bound { endpoint, checks, env } = bound;
    let app = incoming.app.clone();
    let caller = Caller { app: &app, authority: &authority, is_first };
    let admitted = match E::Admission::enter(&authority, incoming.address) {
        Ok(()) if endpoint.target_in_body.is_some() => Ok(None),
        Ok(()) => E::Admission::admit(caller, required, &incoming.ids, None).await.map(Some),
        Err(error) => Err(error),
    };
    if let Err(error) = &admitted
        && error.is_stale()
    {
        return Err(Error::STALE.into());
    }
    let known = incoming.parts.headers.get(IF_NONE_MATCH).filter(|_| endpoint.method == Method::Get).cloned();
    let may_remember = endpoint.method == Method::Get && !endpoint.live && admitted.is_ok();
    let generation = incoming.app.db.generation().filter(|_| may_remember);
    let token_id = authority.credential.token_id;
    if let Some(generation) = generation
        && let Some(answer) = env.response_cache.find(incoming.key_ref(token_id), generation, incoming.now)
    {
        return Ok(answer.into_response(known.as_ref()));
    }
    let (admitted, audited_body) = match admitted {
        Err(error) => (Err(error.into()), None),
        Ok(proof) => {
            let decoded = incoming.decode::<E>(checks, &env.settings).await;
            let admitted = match (decoded.input, proof) {
                (Err(failure), _) => Err(failure),
                (Ok(input), Some(proof)) => Ok((proof, input)),
                (Ok(input), None) => {
                    let admitted = E::Admission::admit(caller, required, &incoming.ids, decoded.target).await;
                    admitted.map(|proof| (proof, input)).map_err(Into::into)
                }
            };
            (admitted, decoded.audited_body)
        }
    };
    let (request, wrong) = match incoming.request(endpoint, audited_body.clone()) {
        Ok(request) => (request, None),
        Err(failure) => (incoming.request_without_key(endpoint, audited_body), Some(failure)),
    };
    let cx = Cx::new(app.clone(), Arc::clone(&authority), request, !is_first);
    let answer = match (admitted, wrong) {
        (Err(failure), _) | (Ok(_), Some(failure)) => Err(failure),
        (Ok((proof, (query, body))), None) => {
            let call = Call { path: incoming.path::<E>(), query, body };
            function.run(E::Admission::prove(cx.clone(), proof), call).await
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
        Ok(ReplyOutput::WrittenReply(written)) if let Some(generation) = generation => {
            env.response_cache.remember(incoming.key_ref(token_id), generation, incoming.now, written);
        }
        _ => {}
    }
    answer.map(|sent| sent.into_response(known.as_ref()))
}
