//! Lines that remote agents send.

use podium_api::Many;
use podium_api::agent_logs::{self as api, AgentLogsTaken, SendAgentLogsRequest};
use podium_domain::deployment_logs as rules;
use podium_logs::Line;

use crate::agents::AgentCx;
use crate::cx::Call;
use crate::error::{Error, Result};

/// Adds a batch of lines to the logs of the agent's deployment, once.
pub async fn send(cx: AgentCx, call: Call<api::SendLogs>) -> Result<Many<AgentLogsTaken>> {
    cx.app.require_disk_space().await?;
    let SendAgentLogsRequest { agent, sequence, lines } = call.body;
    let deployment_id = *cx.deployment.get();
    rules::of_agent(&lines, cx.now, cx.app.config.log_retention)?;
    let count = lines.len() as u64;
    let line = |line: podium_api::agent_logs::AgentLogLine| Line {
        deployment_id,
        source: line.source,
        timestamp: line.timestamp,
        text: line.text,
    };
    let lines = lines.into_iter().map(line).collect();
    let added = cx.app.logs_of(cx.deployment).append_once(&agent, sequence, lines).await;
    let is_new = added.map_err(|error| Error::Internal(format!("logs cannot be written: {error}")))?;
    Ok(Many(AgentLogsTaken { taken_count: if is_new { count } else { 0 }, is_repeat: !is_new }))
}
