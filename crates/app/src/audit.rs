//! Audit records: one for each mutating call, in the transaction of its effect.

use std::net::IpAddr;

use podium_api::subjects::SubjectProfile;
use podium_api::{AuditLogId, OrganizationId, SubjectId, Timestamp};
use podium_db::Tx;
use podium_store::Doorkeeper;
use serde::Serialize;
use serde_json::Value;

use crate::authority::Member;
use crate::cx::Cx;
use crate::error::Result;
use crate::request::Request;
use crate::secrets::sha256_hex;

crate::system::acts_for_the_system!();

/// The largest part of a body that is recorded.
const MAX_BODY: usize = 16 * 1024;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Record<'a> {
    timestamp: Timestamp,
    organization_id: Option<OrganizationId>,
    subject_id: SubjectId,
    subject_type: &'a str,
    subject_name: &'a str,
    source_address: String,
    user_agent: &'a str,
    method: &'a str,
    path: &'a str,
    operation_id: &'a str,
    request_id: &'a str,
    status_code: u16,
    /// How the caller came in, where that was not by an address.
    #[serde(skip_serializing_if = "Option::is_none")]
    via: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_body: Option<&'a Value>,
}

/// Records a call and what came of it, unless the endpoint is not audited.
pub fn record<P: Clone + Send + Sync + 'static>(
    tx: &Tx,
    cx: &Cx<P>,
    id: AuditLogId,
    status: u16,
) -> Result<()> {
    let authority = cx.authority();
    let organization_id = authority.member.as_ref().map(Member::organization_id).or(authority.home);
    let request = cx.request();
    if !request.endpoint.audited {
        return Ok(());
    }
    let via = cx.app().operator_sessions.mark(authority.credential.token_id);
    let entry = Entry { via, ..Entry::of(request, status) };
    entry.write(tx, &system(cx.app()), organization_id, &authority.profile, id)
}

/// Records a call that was authenticated by other means than a token.
pub fn write(
    tx: &Tx,
    system: &Doorkeeper,
    request: &Request,
    organization_id: Option<OrganizationId>,
    subject: &SubjectProfile,
    id: AuditLogId,
    status: u16,
) -> Result<()> {
    if !request.endpoint.audited {
        return Ok(());
    }
    Entry::of(request, status).write(tx, system, organization_id, subject, id)
}

pub(crate) struct Entry<'a> {
    pub(crate) now: Timestamp,
    pub(crate) address: IpAddr,
    pub(crate) user_agent: &'a str,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) operation_id: &'a str,
    pub(crate) request_id: &'a str,
    pub(crate) status: u16,
    pub(crate) body: Option<&'a Value>,
    pub(crate) via: Option<&'static str>,
}

impl<'a> Entry<'a> {
    /// A request and what came of it.
    fn of(request: &'a Request, status: u16) -> Self {
        Self {
            now: request.now,
            address: request.address,
            user_agent: &request.user_agent,
            method: request.endpoint.method.as_str(),
            path: &request.path,
            operation_id: request.endpoint.id,
            request_id: &request.id,
            status,
            body: request.audited_body.as_ref(),
            via: None,
        }
    }

    pub(crate) fn write(
        &self,
        tx: &Tx,
        system: &Doorkeeper,
        organization_id: Option<OrganizationId>,
        subject: &SubjectProfile,
        id: AuditLogId,
    ) -> Result<()> {
        let record = Record {
            timestamp: self.now,
            organization_id,
            subject_id: subject.id,
            subject_type: subject.subject_type.map_or("USER", |kind| kind.as_str()),
            subject_name: shown_name(subject),
            source_address: self.address.to_string(),
            user_agent: self.user_agent,
            method: self.method,
            path: self.path,
            operation_id: self.operation_id,
            request_id: self.request_id,
            status_code: self.status,
            via: self.via,
            request_body: self.body,
        };
        let line =
            serde_json::to_string(&record).map_err(|error| crate::Error::Internal(error.to_string()))?;
        Ok(podium_store::audit::insert(tx, system, organization_id, self.now, id, &line)?)
    }
}

/// The e-mail address of a user, or the name of a token.
pub fn shown_name(subject: &SubjectProfile) -> &str {
    subject.username.as_deref().or(subject.api_token_name.as_deref()).unwrap_or_default()
}

/// The recorded part of a body: what is not secret or, for a large or invalid one, its size and hash.
pub fn kept_body(bytes: &[u8], shown: Option<Value>) -> Option<Value> {
    if bytes.is_empty() {
        return None;
    }
    let small = shown.filter(|value| value.to_string().len() <= MAX_BODY);
    Some(small.unwrap_or_else(|| serde_json::json!({ "bytes": bytes.len(), "sha256": sha256_hex(bytes) })))
}
