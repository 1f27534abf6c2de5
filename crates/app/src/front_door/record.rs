//! Audit records of forwarded requests that change something: who, what and the status, without the body.

use std::net::IpAddr;

use podium_api::Timestamp;

use super::db;
use super::system;
use crate::App;
use crate::audit::Entry;
use crate::error::Result;
use crate::front_door::AdmittedCaller;

/// The name of such requests in the audit log.
pub const OPERATION_ID: &str = "AirflowRequest";

#[derive(Clone, Debug)]
pub struct ForwardedRequest {
    pub now: Timestamp,
    pub address: IpAddr,
    pub user_agent: String,
    pub method: String,
    pub path: String,
    pub request_id: String,
    pub status: u16,
    /// Whether it was refused here, and never forwarded.
    pub is_refusal: bool,
}

impl App {
    /// Records a request; refusals at most so many a second.
    pub async fn record_forwarded(&self, caller: &AdmittedCaller, passed: ForwardedRequest) -> Result<()> {
        if passed.is_refusal && !self.refusals.allow(caller.authority.credential.subject_id) {
            return Ok(());
        }
        let (id, organization_id) = (self.world.id(), caller.deployment().organization_id());
        let system = system(self);
        let profile = caller.authority.profile.clone();
        let via = self.operator_sessions.mark(caller.authority.credential.token_id);
        let write = move |tx: &podium_db::Tx| {
            let entry = Entry {
                now: passed.now,
                address: passed.address,
                user_agent: &passed.user_agent,
                method: &passed.method,
                path: &passed.path,
                operation_id: OPERATION_ID,
                request_id: &passed.request_id,
                status: passed.status,
                body: None,
                via,
            };
            entry.write(tx, &system, Some(organization_id), &profile, id)
        };
        db(self).write(None, write).await
    }
}
