//! Binds a function to an endpoint. The order of a request's judgement is written here, once:
//! token (401), rate (429), membership (404), address and permission (403, 404), query and body (400), the function.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::Response;
use http::header::IF_NONE_MATCH;
use podium_api::endpoint::{Joined, Permitted, SignedIn};
use podium_api::path::PathParams;
use podium_api::{Description, Endpoint, Id, Method, Reply, ReplyKind};
use podium_app::authority::Authority;
use podium_app::{Call, Cx, Error};
use tokio::sync::watch;

use crate::admission::{Admission, Caller, Guarded, Unguarded};
use crate::agents::ForAgents;
use crate::answers::Answers;
use crate::body::Body;
use crate::errors::Failure;
use crate::incoming::{Checks, Incoming, Input};
use crate::respond::{Answered, Sent, Written};
use crate::settings::Settings;

/// How often a request is judged again because its caller's rights changed while it ran.
const ATTEMPTS: usize = 4;

pub(crate) type Answer = Result<Response<Body>, Failure>;

/// Answers the requests of one endpoint. What it does is compiled once for each kind of admission, not for each endpoint:
/// only a [`Start`] knows an endpoint's types.
pub(crate) enum Handler {
    Anyone(Unguarded),
    Agents(ForAgents),
    SignedIn(Gate<SignedIn>),
    Joined(Gate<Joined>),
    Permitted(Gate<Permitted>),
    #[cfg(test)]
    Panicking,
}

impl Handler {
    pub(crate) async fn handle(&self, incoming: Incoming) -> Answer {
        match self {
            Self::Anyone(handler) => handler.handle(incoming).await,
            Self::Agents(handler) => handler.handle(incoming).await,
            Self::SignedIn(gate) => gate.handle(incoming).await,
            Self::Joined(gate) => gate.handle(incoming).await,
            Self::Permitted(gate) => gate.handle(incoming).await,
            #[cfg(test)]
            Self::Panicking => panic!("the inside of this server"),
        }
    }
}

/// The function behind an endpoint at work, and the writing of what it answers.
pub(crate) type Running = Pin<Box<dyn Future<Output = Result<Sent, Failure>> + Send>>;
/// Calls the function behind an endpoint with the ids of the path and the input. What is wrong with the input goes before
/// the failure to admit the caller.
pub(crate) type Start<C> =
    Box<dyn Fn(Result<C, Failure>, &[Id], Input) -> Result<Running, Failure> + Send + Sync>;

/// What every bound endpoint shares.
pub(crate) struct Env {
    pub(crate) settings: Settings,
    pub(crate) answers: Answers,
    /// Says that the server stops: answers without an end come to theirs.
    pub(crate) stopping: watch::Sender<bool>,
}

/// An endpoint, and what was made ready for its requests.
pub(crate) struct Bound {
    pub(crate) endpoint: &'static Description,
    pub(crate) checks: Checks,
    pub(crate) env: Arc<Env>,
}

/// What the function behind an endpoint is given of its caller.
type Context<E> = <<E as Endpoint>::Admission as Admission>::Context;
/// What the function behind an endpoint answers with.
type Value<E> = <<E as Endpoint>::Reply as Answered>::Value;

/// Binds a function to an endpoint.
pub(crate) fn bind<E, F, Fut>(checks: Checks, env: Arc<Env>, function: F) -> Handler
where
    E: Endpoint<Admission: Admission, Reply: Answered>,
    F: Fn(Context<E>, Call<E>) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value<E>, Error>> + Send + 'static,
{
    let bound = Bound { endpoint: E::DESCRIPTION, checks, env: Arc::clone(&env) };
    let start: Start<Context<E>> = Box::new(move |context, ids, input| {
        let (query, body) = input.typed()?;
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

fn failed(kind: ReplyKind, error: Error) -> Result<Sent, Failure> {
    match error {
        Error::Replay(replay) => Ok(Sent::Written(Written::again(kind, *replay))),
        error => Err(error.into()),
    }
}

/// The judgement of a request, and of what came of it.
pub(crate) struct Gate<A: Guarded> {
    required: A::Required,
    bound: Bound,
    start: Start<Cx<A::Proof>>,
}

impl<A: Guarded> Gate<A> {
    pub(crate) fn new(bound: Bound, start: Start<Cx<A::Proof>>) -> Self {
        Self { required: A::required(bound.endpoint), bound, start }
    }

    async fn handle(&self, mut incoming: Incoming) -> Answer {
        let token = incoming.bearer()?.to_owned();
        let organization_id = A::organization(&incoming.ids);
        let app = incoming.app.clone();
        for attempt in 0..ATTEMPTS {
            let authority = app.authority(&token, organization_id, incoming.now).await?;
            let is_first = attempt == 0;
            if is_first {
                app.rate_limits.count(authority.credential.subject_id, self.bound.endpoint.method)?;
            }
            match self.judge(&mut incoming, (authority, is_first)).await {
                Err(failure) if failure.is_stale => app.forget_caller(&token, organization_id),
                answer => return answer,
            }
        }
        Err(Error::STALE.into())
    }

    async fn judge(&self, incoming: &mut Incoming, (authority, is_first): (Arc<Authority>, bool)) -> Answer {
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
        let may_remember = endpoint.method == Method::Get && !endpoint.live && admitted.is_ok();
        let generation = incoming.app.db.generation().filter(|_| may_remember);
        let token_id = authority.credential.token_id;
        if let Some(generation) = generation
            && let Some(answer) = env.answers.find(incoming.question(token_id), generation, incoming.now)
        {
            return Ok(answer.into_response(known.as_ref()));
        }
        let (admitted, audited_body) = match admitted {
            Err(error) => (Err(error.into()), None),
            Ok(proof) => {
                let read = incoming.read(checks, &env.settings).await;
                let admitted = match (read.input, proof) {
                    (Err(failure), _) => Err(failure),
                    (Ok(input), Some(proof)) => Ok((Ok(proof), input)),
                    (Ok(input), None) => {
                        let admitted = A::admit(caller, required, &incoming.ids, read.target).await;
                        Ok((admitted.map_err(Failure::from), input))
                    }
                };
                (admitted, read.audited_body)
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
            Ok(Sent::Written(written)) if let Some(generation) = generation => {
                env.answers.remember(incoming.question(token_id), generation, incoming.now, written);
            }
            _ => {}
        }
        answer.map(|sent| sent.into_response(known.as_ref()))
    }
}
