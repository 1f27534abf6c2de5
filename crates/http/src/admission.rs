//! How callers of an endpoint are admitted, and the proof that results.

use std::future::Future;
use std::net::IpAddr;

use podium_api::endpoint::{Anyone, MembersOnly, Permitted, SignedIn};
use podium_api::{Description, EntityId, Id, OrganizationId};
use podium_app::authority::{Authority, Member};
use podium_app::public_cx::PublicCx;
use podium_app::{App, Cx, Error, Scope};
use podium_domain::requirement::{Named, RequiredOn};
use podium_domain::{Refusal, Requirement, Target};

use crate::bind::{Bound, GuardedHandler, Handler, HttpResult, Start};
use crate::incoming::Incoming;

/// How callers of an endpoint are admitted.
pub(crate) trait Admission: Sized + 'static {
    /// The context that the function behind the endpoint receives.
    type Context: Send + 'static;
    /// Wraps the function in the admission.
    fn before(bound: Bound, start: Start<Self::Context>) -> Handler;
}

/// Admission of callers with a token; they are authorized again if their cached rights may be stale.
pub(crate) trait Guarded: Sized + 'static {
    /// The handler of endpoints with this admission.
    const HANDLER: fn(GuardedHandler<Self>) -> Handler;
    type Proof: Clone + Send + Sync + 'static;
    /// What is required of callers: resolved once, when the endpoint is bound.
    type Required: Send + Sync + 'static;
    fn required(endpoint: &'static Description) -> Self::Required;
    /// The organization of the request, from the ids in the path.
    fn organization(ids: &[Id]) -> Option<OrganizationId> {
        ids.first().copied().map(OrganizationId::from_raw)
    }
    /// Whether the caller is a member and its address is allowed.
    fn enter(authority: &Authority, address: IpAddr) -> Result<(), Error> {
        member(authority)?.admit_address(address)
    }
    /// Whether the caller may do this; `named` is the target where the body names it.
    fn admit(
        caller: Caller<'_>,
        required: &Self::Required,
        ids: &[Id],
        named: Option<EntityId>,
    ) -> impl Future<Output = Result<Self::Proof, Error>> + Send;
    fn prove(cx: Cx<()>, proof: Self::Proof) -> Cx<Self::Proof>;
}

impl<A: Guarded> Admission for A {
    type Context = Cx<A::Proof>;

    fn before(bound: Bound, start: Start<Self::Context>) -> Handler {
        A::HANDLER(GuardedHandler::new(bound, start))
    }
}

impl Guarded for SignedIn {
    const HANDLER: fn(GuardedHandler<Self>) -> Handler = Handler::SignedIn;
    type Proof = ();
    type Required = ();

    fn required(_: &'static Description) {}

    fn organization(_: &[Id]) -> Option<OrganizationId> {
        None
    }

    fn enter(_: &Authority, _: IpAddr) -> Result<(), Error> {
        Ok(())
    }

    async fn admit(_: Caller<'_>, (): &(), _: &[Id], _: Option<EntityId>) -> Result<(), Error> {
        Ok(())
    }

    fn prove(cx: Cx<()>, (): ()) -> Cx<()> {
        cx
    }
}

impl Guarded for MembersOnly {
    const HANDLER: fn(GuardedHandler<Self>) -> Handler = Handler::MembersOnly;
    type Proof = Scope;
    type Required = ();

    fn required(_: &'static Description) {}

    async fn admit(caller: Caller<'_>, (): &(), _: &[Id], _: Option<EntityId>) -> Result<Scope, Error> {
        Ok(member(caller.authority)?.membership.scope())
    }

    fn prove(cx: Cx<()>, scope: Scope) -> Cx<Scope> {
        cx.proven(scope)
    }
}

impl Guarded for Permitted {
    const HANDLER: fn(GuardedHandler<Self>) -> Handler = Handler::Permitted;
    type Proof = Scope;
    type Required = Requirement;

    fn required(endpoint: &'static Description) -> Requirement {
        Requirement::of(endpoint).unwrap_or_else(|| panic!("{} has no permission", endpoint.id))
    }

    async fn admit(
        caller: Caller<'_>,
        required: &Requirement,
        ids: &[Id],
        named: Option<EntityId>,
    ) -> Result<Scope, Error> {
        let member = member(caller.authority)?;
        let id = |place| match place {
            Named::InPath(index) => ids.get(index).copied().map(EntityId::from_raw),
            Named::InBody => named,
        };
        let unnamed =
            || Error::Internal(format!("the request does not name the target of {}", required.permission));
        let target = match required.on {
            RequiredOn::Organization => Target::Organization,
            RequiredOn::Workspace(place) => Target::Workspace(id(place).ok_or_else(unnamed)?.as_workspace()),
            RequiredOn::Deployment(place) => {
                let id = id(place).ok_or_else(unnamed)?.as_deployment();
                let likely = caller.app.likely_workspace_of(caller.authority, id).filter(|_| caller.is_first);
                if let Some(workspace_id) = likely
                    && let Ok(scope) = member
                        .membership
                        .authorize(required.permission, Target::Deployment { id, workspace_id })
                {
                    return Ok(scope);
                }
                let workspace_id = caller.app.workspace_of(caller.authority, caller.is_first, id).await?;
                let workspace_id = workspace_id.ok_or_else(|| Refusal::not_found("deployment"))?;
                Target::Deployment { id, workspace_id }
            }
        };
        let proof = |permission| member.membership.authorize(permission, target);
        match (proof(required.permission), required.of_creators) {
            // The scope proves only the weaker permission: the function checks who created the resource.
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

#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) app: &'a App,
    pub(crate) authority: &'a Authority,
    /// Whether this is the first attempt to authorize the request; later ones read the caller again.
    pub(crate) is_first: bool,
}

fn member(authority: &Authority) -> Result<&Member, Error> {
    authority.member.as_ref().ok_or_else(|| Refusal::not_found("organization").into())
}

impl Admission for Anyone {
    type Context = PublicCx;

    fn before(bound: Bound, start: Start<PublicCx>) -> Handler {
        Handler::Public(PublicHandler { bound, start })
    }
}

/// Handles requests from anyone.
pub(crate) struct PublicHandler {
    bound: Bound,
    start: Start<PublicCx>,
}

impl PublicHandler {
    pub(crate) async fn handle(&self, mut incoming: Incoming) -> HttpResult {
        let Bound { endpoint, checks, env } = &self.bound;
        let checked = incoming.check(checks.get(), &env.settings, endpoint.access).await;
        let request = incoming.request(endpoint, checked.audited_body)?;
        let input = checked.input?;
        let cx = PublicCx { app: incoming.app.clone(), request, bearer: incoming.optional_bearer() };
        let running = (self.start)(Ok(cx), &incoming.ids, input)?;
        Ok(running.await?.into_response(None))
    }
}
