//! Calls of the API, made in this process on behalf of the person who looks at a page.
//!
//! Every page reads and changes through the endpoints, so that the console can do exactly what the API lets the same person do.

use std::future::Future;
use std::pin::Pin;

use podium_api::path::PathParams;
use podium_api::{
    Description, Endpoint, EntityId, ErrorBody, FieldError, Id, Method, OrganizationId, Reply, WorkspaceId,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::airflow::{AirflowCall, AirflowQuestion, AirflowReply};

/// What a method of [`Calls`] returns.
pub type Calling<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Makes calls for one person. Implemented where the endpoints are bound to their functions.
pub trait Calls: Send + Sync {
    /// Makes a call.
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

/// A call of the API.
#[derive(Debug)]
pub struct ApiCall {
    /// The method.
    pub method: Method,
    /// The path and query, without the version.
    pub path: String,
    /// The body.
    pub body: Option<Value>,
    /// The `If-Match` header.
    pub if_match: Option<String>,
}

/// The reply to a call.
#[derive(Debug)]
pub struct ApiReply {
    /// The status.
    pub status: u16,
    /// The `ETag` header.
    pub etag: Option<String>,
    /// The operation that the call has started.
    pub operation_id: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

/// Why a call failed.
#[derive(Clone, Debug, Default)]
pub struct Problem {
    /// The status.
    pub status: u16,
    /// What happened and what to do about it.
    pub message: String,
    /// The fields that are wrong.
    pub fields: Vec<FieldError>,
}

/// A resource with its version.
#[derive(Debug)]
pub struct Versioned<T> {
    /// The resource.
    pub value: T,
    /// Its `ETag`, to change exactly this version.
    pub etag: Option<String>,
    /// The operation that the call has started.
    pub operation_id: Option<String>,
}

type Body<E> = <<E as Endpoint>::Reply as Reply>::Body;

/// A query: names and values.
pub(crate) type Query<'q> = &'q [(&'q str, &'q str)];

impl dyn Calls + '_ {
    /// Reads.
    pub async fn get<E: Endpoint>(&self, path: E::Path, query: Query<'_>) -> Result<Body<E>, Problem>
    where
        Body<E>: DeserializeOwned,
    {
        self.get_versioned::<E>(path, query).await.map(|read| read.value)
    }

    /// Reads a resource with its version.
    pub async fn get_versioned<E: Endpoint>(
        &self,
        path: E::Path,
        query: Query<'_>,
    ) -> Result<Versioned<Body<E>>, Problem>
    where
        Body<E>: DeserializeOwned,
    {
        typed(self.send::<E>(&path, query, None, None).await?)
    }

    /// Changes something.
    pub async fn change<E: Endpoint>(
        &self,
        path: E::Path,
        body: impl Serialize,
        if_match: Option<String>,
    ) -> Result<Versioned<Body<E>>, Problem>
    where
        Body<E>: DeserializeOwned,
    {
        typed(self.send::<E>(&path, &[], Some(to_value(body)?), if_match).await?)
    }

    /// Changes something, where the reply says nothing more.
    pub async fn act<E: Endpoint>(
        &self,
        path: E::Path,
        body: impl Serialize,
    ) -> Result<Option<String>, Problem> {
        let body = to_value(body)?;
        let body = (!body.is_null()).then_some(body);
        Ok(self.send::<E>(&path, &[], body, None).await?.operation_id)
    }

    /// Reads lines of JSON.
    pub async fn lines<E: Endpoint>(&self, path: E::Path, query: Query<'_>) -> Result<String, Problem> {
        let reply = self.send::<E>(&path, query, None, None).await?;
        Ok(String::from_utf8_lossy(&reply.body).into_owned())
    }

    /// Whether the person may call an endpoint.
    pub async fn may<E: Endpoint>(&self, path: E::Path) -> bool {
        self.admits(E::DESCRIPTION, path.ids(), None).await
    }

    /// Whether the person may call an endpoint whose body names its target.
    pub async fn may_on<E: Endpoint>(&self, path: E::Path, target: EntityId) -> bool {
        self.admits(E::DESCRIPTION, path.ids(), Some(target)).await
    }

    async fn send<E: Endpoint>(
        &self,
        path: &E::Path,
        query: Query<'_>,
        body: Option<Value>,
        if_match: Option<String>,
    ) -> Result<ApiReply, Problem> {
        let mut target = path.fill(E::DESCRIPTION.path);
        if !query.is_empty() {
            let pairs = form_urlencoded::Serializer::new(String::new()).extend_pairs(query).finish();
            target = format!("{target}?{pairs}");
        }
        let reply = self.call(ApiCall { method: E::DESCRIPTION.method, path: target, body, if_match }).await;
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

    /// What is wrong with a field.
    pub fn of_field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|error| error.field == name).map(|error| error.message.as_str())
    }
}

fn typed<T: DeserializeOwned>(reply: ApiReply) -> Result<Versioned<T>, Problem> {
    let value = serde_json::from_slice(&reply.body).map_err(|error| {
        tracing::error!(%error, "a page cannot read what an endpoint has answered");
        Problem::new(500, "The server sent an answer that this page cannot read.")
    })?;
    Ok(Versioned { value, etag: reply.etag, operation_id: reply.operation_id })
}

fn to_value(body: impl Serialize) -> Result<Value, Problem> {
    serde_json::to_value(body).map_err(|error| {
        tracing::error!(%error, "a page cannot write what an endpoint asks for");
        Problem::new(500, "The form could not be read.")
    })
}
