//! How callers of an endpoint are admitted, and what that proves.

use std::future::Future;
use std::net::IpAddr;

use podium_api::endpoint::{Anyone, Joined, Permitted, SignedIn};
use podium_api::{Description, EntityId, Id, OrganizationId};
use podium_app::authority::{Authority, Member};
use podium_app::visit::Visit;
use podium_app::{App, Cx, Error, Scope};
use podium_domain::requirement::{Named, RequiredOn};
use podium_domain::{Refusal, Requirement, Target};

use crate::bind::{Answer, Bound, Gate, Handler, Start};
use crate::incoming::Incoming;

/// How callers of an endpoint are admitted.
pub(crate) trait Admission: Sized + 'static {
    /// What the function behind the endpoint is given of its caller.
    type Context: Send + 'static;
    /// Puts the admission before the function.
    fn before(bound: Bound, start: Start<Self::Context>) -> Handler;
}

/// Admission of callers with a token: where it is in doubt, they are judged again.
pub(crate) trait Guarded: Sized + 'static {
    /// The handler that judges so.
    const HANDLER: fn(Gate<Self>) -> Handler;
    type Proof: Clone + Send + Sync + 'static;
    /// What is required of callers: worked out once, when the endpoint is bound.
    type Required: Send + Sync + 'static;
    fn required(endpoint: &'static Description) -> Self::Required;
    /// The organization that is called, by the ids of the path.
    fn organization(ids: &[Id]) -> Option<OrganizationId>;
    /// Whether the caller may knock at all.
    fn enter(authority: &Authority, address: IpAddr) -> Result<(), Error>;
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
        A::HANDLER(Gate::new(bound, start))
    }
}

impl Guarded for SignedIn {
    const HANDLER: fn(Gate<Self>) -> Handler = Handler::SignedIn;
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

impl Guarded for Joined {
    const HANDLER: fn(Gate<Self>) -> Handler = Handler::Joined;
    type Proof = Scope;
    type Required = ();

    fn required(_: &'static Description) {}

    fn organization(ids: &[Id]) -> Option<OrganizationId> {
        ids.first().copied().map(OrganizationId::from_raw)
    }

    fn enter(authority: &Authority, address: IpAddr) -> Result<(), Error> {
        member(authority)?.admit_address(address)
    }

    async fn admit(caller: Caller<'_>, (): &(), _: &[Id], _: Option<EntityId>) -> Result<Scope, Error> {
        Ok(member(caller.authority)?.membership.scope())
    }

    fn prove(cx: Cx<()>, scope: Scope) -> Cx<Scope> {
        cx.proven(scope)
    }
}

impl Guarded for Permitted {
    const HANDLER: fn(Gate<Self>) -> Handler = Handler::Permitted;
    type Proof = Scope;
    type Required = Requirement;

    fn required(endpoint: &'static Description) -> Requirement {
        Requirement::of(endpoint).unwrap_or_else(|| panic!("{} takes no permission", endpoint.id))
    }

    fn organization(ids: &[Id]) -> Option<OrganizationId> {
        ids.first().copied().map(OrganizationId::from_raw)
    }

    fn enter(authority: &Authority, address: IpAddr) -> Result<(), Error> {
        member(authority)?.admit_address(address)
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
        let unnamed = || Error::Internal(format!("nothing names the target of {}", required.permission));
        let target = match required.on {
            RequiredOn::Organization => Target::Organization,
            RequiredOn::Workspace(place) => Target::Workspace(id(place).ok_or_else(unnamed)?.as_workspace()),
            RequiredOn::Deployment(place) => {
                let id = id(place).ok_or_else(unnamed)?.as_deployment();
                let workspace_id = caller.app.workspace_of(caller.authority, caller.is_first, id).await?;
                let workspace_id = workspace_id.ok_or_else(|| Refusal::not_found("deployment"))?;
                Target::Deployment { id, workspace_id }
            }
        };
        let proof = |permission| member.membership.authorize(permission, target);
        match (proof(required.permission), required.of_makers) {
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
    pub(crate) app: &'a App,
    pub(crate) authority: &'a Authority,
    /// Whether this is the first judgement of the request; later ones read the caller again.
    pub(crate) is_first: bool,
}

fn member(authority: &Authority) -> Result<&Member, Error> {
    authority.member.as_ref().ok_or_else(|| Refusal::not_found("organization").into())
}

impl Admission for Anyone {
    type Context = Visit;

    fn before(bound: Bound, start: Start<Visit>) -> Handler {
        Handler::Anyone(Unguarded { bound, start })
    }
}

/// Answers everybody.
pub(crate) struct Unguarded {
    bound: Bound,
    start: Start<Visit>,
}

impl Unguarded {
    pub(crate) async fn handle(&self, mut incoming: Incoming) -> Answer {
        let read = incoming.read(&self.bound.checks, &self.bound.env.settings).await;
        let request = incoming.request(self.bound.endpoint, read.audited_body)?;
        let input = read.input?;
        let visit = Visit { app: incoming.app.clone(), request, bearer: incoming.optional_bearer() };
        let running = (self.start)(Ok(visit), &incoming.ids, input)?;
        Ok(running.await?.into_response(None))
    }
}
