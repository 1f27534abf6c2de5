//! Uploads: the one call that is no JSON. Its URL is signed and comes with the deploy that it is for.
//!
//! It is no [`Endpoint`](crate::Endpoint): its method is PUT, its body is bytes, and nobody signs in. The path and the
//! names of its parameters are said here once, for those who make such URLs, serve them and describe them.

use serde_json::{Map, Value, json};

/// The path below the version prefix.
pub const PATH: &str = "/uploads/{deployId}";
/// The operation id.
pub const ID: &str = "UploadArchive";
/// The header with the version of the upload.
pub const VERSION_HEADER: &str = "x-ms-version-id";
/// Every status that it can return other than success.
pub const STATUSES: &[u16] = &[400, 403, 408, 413, 429, 431, 500, 503];

/// The operation in the document; `failure` describes a status.
pub(crate) fn document(failure: impl Fn(u16) -> Value) -> Value {
    let parameter = |name: &str, is_required: bool, about: &str, schema: Value| json!({ "name": name, "in": "query", "required": is_required, "description": about, "schema": schema });
    let text = || json!({ "type": "string" });
    let whole = || json!({ "type": "integer", "minimum": 0 });
    let mut responses = Map::new();
    let header = |about: &str| json!({ "description": about, "schema": { "type": "string" } });
    responses.insert(
        "201".into(),
        json!({
            "description": "Received and checked.",
            "headers": {
                "X-Request-Id": header("The id of the request."),
                VERSION_HEADER: header("The version to finalize the deploy with; absent for a block."),
            },
        }),
    );
    responses.extend(STATUSES.iter().map(|status| (status.to_string(), failure(*status))));
    json!({
        "operationId": ID,
        "tags": ["Deploy"],
        "summary": "Upload an archive",
        "description": "Accepts a tar archive compressed with gzip, at the URL returned when the deploy was created. \
            Larger ones can be sent in blocks, as to Azure Blob Storage: `comp=block` with a `blockid` for each, then \
            `comp=blocklist` with their order. Uploads that are not finalized are limited for each deploy, deployment \
            and organization (413). While the server's disk is full, uploads are refused (503).",
        "security": [],
        "parameters": [
            { "name": "deployId", "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } },
            parameter("kind", true, "What is uploaded.", json!({ "type": "string", "enum": ["dags", "bundle"] })),
            parameter("expires", true, "When the URL expires, in seconds since 1970.", whole()),
            parameter("limit", true, "The maximum number of bytes accepted.", whole()),
            parameter("signature", true, "Proof that the URL was created by this server.", text()),
            parameter("comp", false, "What is sent, if not the whole archive.", json!({ "type": "string", "enum": ["block", "blocklist"] })),
            parameter("blockid", false, "The id of a block, in base64.", text()),
        ],
        "requestBody": {
            "required": true,
            "content": { "application/octet-stream": { "schema": { "type": "string", "format": "binary" } } },
        },
        "responses": responses,
    })
}
