//! The OpenAPI document, written from the endpoints.

use schemars::{Schema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use crate::endpoint::{Access, Description, Method};
use crate::patch::CLEARABLE;
use crate::reply::ReplyKind;
use crate::{ENDPOINTS, ErrorBody, uploads};

/// The prefix of every path.
pub const PREFIX: &str = "/v1";
/// The response header that names the operation which a call has started.
pub const OPERATION_HEADER: &str = "Podium-Operation";
const COMPONENTS: &str = "/components/schemas";

/// Schemas of one endpoint, all references resolved by [`Document::schemas`].
pub struct EndpointSchemas {
    /// The query: an object, or `None`.
    pub query: Option<Value>,
    /// The body, or `None`.
    pub body: Option<Value>,
    /// The reply's body, or `None`.
    pub reply: Option<Value>,
}

/// Every schema of the API: what the document shows and what requests are checked against.
pub struct Document {
    /// Named schemas.
    pub schemas: Map<String, Value>,
    /// Schemas by endpoint, in the order in which the endpoints were given.
    pub endpoints: Vec<EndpointSchemas>,
}

impl Document {
    /// Collects the schemas of every endpoint.
    pub fn collect() -> Self {
        Self::of(ENDPOINTS, true)
    }

    /// Collects the schemas that requests of these endpoints are checked against.
    pub fn of_requests(endpoints: &[Description]) -> Self {
        Self::of(endpoints, false)
    }

    fn of(endpoints: &[Description], with_replies: bool) -> Self {
        let mut settings = SchemaSettings::draft2020_12();
        settings.definitions_path = COMPONENTS.into();
        let mut generator = settings.into_generator();
        generator.subschema_for::<ErrorBody>();
        let endpoints = endpoints
            .iter()
            .map(|endpoint| EndpointSchemas {
                query: something((endpoint.query)(&mut generator)),
                body: something((endpoint.body)(&mut generator)),
                reply: with_replies.then(|| something((endpoint.reply)(&mut generator))).flatten(),
            })
            .collect();
        let mut schemas = generator.take_definitions(true);
        schemas.values_mut().for_each(tidy);
        schemas.sort_keys();
        Self { schemas, endpoints }
    }

    /// The document, with the given server URL.
    pub fn to_json(&self, server_url: &str) -> Value {
        let mut paths = Map::new();
        for (endpoint, schemas) in ENDPOINTS.iter().zip(&self.endpoints) {
            let item = paths.entry(endpoint.path).or_insert_with(|| json!({}));
            item[endpoint.method.as_str().to_lowercase()] = operation(endpoint, schemas);
        }
        paths.insert(uploads::PATH.into(), json!({ "put": uploads::document(failure) }));
        paths.sort_keys();
        json!({
            "openapi": "3.1.0",
            "info": {
                "title": "Podium management API",
                "version": "1.0",
                "description": "Manages Apache Airflow environments. Every request needs `Authorization: Bearer <token>` \
                    unless its endpoint says otherwise. An optional field that is `null` is treated as if it were absent, unless \
                    it says otherwise.",
                "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            },
            "servers": [{ "url": server_url }],
            "security": [{ "bearer": [] }],
            "paths": paths,
            "components": {
                "schemas": self.schemas,
                "securitySchemes": { "bearer": { "type": "http", "scheme": "bearer", "bearerFormat": "JWT" } },
            },
        })
    }
}

/// The schema, unless it is that of `Nothing`.
fn something(schema: Schema) -> Option<Value> {
    let mut value = schema.to_value();
    tidy(&mut value);
    (value != Value::Bool(false)).then_some(value)
}

/// Marks optional fields simply as not required (rather than nullable), and drops annotations about
/// Rust types rather than the wire.
pub(crate) fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(object) => {
            object.values_mut().for_each(tidy);
            if object.get("format").and_then(Value::as_str).is_some_and(|f| f.starts_with("uint")) {
                object.remove("format");
            }
            if object.remove(CLEARABLE).is_none() {
                remove_null(object);
            }
            if object.get("default").is_some_and(Value::is_null) {
                object.remove("default");
            }
        }
        _ => {}
    }
}

fn remove_null(object: &mut Map<String, Value>) {
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|t| t != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    let Some(Value::Array(options)) = object.get_mut("anyOf") else { return };
    options.retain(|option| option.get("type").is_none_or(|t| t != "null"));
    if options.len() == 1
        && let Some(Value::Object(only)) = options.pop()
    {
        object.remove("anyOf");
        for (key, value) in only {
            object.entry(key).or_insert(value);
        }
    }
}

fn operation(endpoint: &Description, schemas: &EndpointSchemas) -> Value {
    let mut operation = json!({
        "operationId": endpoint.id,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "parameters": parameters(endpoint, schemas),
        "responses": responses(endpoint, schemas),
    });
    if let Some(schema) = &schemas.body {
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": { "schema": schema } } });
    }
    match endpoint.access {
        Access::Public => operation["security"] = json!([]),
        Access::Token | Access::Member | Access::Agent => {}
        Access::Permission(permission) => operation["x-permission"] = permission.into(),
    }
    operation
}

fn parameters(endpoint: &Description, schemas: &EndpointSchemas) -> Vec<Value> {
    let path = endpoint.path_params.iter().map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } })
    });
    let mut parameters: Vec<Value> = path.collect();
    if let Some(query) = &schemas.query {
        let required = query["required"].as_array().cloned().unwrap_or_default();
        for (name, schema) in query["properties"].as_object().into_iter().flatten() {
            let mut schema = schema.clone();
            let description = schema.as_object_mut().and_then(|s| s.remove("description"));
            if schema["type"] == "array"
                && let Some(schema) = schema.as_object_mut()
            {
                schema.remove("default");
            }
            let mut parameter = json!({ "name": name, "in": "query", "schema": schema });
            if let Some(description) = description {
                parameter["description"] = description;
            }
            if required.iter().any(|r| r == name) {
                parameter["required"] = true.into();
            }
            parameters.push(parameter);
        }
    }
    let header = |name: &str, about: &str, schema: Value| json!({ "name": name, "in": "header", "description": about, "schema": schema });
    let text = || json!({ "type": "string", "maxLength": 255 });
    if endpoint.takes_idempotency_key() {
        parameters.push(header(
            "Idempotency-Key",
            "Repeated requests with the same key take effect once.",
            text(),
        ));
    }
    if endpoint.compares_version() {
        parameters.push(header("If-Match", "Only if the resource still has this ETag.", text()));
    }
    if endpoint.reply_kind == ReplyKind::Events {
        parameters.push(header("Last-Event-ID", "Continue after this event.", text()));
    }
    if endpoint.reads_one() {
        parameters.push(header("If-None-Match", "Only if the resource has changed since this ETag.", text()));
    }
    parameters
}

fn responses(endpoint: &Description, schemas: &EndpointSchemas) -> Value {
    let mut responses = Map::new();
    let (status, media) = match endpoint.reply_kind {
        ReplyKind::Empty => ("204", None),
        ReplyKind::Blank => ("200", None),
        ReplyKind::One | ReplyKind::Many => ("200", Some("application/json")),
        ReplyKind::Stream => ("200", Some("application/octet-stream")),
        ReplyKind::Events => ("200", Some("text/event-stream")),
    };
    let mut success = json!({ "description": "Done.", "headers": { "X-Request-Id": header_schema("The id of the request.") } });
    if let (Some(media), Some(schema)) = (media, &schemas.reply) {
        success["content"] = json!({ media: { "schema": schema } });
    }
    if endpoint.reply_kind == ReplyKind::One {
        success["headers"]["ETag"] = header_schema("The version of the resource and a hash of the body.");
    }
    if endpoint.starts_operation {
        let about = "The id of the operation that carries the change out, if there is anything to carry out.";
        success["headers"][OPERATION_HEADER] = header_schema(about);
    }
    responses.insert(status.into(), success);
    for status in endpoint.statuses() {
        responses.insert(status.to_string(), failure(status));
    }
    responses.into()
}

fn failure(status: u16) -> Value {
    let mut response = json!({ "description": describe(status) });
    if status >= 400 {
        response["content"] =
            json!({ "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } });
    }
    response
}

fn header_schema(about: &str) -> Value {
    json!({ "description": about, "schema": { "type": "string" } })
}

fn describe(status: u16) -> &'static str {
    match status {
        304 => "Not changed since the given ETag.",
        400 => "The request is invalid; every invalid field is listed.",
        401 => "The token is missing, malformed, expired or revoked.",
        403 => "The caller may not do this.",
        404 => "There is no such resource, or the caller may not see it.",
        408 => "The request did not arrive in time.",
        409 => "The request conflicts with the current state.",
        410 => "What was asked for is no longer kept.",
        412 => "The resource has changed since the given ETag, or is not in a state that allows this.",
        413 => "The body is too large.",
        415 => "The body is not JSON.",
        429 => "Too many requests; try again after `Retry-After` seconds.",
        431 => "The headers are too large.",
        503 => "The database is unavailable; try again after `Retry-After` seconds.",
        _ => "Internal server error.",
    }
}

impl Description {
    /// Whether repeats under an `Idempotency-Key` have one effect.
    pub fn takes_idempotency_key(&self) -> bool {
        let answers_again = !matches!(self.access, Access::Public | Access::Agent) && !self.live;
        self.method == Method::Post && answers_again
    }

    /// Whether `If-Match` is compared: changes of one resource, whose path ends in its id or below it. What is created below
    /// another resource compares the version of that one.
    pub fn compares_version(&self) -> bool {
        let acts_on_one = self.path_params.len() > 1 || self.path.ends_with("/{organizationId}");
        self.method != Method::Get && self.access != Access::Agent && acts_on_one
    }

    /// Whether it reads a single resource, so that `If-None-Match` is compared.
    pub fn reads_one(&self) -> bool {
        self.method == Method::Get && self.reply_kind == ReplyKind::One
    }

    /// Every status that it can return other than success.
    pub fn statuses(&self) -> Vec<u16> {
        let mut statuses = vec![400, 429, 431, 500, 503];
        statuses.extend(self.also);
        match self.access {
            Access::Public => {}
            Access::Token => statuses.extend([401, 403]),
            Access::Member | Access::Agent | Access::Permission(_) => statuses.extend([401, 403, 404]),
        }
        if self.method != Method::Get {
            statuses.extend([408, 413, 415]);
        }
        if self.takes_idempotency_key() {
            statuses.push(409);
        }
        if self.compares_version() {
            statuses.push(412);
        }
        if self.reads_one() {
            statuses.push(304);
        }
        statuses.sort_unstable();
        statuses.dedup();
        statuses
    }
}
