//! Calls that are handled like those that come over the network, and become part of the caller's transaction.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use podium_api::{Description, ErrorBody, PlanId, Timestamp};
use serde_json::Value;

use crate::App;
use crate::authority::Authority;

/// Handles calls like those that come over the network. Implemented where the endpoints are bound to their functions.
pub trait Calls: Send + Sync {
    /// What a method and path lead to.
    fn find(&self, method: &str, path: &str) -> Option<Found>;
    /// Handles a call, for a caller whose rights have been read.
    fn handle(&self, call: JoinedCall) -> Pin<Box<dyn Future<Output = Handled> + Send>>;
}

#[derive(Clone, Copy)]
pub struct Found {
    pub endpoint: &'static Description,
    pub first_id: Option<podium_api::Id>,
}

/// A call that becomes part of the caller's transaction.
pub struct JoinedCall {
    pub app: App,
    pub authority: Arc<Authority>,
    pub method: &'static str,
    pub path: String,
    pub body: Option<Value>,
    /// The `If-Match` header.
    pub if_match: Option<String>,
    /// Under which key its answer is kept, so that it can be given again.
    pub kept_under: Option<CallKey>,
    pub address: IpAddr,
    pub user_agent: String,
    pub request_id: String,
    pub now: Timestamp,
}

/// The key of a call of a plan: no `Idempotency-Key` that a client sends can be the same.
#[derive(Clone, Debug)]
pub struct CallKey {
    pub text: String,
    /// Whether the call is only to be answered from what is stored, and never made.
    pub is_replay: bool,
}

impl CallKey {
    pub(super) fn new(plan_id: PlanId, index: usize, is_replay: bool) -> Self {
        Self { text: format!("\u{1}plan {plan_id} {index}"), is_replay }
    }
}

pub enum Handled {
    Done {
        status: u16,
        /// The version in its `ETag`.
        version: Option<i64>,
        body: Option<Value>,
    },
    Refused(ErrorBody),
    /// The caller's rights are not what they were.
    Stale,
}
