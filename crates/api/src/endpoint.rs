//! Endpoints: everything about an endpoint is declared once.
//!
//! A type such as [`crate::teams::Create`] names the types of path, query, body and reply, and how callers are
//! admitted; its [`Description`] holds the rest: method, path, id, permission. [`endpoints!`](crate::endpoints)
//! declares both. The router binds a function to the type, the OpenAPI document is written from it, the typed client
//! calls it, and the coverage tests walk all of them ([`crate::ENDPOINTS`]).

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::FieldError;
use crate::enums::EventType;
use crate::path::PathParams;
use crate::reply::{Reply, ReplyKind};

/// An endpoint: a type that is never a value.
pub trait Endpoint: Send + Sync + 'static {
    /// How callers are admitted: [`Permitted`], or one of the [`Open`] ones.
    type Admission;
    /// The ids in the path.
    type Path: PathParams;
    /// The query.
    type Query: Input;
    /// The body.
    type Body: Input;
    /// The reply.
    type Reply: Reply;
    /// Its description, without its types.
    const DESCRIPTION: &'static Description;

    // Whoever calls what follows need not compile it again: `endpoints!` writes it out for each endpoint.

    /// Reads a query that was checked.
    fn read_query(checked: Value) -> Result<Self::Query, Vec<FieldError>>;
    /// Reads a body that was checked.
    fn read_body(checked: Value) -> Result<Self::Body, Vec<FieldError>>;
    /// Reads the body of a reply.
    fn read_reply(json: &[u8]) -> serde_json::Result<<Self::Reply as Reply>::Body>;
    /// Makes the schema of the query.
    fn query_schema(generator: &mut SchemaGenerator) -> Schema;
    /// Makes the schema of the body.
    fn body_schema(generator: &mut SchemaGenerator) -> Schema;
    /// Makes the schema of the reply.
    fn reply_schema(generator: &mut SchemaGenerator) -> Schema;
}

/// The input types of endpoints: the query, and the body.
pub trait Input: DeserializeOwned + JsonSchema + Serialize + Send + 'static {}
impl<T: DeserializeOwned + JsonSchema + Serialize + Send + 'static> Input for T {}

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
    /// [`Self::Get`], as an endpoint is declared with it.
    pub const GET: Self = Self::Get;
    /// [`Self::Post`], as an endpoint is declared with it.
    pub const POST: Self = Self::Post;
    /// [`Self::Delete`], as an endpoint is declared with it.
    pub const DELETE: Self = Self::Delete;

    /// As on the request line.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }
}

/// Who may call an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Anybody: the request carries its own proof (a password, an invite link).
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

/// Admits callers who hold a permission.
pub enum Permitted {}

/// Admits callers whatever they hold.
pub trait Open {
    /// Whom it admits.
    const ACCESS: Access;
}

macro_rules! open {
    ($($(#[$doc:meta])* $name:ident: $access:ident)+) => {$(
        $(#[$doc])*
        pub enum $name {}

        impl Open for $name {
            const ACCESS: Access = Access::$access;
        }
    )+};
}

open! {
    /// Admits everybody.
    Anyone: Public
    /// Admits callers with a valid token.
    SignedIn: Token
    /// Admits members of the organization in the path.
    MembersOnly: Member
    /// Admits remote agents of the deployment in the path.
    ByAgents: Agent
}

/// The description of an endpoint: everything except its types, and their schemas.
#[derive(Clone, Copy)]
pub struct Description {
    /// The id of the operation in the OpenAPI document, unique.
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
    /// A weaker permission that is enough for resources that the caller created; the function checks the creator.
    pub makers_permission: Option<&'static str>,
    /// Whether a call leaves an audit record: not where the caller is not authenticated yet, or it would repeat the logs.
    pub audited: bool,
    /// The event of a call that changes something in an organization.
    pub event: Option<EventType>,
    /// Whether the reply contains a secret that must not be stored in plain text.
    pub secret_reply: bool,
    /// Whether the reply is never repeated, from the response cache or under an `Idempotency-Key`: it depends on more
    /// than the database, or may hold secrets.
    pub live: bool,
    /// Whether a call can start an operation, which a header of the response then names.
    pub starts_operation: bool,
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

/// No event, which has a reason.
#[doc(hidden)]
pub const fn no_event_because(reason: &str) -> Option<EventType> {
    assert!(!reason.is_empty(), "say why there is no event");
    None
}

/// Makes the schema of a type.
pub type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

impl Description {
    /// Describes an endpoint; [`endpoints!`](crate::endpoints) is the one that calls this, and adds the rest.
    pub const fn new<E: Endpoint>(
        method: Method,
        id: &'static str,
        path: &'static str,
        access: Access,
    ) -> Self {
        Self {
            id,
            method,
            path,
            tag: "",
            summary: "",
            access,
            makers_permission: None,
            audited: !matches!(method, Method::Get),
            event: None,
            secret_reply: false,
            live: false,
            starts_operation: false,
            target_in_body: None,
            also: &[],
            reply_kind: <E::Reply as Reply>::KIND,
            path_params: <E::Path as PathParams>::NAMES,
            query: E::query_schema,
            body: E::body_schema,
            reply: E::reply_schema,
        }
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
