//! The operation constant: everything about an operation, said once.
//!
//! A constant such as [`crate::teams::CREATE`] names the method, path, id, permission and the types of path, query,
//! body and reply. The router binds a function to it, the OpenAPI document is written from it, the typed client calls
//! it, and the coverage tests walk all of them ([`crate::OPERATIONS`]). The type parameters carry the types to the
//! places that need them; [`Spec`] is the same constant with the types turned into schemas.

use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::path::PathParams;
use crate::reply::{Reply, ReplyKind};

/// An HTTP method of the API.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// A read.
    Get,
    /// A create, an update or an action.
    Post,
    /// A removal.
    Delete,
}

impl Method {
    /// As on the request line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// Who may call an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody: the request proves itself by what it carries (a password, an invite link).
    Public,
    /// Anybody with a valid token.
    Token,
    /// A member of the organization in the path.
    Member,
    /// A remote agent, with an agent token of the deployment in the path.
    Agent,
    /// A member of the organization in the path who holds this permission on the target in the path.
    Permission(&'static str),
}

/// Marks operations of [`Access::Public`].
pub struct Anyone;
/// Marks operations of [`Access::Token`].
pub struct SignedIn;
/// Marks operations of [`Access::Member`].
pub struct Joined;
/// Marks operations of [`Access::Agent`].
pub struct ByAgents;
/// Marks operations of [`Access::Permission`].
pub struct Permitted;

/// The untyped part of an operation.
#[derive(Clone, Copy)]
pub struct Spec {
    /// The operation id, unique.
    pub id: &'static str,
    /// The method.
    pub method: Method,
    /// The path below the version prefix, with `{parameters}`.
    pub path: &'static str,
    /// The resource it belongs to.
    pub tag: &'static str,
    /// One line for people.
    pub summary: &'static str,
    /// Who may call it.
    pub access: Access,
    /// A weaker permission that admits callers to what they made themselves.
    pub makers_permission: Option<&'static str>,
    /// Whether a call leaves an audit record.
    pub audited: bool,
    /// Whether the reply holds a secret that must not be kept in clear.
    pub secret_reply: bool,
    /// Whether the reply is never given again, from memory or under an `Idempotency-Key`: it depends on more than the
    /// database, or may hold secrets.
    pub live: bool,
    /// The field of the body that names the target of the permission, where the path does not.
    pub target_in_body: Option<&'static str>,
    /// Statuses it can answer beyond those that follow from its access and types.
    pub also: &'static [u16],
    /// How the reply is sent.
    pub reply_kind: ReplyKind,
    /// Names of the path parameters.
    pub path_params: &'static [&'static str],
    /// Schema of the query.
    pub query: SchemaOf,
    /// Schema of the body.
    pub body: SchemaOf,
    /// Schema of the reply.
    pub reply: SchemaOf,
}

/// Makes the schema of a type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// An operation with its types: `A`ccess marker, `P`ath, `Q`uery, `B`ody, `R`eply.
pub struct Operation<A, P, Q, B, R> {
    /// The untyped part.
    pub spec: Spec,
    types: PhantomData<(A, P, Q, B, R)>,
}

/// The input types of operations: the query, and the body.
pub trait Input: DeserializeOwned + JsonSchema + Serialize + Send + 'static {}
impl<T: DeserializeOwned + JsonSchema + Serialize + Send + 'static> Input for T {}

impl<A, P: PathParams, Q: Input, B: Input, R: Reply> Operation<A, P, Q, B, R> {
    const fn new(method: Method, id: &'static str, path: &'static str, access: Access) -> Self {
        let spec = Spec {
            id,
            method,
            path,
            tag: "",
            summary: "",
            access,
            makers_permission: None,
            audited: !matches!(method, Method::Get),
            secret_reply: false,
            live: false,
            target_in_body: None,
            also: &[],
            reply_kind: R::KIND,
            path_params: P::NAMES,
            query: Q::json_schema,
            body: SchemaGenerator::subschema_for::<B>,
            reply: SchemaGenerator::subschema_for::<R::Body>,
        };
        Self { spec, types: PhantomData }
    }

    /// Says what it belongs to and what it does.
    pub const fn about(mut self, tag: &'static str, summary: &'static str) -> Self {
        self.spec.tag = tag;
        self.spec.summary = summary;
        self
    }

    /// Says which statuses it can answer beyond those that follow from its access and types.
    pub const fn also(mut self, statuses: &'static [u16]) -> Self {
        self.spec.also = statuses;
        self
    }

    /// Says which field of the body names the target of the permission.
    pub const fn target_in_body(mut self, field: &'static str) -> Self {
        self.spec.target_in_body = Some(field);
        self
    }

    /// Says that the reply holds a secret.
    pub const fn secret_reply(mut self) -> Self {
        self.spec.secret_reply = true;
        self
    }

    /// Says that the reply depends on more than the database, or may hold secrets.
    pub const fn live(mut self) -> Self {
        self.spec.live = true;
        self
    }

    /// Says that calls leave no audit record: nobody has been authenticated yet, or it would say nothing but the logs.
    pub const fn not_audited(mut self) -> Self {
        self.spec.audited = false;
        self
    }
}

impl<P: PathParams, Q: Input, B: Input, R: Reply> Operation<Permitted, P, Q, B, R> {
    /// A read that needs a permission.
    pub const fn get(id: &'static str, path: &'static str, permission: &'static str) -> Self {
        Self::new(Method::Get, id, path, Access::Permission(permission))
    }

    /// A create, an update or an action that needs a permission.
    pub const fn post(id: &'static str, path: &'static str, permission: &'static str) -> Self {
        Self::new(Method::Post, id, path, Access::Permission(permission))
    }

    /// Says which weaker permission admits callers to what they made themselves; the function sees to that.
    pub const fn or_of_its_maker(mut self, permission: &'static str) -> Self {
        self.spec.makers_permission = Some(permission);
        self
    }

    /// A removal that needs a permission.
    pub const fn delete(id: &'static str, path: &'static str, permission: &'static str) -> Self {
        Self::new(Method::Delete, id, path, Access::Permission(permission))
    }
}

impl<P: PathParams, Q: Input, B: Input, R: Reply> Operation<SignedIn, P, Q, B, R> {
    /// A call that needs a valid token only.
    pub const fn with_token(method: Method, id: &'static str, path: &'static str) -> Self {
        Self::new(method, id, path, Access::Token)
    }
}

impl<P: PathParams, Q: Input, B: Input, R: Reply> Operation<Joined, P, Q, B, R> {
    /// A call that members of the organization in the path may make, whatever they hold.
    pub const fn for_members(method: Method, id: &'static str, path: &'static str) -> Self {
        Self::new(method, id, path, Access::Member)
    }
}

impl<P: PathParams, Q: Input, B: Input, R: Reply> Operation<ByAgents, P, Q, B, R> {
    /// A call that remote agents of the deployment in the path may make.
    pub const fn by_agents(method: Method, id: &'static str, path: &'static str) -> Self {
        Self::new(method, id, path, Access::Agent)
    }
}

impl<P: PathParams, Q: Input, B: Input, R: Reply> Operation<Anyone, P, Q, B, R> {
    /// A call that needs nothing.
    pub const fn public(method: Method, id: &'static str, path: &'static str) -> Self {
        Self::new(method, id, path, Access::Public)
    }
}

/// No query, or no body.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Nothing;

impl<'de> serde::Deserialize<'de> for Nothing {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

impl JsonSchema for Nothing {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Nothing".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        false.into()
    }
}
