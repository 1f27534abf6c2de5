//! Audit records: one for each mutating call, in the transaction of its effect.

use podium_api::{Id, Timestamp};
use podium_db::Tx;
use serde::Serialize;
use serde_json::Value;

use crate::cx::{Cx, Request};
use crate::error::Result;
use crate::secrets::sha256_hex;

/// The most that is kept of a body.
const MAX_BODY: usize = 16 * 1024;

/// A line of the audit log.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    timestamp: Timestamp,
    organization_id: Option<Id>,
    subject_id: Id,
    subject_type: &'a str,
    subject_name: &'a str,
    source_address: String,
    user_agent: &'a str,
    method: &'a str,
    path: &'a str,
    operation_id: &'a str,
    request_id: &'a str,
    status_code: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_body: Option<&'a Value>,
}

/// Records a call and what came of it, unless the operation is not audited.
pub fn record<P: Clone + Send + Sync + 'static>(tx: &Tx, cx: &Cx<P>, id: Id, status: u16) -> Result<()> {
    let authority = cx.authority();
    let organization_id = authority.member.as_ref().map(|member| member.organization_id).or(authority.home);
    let profile = &authority.profile;
    write(tx, cx.request(), organization_id, profile, id, status)
}

/// Records a call of somebody who proved itself by other means than a token.
pub fn write(
    tx: &Tx,
    request: &Request,
    organization_id: Option<Id>,
    subject: &podium_api::subjects::SubjectProfile,
    id: Id,
    status: u16,
) -> Result<()> {
    if !request.operation.audited {
        return Ok(());
    }
    let record = Record {
        timestamp: request.now,
        organization_id,
        subject_id: subject.id,
        subject_type: subject.subject_type.map_or("USER", |kind| kind.as_str()),
        subject_name: subject.username.as_deref().or(subject.api_token_name.as_deref()).unwrap_or_default(),
        source_address: request.address.to_string(),
        user_agent: &request.user_agent,
        method: request.operation.method.as_str(),
        path: &request.path,
        operation_id: request.operation.id,
        request_id: &request.id,
        status_code: status,
        request_body: request.audited_body.as_ref(),
    };
    let line = serde_json::to_string(&record).map_err(|error| crate::Error::Internal(error.to_string()))?;
    Ok(podium_store::audit::insert(tx, organization_id, request.now, id, &line)?)
}

/// What is kept of a body: what is not secret, or of a large or broken one its size and hash.
pub fn kept_body(bytes: &[u8], shown: Option<Value>) -> Option<Value> {
    if bytes.is_empty() {
        return None;
    }
    let small = shown.filter(|value| value.to_string().len() <= MAX_BODY);
    Some(small.unwrap_or_else(|| serde_json::json!({ "bytes": bytes.len(), "sha256": sha256_hex(bytes) })))
}
