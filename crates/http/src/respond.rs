//! Answers: JSON with its `ETag`, or nothing.

use http::header::{CONTENT_TYPE, ETAG};
use http::{HeaderValue, Response, StatusCode};
use podium_api::{Reply, ReplyKind};
use podium_app::Replay;
use xxhash_rust::xxh3::xxh3_64;

use crate::body::{Body, whole};
use crate::errors::Failure;

/// Writes the reply of an operation; `known` is the `If-None-Match` of a read.
pub(crate) fn reply<R: Reply>(reply: &R, known: Option<&HeaderValue>) -> Result<Response<Body>, Failure> {
    let (version, body) = reply.parts();
    let mut bytes = Vec::with_capacity(1024);
    if let Some(body) = body {
        serde_json::to_writer(&mut bytes, body).map_err(|error| {
            tracing::error!(%error, "a reply could not be written");
            Failure::new(StatusCode::INTERNAL_SERVER_ERROR, "Something went wrong on our side.")
        })?;
    }
    Ok(finish(R::KIND, version, bytes, known))
}

/// Writes an answer that was given before.
pub(crate) fn replay(kind: ReplyKind, replay: Replay, known: Option<&HeaderValue>) -> Response<Body> {
    finish(kind, replay.version, replay.body, known)
}

fn finish(kind: ReplyKind, version: Option<i64>, bytes: Vec<u8>, known: Option<&HeaderValue>) -> Response<Body> {
    let tag = version.and_then(|version| etag(version, &bytes));
    if let Some(tag) = &tag
        && known.is_some_and(|known| names(known, tag))
    {
        let mut response = Response::new(whole(""));
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        response.headers_mut().insert(ETAG, tag.clone());
        return response;
    }
    let mut response = Response::new(whole(bytes));
    *response.status_mut() = StatusCode::from_u16(kind.status()).unwrap_or(StatusCode::OK);
    if kind != ReplyKind::Empty {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(tag) = tag {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

/// The version that `If-Match` compares, and a hash of the body that `If-None-Match` compares as well.
fn etag(version: i64, body: &[u8]) -> Option<HeaderValue> {
    HeaderValue::from_str(&format!("\"{version}-{:016x}\"", xxh3_64(body))).ok()
}

fn names(header: &HeaderValue, tag: &HeaderValue) -> bool {
    let (Ok(header), Ok(tag)) = (header.to_str(), tag.to_str()) else { return false };
    header.split(',').map(str::trim).any(|known| known == "*" || known.strip_prefix("W/").unwrap_or(known) == tag)
}
