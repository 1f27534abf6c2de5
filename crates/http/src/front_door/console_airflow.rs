//! What pages of the console ask the Airflow of a deployment: through the front door, as the person who looks, with the
//! checks, limits and records of a request that comes over a connection.

use bytes::Bytes;
use http::Request;
use http::StatusCode;
use http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, USER_AGENT};
use http_body_util::{BodyExt as _, Full, Limited};
use podium_app::front_door::PresentedCredential;
use podium_console::{AirflowCall, AirflowQuestion, AirflowReply};
use podium_domain::airflow::{AirflowPath, Decision, Line, Rights, closed, find, judge};

use super::console_pages::SessionCalls;
use super::{InboundRequest, Place};
use crate::body::{self, BodyError};
use crate::errors::Failure;

/// The largest answer of an environment that a page reads.
const LARGEST: usize = 2 * 1024 * 1024;

impl SessionCalls<'_> {
    /// Sends a request on, and reads the answer. What changes something goes on when nobody waits for it any more.
    pub(super) async fn ask_airflow(&self, call: AirflowCall) -> Result<AirflowReply, Failure> {
        let is_change = is_change(&call);
        let sent = tokio::time::timeout_at(self.airflow_until, self.pass_to_airflow(call)).await;
        sent.unwrap_or_else(|_| {
            let message = match is_change {
                true => "Airflow did not answer in time: the change may still take effect. Look at the DAG before you try again.",
                false => "Airflow did not answer in time: it may be busy or starting. Try again in a moment.",
            };
            Err(Failure::later(StatusCode::GATEWAY_TIMEOUT, message, 5))
        })
    }

    async fn pass_to_airflow(&self, call: AirflowCall) -> Result<AirflowReply, Failure> {
        let is_change = is_change(&call);
        let path = AirflowPath::of_parts(call.path.iter().map(String::as_str))?.encoded();
        let mut target = format!("/airflow/{}{path}", call.namespace);
        if !call.query.is_empty() {
            target = format!("{target}?{}", call.query);
        }
        let sent = call.body.map(|body| Bytes::from(body.to_string()));
        let mut request = Request::builder().method(call.method).uri(target);
        request = request.header(ACCEPT, "application/json").header(USER_AGENT, &self.user_agent);
        if let Some(sent) = &sent {
            request = request.header(CONTENT_TYPE, "application/json").header(CONTENT_LENGTH, sent.len());
        }
        let unsendable = |_| Failure::new(StatusCode::BAD_REQUEST, "The path cannot be forwarded.");
        let parts = request.body(()).map_err(unsendable)?.into_parts().0;
        let inbound = InboundRequest {
            parts,
            address: self.address,
            peer: std::sync::Arc::clone(&self.peer),
            request_id: self.request_id.clone(),
            now: self.now,
        };
        let body = match sent {
            Some(sent) => Full::new(sent).map_err(BodyError::new).boxed_unsync(),
            None => body::empty(),
        };
        let deployment = self.app.deployment_in(&call.namespace).await?;
        let shown = PresentedCredential::Session(self.cookie);
        let response = self.door.forward((inbound, body), Place::Console, shown, deployment, &path).await?;
        let status = response.status().as_u16();
        if is_change && response.status().is_success() {
            return Ok(AirflowReply { status, body: Vec::new() });
        }
        let read = Limited::new(response.into_body(), LARGEST).collect().await;
        let unread = |_| {
            let message = "Airflow's answer broke off, or is too large for a page. Open Airflow instead.";
            Failure::later(StatusCode::BAD_GATEWAY, message, 5)
        };
        Ok(AirflowReply { status, body: read.map_err(unread)?.to_bytes().to_vec() })
    }

    /// Which requests the front door would forward. Nothing is counted or recorded.
    pub(super) async fn judge_for_airflow(
        &self,
        namespace: &str,
        asked: Vec<AirflowQuestion>,
    ) -> Result<Vec<bool>, Failure> {
        let deployment = self.app.deployment_in(namespace).await?;
        let shown = PresentedCredential::Session(self.cookie);
        let caller = self.app.admit(shown, deployment, self.address, None, self.now).await?;
        let rights = caller.rights();
        Ok(asked.iter().map(|question| would_pass(question, &rights)).collect())
    }
}

/// Whether a request changes something: lists are asked for with a body, too.
fn is_change(call: &AirflowCall) -> bool {
    call.method != "GET" && call.path.last().is_none_or(|part| part != "list")
}

fn would_pass(question: &AirflowQuestion, rights: &Rights<'_>) -> bool {
    let Ok(path) = AirflowPath::of_parts(question.path.iter().map(String::as_str)) else { return false };
    let line =
        if path.segments().get(1).is_some_and(|version| version == "v1") { Line::Two } else { Line::Three };
    let Some((rule, dag)) = find(line, question.method, &path).filter(|_| closed(&path).is_none()) else {
        return false;
    };
    match judge(rule, dag, &[], rights) {
        Ok(Decision::Unchanged | Decision::Narrowed(_)) => true,
        Ok(Decision::IfTagged(tagged)) => tagged.settle(&question.tags).is_ok(),
        Err(_) => false,
    }
}
