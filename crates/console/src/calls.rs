//! Calls of the API, made in this process on behalf of the person who looks at a page.
//!
//! Every page reads and changes through the endpoints, so that the console can do exactly what the API lets the same person do.

use std::future::Future;
use std::pin::Pin;

use podium_api::json::BodyOf;
use podium_api::path::PathParams;
use podium_api::{
    Description, Endpoint, EntityId, ErrorBody, FieldError, Id, Nothing, OrganizationId, WorkspaceId,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::airflow::{AirflowCall, AirflowQuestion, AirflowReply};

/// What a method of [`Calls`] returns.
pub type Calling<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes calls for one person. Implemented where the endpoints are bound to their functions.
pub trait Calls: Send + Sync {
    fn call(&self, call: ApiCall) -> Calling<'_, ApiReply>;
    /// Whether the person would be admitted to an endpoint with these ids in its path, and this target in its body.
    fn admits(
        &self,
        endpoint: &'static Description,
        ids: Vec<Id>,
        named: Option<EntityId>,
    ) -> Calling<'_, bool>;
    /// Whether the person holds a permission on a workspace: for endpoints that decide on what they find.
    fn holds(
        &self,
        organization_id: OrganizationId,
        permission: &'static str,
        workspace_id: WorkspaceId,
    ) -> Calling<'_, bool>;
    /// Sends a request to the Airflow of a deployment through the front door: checked, forwarded and recorded as any other
    /// request of this person. All of one visit together have a time limit.
    fn airflow(&self, call: AirflowCall) -> Calling<'_, Result<AirflowReply, Problem>>;
    /// Which of these requests to the Airflow of a deployment the person may make.
    fn airflow_admits(&self, namespace: String, asked: Vec<AirflowQuestion>) -> Calling<'_, Vec<bool>>;
    /// Whether deployments without a cluster are simulated: nothing real runs.
    fn simulates(&self) -> bool;
    /// Whether the person owns an organization. Some changes are the owners' alone, whatever permissions others hold.
    fn is_owner(&self, organization_id: OrganizationId) -> Calling<'_, bool>;
}

/// A call of the API. Query and body are the endpoint's own types, as JSON: its schema, which they are checked against like
/// those of any request, is about JSON, too.
pub struct ApiCall {
    pub endpoint: &'static Description,
    pub ids: Vec<Id>,
    pub query: Value,
    /// The body; `null` if there is none.
    pub body: Value,
    /// The `If-Match` header.
    pub if_match: Option<String>,
}

impl ApiCall {
    /// A call without a query and a body.
    pub fn to<E: Endpoint>(path: &E::Path) -> Self {
        let (query, body) = (Value::Null, Value::Null);
        Self { endpoint: E::DESCRIPTION, ids: path.ids(), query, body, if_match: None }
    }
}

/// The reply to a call. It stays the JSON that a client is sent: endpoints write it from rows that are cached as JSON, so that
/// reading it is the only work for the call of a page.
#[derive(Debug)]
pub struct ApiReply {
    pub status: u16,
    /// The `ETag` header.
    pub etag: Option<String>,
    pub body: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
pub struct Problem {
    pub status: u16,
    /// What happened and what to do about it.
    pub message: String,
    pub fields: Vec<FieldError>,
}

impl dyn Calls + '_ {
    pub async fn get<E: Endpoint<Query: Default>>(&self, path: E::Path) -> Result<BodyOf<E>, Problem> {
        self.find::<E>(path, E::Query::default()).await
    }

    pub async fn find<E: Endpoint>(&self, path: E::Path, query: E::Query) -> Result<BodyOf<E>, Problem> {
        decoded::<E>(&self.send(ApiCall { query: to_value(query)?, ..ApiCall::to::<E>(&path) }).await?)
    }

    /// Reads a resource and its `ETag`, to change exactly this version.
    pub async fn get_versioned<E: Endpoint<Query: Default>>(
        &self,
        path: E::Path,
    ) -> Result<(BodyOf<E>, String), Problem> {
        let query = to_value(E::Query::default())?;
        let reply = self.send(ApiCall { query, ..ApiCall::to::<E>(&path) }).await?;
        Ok((decoded::<E>(&reply)?, reply.etag.unwrap_or_default()))
    }

    /// Changes something, if it still has the version that is named.
    pub async fn change<E: Endpoint>(
        &self,
        path: E::Path,
        body: E::Body,
        if_match: Option<String>,
    ) -> Result<BodyOf<E>, Problem> {
        decoded::<E>(
            &self.send(ApiCall { body: to_value(body)?, if_match, ..ApiCall::to::<E>(&path) }).await?,
        )
    }

    /// Changes something that nothing more has to be said about.
    pub async fn act<E: Endpoint<Body = Nothing>>(&self, path: E::Path) -> Result<BodyOf<E>, Problem> {
        self.change::<E>(path, Nothing, None).await
    }

    /// Reads lines of JSON.
    pub async fn lines<E: Endpoint>(&self, path: E::Path, query: E::Query) -> Result<String, Problem> {
        let reply = self.send(ApiCall { query: to_value(query)?, ..ApiCall::to::<E>(&path) }).await?;
        Ok(String::from_utf8_lossy(&reply.body).into_owned())
    }

    pub async fn may<E: Endpoint>(&self, path: E::Path) -> bool {
        self.admits(E::DESCRIPTION, path.ids(), None).await
    }

    /// Whether the person may call an endpoint whose body names its target.
    pub async fn may_on<E: Endpoint>(&self, path: E::Path, target: EntityId) -> bool {
        self.admits(E::DESCRIPTION, path.ids(), Some(target)).await
    }

    async fn send(&self, call: ApiCall) -> Result<ApiReply, Problem> {
        let reply = self.call(call).await;
        if (200..300).contains(&reply.status) { Ok(reply) } else { Err(Problem::of(&reply)) }
    }
}

impl Problem {
    fn of(reply: &ApiReply) -> Self {
        let error: Option<ErrorBody> = serde_json::from_slice(&reply.body).ok();
        let message = "The server could not answer: try again.".to_owned();
        match error {
            Some(error) => Self {
                status: reply.status,
                message: error.message,
                fields: error.field_errors.unwrap_or_default(),
            },
            None => Self { status: reply.status, message, fields: Vec::new() },
        }
    }

    /// A problem that the console found itself.
    pub fn new(status: u16, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), fields: Vec::new() }
    }

    /// A field that the console found wrong itself.
    pub(crate) fn in_field(name: &str, code: &str, message: impl Into<String>) -> Self {
        let fields = vec![FieldError::new(name, code, message)];
        Self { fields, ..Self::new(400, "Nothing was changed: one of the fields is wrong.") }
    }

    pub fn of_field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|error| error.field == name).map(|error| error.message.as_str())
    }
}

fn decoded<E: Endpoint>(reply: &ApiReply) -> Result<BodyOf<E>, Problem> {
    E::read_reply(&reply.body).map_err(|error| {
        tracing::error!(%error, "a page cannot read what an endpoint has answered");
        Problem::new(500, "The server sent an answer that this page cannot read.")
    })
}

/// The body of a call that says only what it has to; the rest is added to it.
pub(crate) fn least<T: DeserializeOwned>(required: Value) -> Result<T, Problem> {
    serde_json::from_value(required).map_err(|error| {
        tracing::error!(%error, "a page says less than an endpoint asks for");
        Problem::new(500, "The form could not be read.")
    })
}

pub(crate) fn to_value(input: impl Serialize) -> Result<Value, Problem> {
    serde_json::to_value(input).map_err(|error| {
        tracing::error!(%error, "a page cannot write what an endpoint asks for");
        Problem::new(500, "The form could not be read.")
    })
}
