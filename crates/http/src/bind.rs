//! Binds a function to an operation. The order of a request's judgement is written here, once:
//! token (401), rate (429), membership (404), address and permission (403, 404), query and body (400), the function.

use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use http::{HeaderValue, Response};
use podium_api::operation::{Anyone, Input, Joined, Permitted, SignedIn};
use podium_api::path::PathParams;
use podium_api::{
    Access, DeploymentId, EntityId, Id, Lines, Method, Operation, OrganizationId, Reply, Spec, WorkspaceId,
};
use podium_app::authority::{Authority, Member};
use podium_app::organizations::AuditExport;
use podium_app::visit::Visit;
use podium_app::{App, Call, Cx, Error};
use podium_domain::{Permission, Refusal, Scope, Target, authorize};

use tokio::sync::watch;

use crate::answers::Answers;
use crate::body::{self, Body};
use crate::errors::Failure;
use crate::incoming::{Checks, Incoming};
use crate::respond::{Sent, Written};
use crate::settings::Settings;

/// How often a request is judged again because its caller's rights changed while it ran.
const ATTEMPTS: usize = 4;

pub(crate) type Answer = Result<Response<Body>, Failure>;
pub(crate) type Endpoint =
    Box<dyn Fn(Incoming) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// What every bound operation shares.
pub(crate) struct Env {
    pub(crate) settings: Settings,
    pub(crate) answers: Answers,
    /// Says that the server stops: answers without an end come to theirs.
    pub(crate) stopping: watch::Sender<bool>,
}

/// How callers of a kind of operation are admitted, and what that proves.
pub(crate) trait Admission: 'static {
    type Proof: Clone + Send + Sync + 'static;
    /// The organization that is called, by the ids of the path.
    fn organization(ids: &[Id]) -> Option<OrganizationId>;
    /// Whether the caller may knock at all.
    fn enter(authority: &Authority, address: IpAddr) -> Result<(), Error>;
    /// Whether the caller may do this; `named` is the target where the body names it.
    fn admit(
        caller: Caller<'_>,
        spec: &'static Spec,
        ids: &[Id],
        named: Option<EntityId>,
    ) -> impl Future<Output = Result<Self::Proof, Error>> + Send;
    fn prove(cx: Cx<()>, proof: Self::Proof) -> Cx<Self::Proof>;
}

impl Admission for SignedIn {
    type Proof = ();

    fn organization(_: &[Id]) -> Option<OrganizationId> {
        None
    }

    fn enter(_: &Authority, _: IpAddr) -> Result<(), Error> {
        Ok(())
    }

    async fn admit(_: Caller<'_>, _: &'static Spec, _: &[Id], _: Option<EntityId>) -> Result<(), Error> {
        Ok(())
    }

    fn prove(cx: Cx<()>, (): ()) -> Cx<()> {
        cx
    }
}

impl Admission for Joined {
    type Proof = Scope;

    fn organization(ids: &[Id]) -> Option<OrganizationId> {
        ids.first().copied().map(OrganizationId::from_raw)
    }

    fn enter(authority: &Authority, address: IpAddr) -> Result<(), Error> {
        member(authority)?.admit_address(address)
    }

    async fn admit(
        caller: Caller<'_>,
        _: &'static Spec,
        _: &[Id],
        _: Option<EntityId>,
    ) -> Result<Scope, Error> {
        Ok(Scope::for_member(member(caller.authority)?.organization_id))
    }

    fn prove(cx: Cx<()>, scope: Scope) -> Cx<Scope> {
        cx.proven(scope)
    }
}

impl Admission for Permitted {
    type Proof = Scope;

    fn organization(ids: &[Id]) -> Option<OrganizationId> {
        ids.first().copied().map(OrganizationId::from_raw)
    }

    fn enter(authority: &Authority, address: IpAddr) -> Result<(), Error> {
        member(authority)?.admit_address(address)
    }

    async fn admit(
        caller: Caller<'_>,
        spec: &'static Spec,
        ids: &[Id],
        named: Option<EntityId>,
    ) -> Result<Scope, Error> {
        let member = member(caller.authority)?;
        let (permission, on) = required(spec, ids, named)
            .ok_or_else(|| Error::Internal(format!("{} has no target", spec.id)))?;
        let target = match on {
            Required::Organization => Target::Organization,
            Required::Workspace(id) => Target::Workspace(id),
            Required::Deployment(id) => {
                let workspace_id = caller.app.workspace_of(caller.authority, caller.is_first, id).await?;
                let workspace_id = workspace_id.ok_or_else(|| Refusal::not_found("deployment"))?;
                Target::Deployment { id, workspace_id }
            }
        };
        let proof = |permission| authorize(member.organization_id, &member.grants, permission, target);
        let weaker = spec.makers_permission.and_then(Permission::named);
        match (proof(permission), weaker) {
            // The scope proves the weaker permission only: the function asks who made the thing.
            (Err(Refusal::Forbidden(message)), Some(weaker)) => {
                Ok(proof(weaker).map_err(|_| Refusal::Forbidden(message))?)
            }
            (proven, _) => Ok(proven?),
        }
    }

    fn prove(cx: Cx<()>, scope: Scope) -> Cx<Scope> {
        cx.proven(scope)
    }
}

/// Who calls.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    app: &'a App,
    authority: &'a Authority,
    /// Whether this is the first judgement of the request; later ones read the caller again.
    is_first: bool,
}

fn member(authority: &Authority) -> Result<&Member, Error> {
    authority.member.as_ref().ok_or_else(|| Refusal::not_found("organization").into())
}

/// What an operation takes its permission on.
enum Required {
    Organization,
    Workspace(WorkspaceId),
    Deployment(DeploymentId),
}

/// The permission that an operation takes, and on what: the permission's name says which id it is.
fn required(spec: &Spec, ids: &[Id], named: Option<EntityId>) -> Option<(Permission, Required)> {
    let Access::Permission(name) = spec.access else { return None };
    let permission = Permission::named(name)?;
    let in_path = |param: &str| {
        let id = ids.get(spec.path_params.iter().position(|name| *name == param)?)?;
        Some(EntityId::from_raw(*id))
    };
    let id = |param: &str| if spec.target_in_body == Some(param) { named } else { in_path(param) };
    let on = match name.split('.').next()? {
        "organization" => Required::Organization,
        "workspace" => Required::Workspace(id("workspaceId")?.as_workspace()),
        "deployment" => Required::Deployment(id("deploymentId")?.as_deployment()),
        _ => return None,
    };
    Some((permission, on))
}

/// Binds an operation that needs a token.
pub(crate) fn bind<A, P, Q, B, R, F, Fut>(
    operation: &Operation<A, P, Q, B, R>,
    spec: &'static Spec,
    checks: Checks,
    env: Arc<Env>,
    function: F,
) -> Endpoint
where
    A: Admission,
    P: PathParams,
    Q: Input,
    B: Input,
    R: Reply,
    F: Fn(Cx<A::Proof>, Call<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<R, Error>> + Send + 'static,
{
    debug_assert_eq!(operation.spec.id, spec.id);
    guarded::<A, P, Q, B, _, _>(spec, checks, env, move |cx, call| {
        let running = function(cx, call);
        async move {
            match running.await {
                Ok(reply) => Written::new(&reply).map(Sent::Written),
                Err(Error::Replay(replay)) => Ok(Sent::Written(Written::again(R::KIND, *replay))),
                Err(error) => Err(error.into()),
            }
        }
    })
}

/// Binds an operation that answers with a stream of lines.
pub(crate) fn bind_lines<P, Q, B, F, Fut>(
    operation: &Operation<Permitted, P, Q, B, Lines>,
    spec: &'static Spec,
    checks: Checks,
    env: Arc<Env>,
    function: F,
) -> Endpoint
where
    P: PathParams,
    Q: Input,
    B: Input,
    F: Fn(Cx<Scope>, Call<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<AuditExport, Error>> + Send + 'static,
{
    debug_assert_eq!(operation.spec.id, spec.id);
    guarded::<Permitted, P, Q, B, _, _>(spec, checks, env, move |cx, call| {
        let running = function(cx, call);
        async move {
            let mut export = running.await?;
            // The first lines are read before the status is sent: whatever can be refused is refused properly.
            let first = export.next().await.transpose()?;
            let rest = stream::unfold(export, |mut export| async {
                let next = export.next().await?;
                Some((next.map(Bytes::from).map_err(body::Broken::new), export))
            });
            let first = stream::iter(first.map(|lines| Ok(Bytes::from(lines))));
            let mut response = Response::new(body::stream(first.chain(rest)));
            let media = HeaderValue::from_static("application/octet-stream");
            response.headers_mut().insert(CONTENT_TYPE, media);
            Ok(Sent::Streamed(response))
        }
    })
}

/// Binds an operation that anybody may call.
pub(crate) fn bind_public<B, R, F, Fut>(
    operation: &Operation<Anyone, (), podium_api::Nothing, B, R>,
    spec: &'static Spec,
    checks: Checks,
    env: Arc<Env>,
    function: F,
) -> Endpoint
where
    B: Input,
    R: Reply,
    F: Fn(Visit, Call<(), podium_api::Nothing, B>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<R, Error>> + Send + 'static,
{
    debug_assert_eq!(operation.spec.id, spec.id);
    let checks = Arc::new(checks);
    Box::new(move |mut incoming| {
        let (checks, env, function) = (Arc::clone(&checks), Arc::clone(&env), function.clone());
        Box::pin(async move {
            let decoded = incoming.decode(&checks, &env.settings).await;
            let request = incoming.request(spec, decoded.audited_body)?;
            let (query, body) = decoded.input?;
            let bearer = incoming.optional_bearer();
            let visit = Visit { app: incoming.app.clone(), request, bearer };
            let reply = function(visit, Call { path: (), query, body }).await?;
            Ok(Written::new(&reply)?.into_response(None))
        })
    })
}

/// The judgement of a request, and of what came of it.
pub(crate) fn guarded<A, P, Q, B, F, Fut>(
    spec: &'static Spec,
    checks: Checks,
    env: Arc<Env>,
    function: F,
) -> Endpoint
where
    A: Admission,
    P: PathParams,
    Q: Input,
    B: Input,
    F: Fn(Cx<A::Proof>, Call<P, Q, B>) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Result<Sent, Failure>> + Send + 'static,
{
    let checks = Arc::new(checks);
    Box::new(move |mut incoming| {
        let (checks, env, function) = (Arc::clone(&checks), Arc::clone(&env), function.clone());
        Box::pin(async move {
            let token = incoming.bearer()?.to_owned();
            let organization_id = A::organization(&incoming.ids);
            let app = incoming.app.clone();
            for attempt in 0..ATTEMPTS {
                let authority = app.authority(&token, organization_id, incoming.now).await?;
                let is_first = attempt == 0;
                if is_first {
                    app.rate_limits.count(authority.credential.subject_id, spec.method)?;
                }
                let caller = (authority, is_first);
                let answer =
                    judge::<A, P, Q, B, F, Fut>(spec, &checks, &env, &function, &mut incoming, caller);
                match answer.await {
                    Err(failure) if failure.is_stale => app.forget_caller(&token, organization_id),
                    answer => return answer,
                }
            }
            Err(Error::STALE.into())
        })
    })
}

async fn judge<A, P, Q, B, F, Fut>(
    spec: &'static Spec,
    checks: &Checks,
    env: &Env,
    function: &F,
    incoming: &mut Incoming,
    (authority, is_first): (Arc<Authority>, bool),
) -> Answer
where
    A: Admission,
    P: PathParams,
    Q: Input,
    B: Input,
    F: Fn(Cx<A::Proof>, Call<P, Q, B>) -> Fut,
    Fut: Future<Output = Result<Sent, Failure>>,
{
    let app = incoming.app.clone();
    let caller = Caller { app: &app, authority: &authority, is_first };
    let admitted = match A::enter(&authority, incoming.address) {
        Ok(()) if spec.target_in_body.is_some() => Ok(None),
        Ok(()) => A::admit(caller, spec, &incoming.ids, None).await.map(Some),
        Err(error) => Err(error),
    };
    if let Err(error) = &admitted
        && error.is_stale()
    {
        return Err(Error::STALE.into());
    }
    let known = incoming.parts.headers.get(IF_NONE_MATCH).filter(|_| spec.method == Method::Get).cloned();
    let may_remember = spec.method == Method::Get && !spec.live && admitted.is_ok();
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
            let decoded = incoming.decode::<Q, B>(checks, &env.settings).await;
            let admitted = match (decoded.input, proof) {
                (Err(failure), _) => Err(failure),
                (Ok(input), Some(proof)) => Ok((proof, input)),
                (Ok(input), None) => {
                    let admitted = A::admit(caller, spec, &incoming.ids, decoded.target).await;
                    admitted.map(|proof| (proof, input)).map_err(Into::into)
                }
            };
            (admitted, decoded.audited_body)
        }
    };
    let (request, wrong) = match incoming.request(spec, audited_body.clone()) {
        Ok(request) => (request, None),
        Err(failure) => (incoming.request_without_key(spec, audited_body), Some(failure)),
    };
    let cx = Cx::new(app.clone(), Arc::clone(&authority), request, !is_first);
    let answer = match (admitted, wrong) {
        (Err(failure), _) | (Ok(_), Some(failure)) => Err(failure),
        (Ok((proof, (query, body))), None) => {
            let call = Call { path: P::from_ids(&incoming.ids), query, body };
            function(A::prove(cx.clone(), proof), call).await
        }
    };
    if let Err(failure) = answer.as_ref()
        && failure.is_stale
    {
        return answer.map(|sent| sent.into_response(None));
    }
    cx.confirm().await?;
    match &answer {
        Err(failure) if failure.is_refusal && spec.audited => {
            cx.record_refusal(failure.status.as_u16()).await?;
        }
        Ok(Sent::Written(written)) if let Some(generation) = generation => {
            env.answers.remember(incoming.question(token_id), generation, incoming.now, written);
        }
        _ => {}
    }
    answer.map(|sent| sent.into_response(known.as_ref()))
}
