//! What is known of a request before anybody is asked whether it may be made.

use std::net::IpAddr;

use podium_api::enums::SessionKind;
use podium_api::{Description, SessionId, Timestamp};
use podium_domain::device_sign_ins;
use podium_store::user_sessions::SessionOrigin;

pub struct Request {
    pub endpoint: &'static Description,
    pub id: String,
    pub path: String,
    pub address: IpAddr,
    pub user_agent: String,
    /// The `If-Match` header.
    pub if_match: Option<String>,
    /// The `Idempotency-Key` header and a hash of the request.
    pub idempotency: Option<Idempotency>,
    /// The `Last-Event-ID` header.
    pub last_event_id: Option<String>,
    /// The part of the body that the audit log may record.
    pub audited_body: Option<serde_json::Value>,
    /// The session of the browser that it came from, by way of the console.
    pub session: Option<OpenSession>,
    pub now: Timestamp,
}

impl Request {
    /// How and from where a session begins that the request asks for.
    pub(crate) fn origin(&self, kind: SessionKind, client_name: &str) -> SessionOrigin {
        SessionOrigin {
            kind,
            client_name: client_name.to_owned(),
            address: self.address.to_string(),
            user_agent: device_sign_ins::user_agent(&self.user_agent),
        }
    }
}

/// The header of a request, and a hash of the request.
#[derive(Clone, Debug)]
pub struct Idempotency {
    pub key: String,
    pub request_hash: String,
    /// Whether the request is only to be answered from what is stored, and has no effect otherwise.
    pub is_replay: bool,
}

/// A session that was looked up for a request: it stands for the rights of its token.
#[derive(Clone, Copy)]
pub struct OpenSession {
    pub(crate) id: SessionId,
    pub(crate) hash: [u8; 32],
    /// The hash of the token that it refers to.
    pub(crate) credential_hash: [u8; 32],
    /// Until when it works, if it does not end before.
    pub(crate) expires_at: Timestamp,
    /// How many changes of rights were known before it was looked up.
    pub(crate) generation: u64,
}
