//! Lines that remote agents send: what their workers wrote, next to the deployment's own logs.

use crate::Timestamp;
use crate::enums::LogSource;
use crate::path::OfDeployment;
use crate::reply::Many;

endpoints! {
    tag "AgentToken";

    /// Send logs of a remote agent
    SendLogs: POST "/organizations/{organizationId}/deployments/{deploymentId}/agents/logs"
        as "SendAgentLogs" {
        path: OfDeployment, body: SendAgentLogsRequest, reply: Many<AgentLogsTaken>,
        open_to: ByAgents, without_event: "adds lines to a log", marks: [not_audited],
    }
}

wire! {
    /// A batch of lines. An agent sends one batch after the other, and repeats a batch until it is answered.
    pub struct SendAgentLogsRequest {
        /// The agent's own name, unlike that of other agents of the deployment.
        #[schemars(length(min = 1, max = 128))]
        pub agent: String,
        /// The number of the agent's batch: later batches have higher numbers. A batch that was accepted before has no
        /// effect.
        #[schemars(range(min = 1))]
        pub sequence: u64,
        /// The lines; either all of them are accepted or none.
        #[schemars(length(min = 1, max = 5000))]
        pub lines: Vec<AgentLogLine>,
    }

    /// A line that an agent's worker wrote.
    pub struct AgentLogLine {
        /// When it was written.
        pub timestamp: Timestamp,
        /// Which component wrote it; tasks are `worker`.
        pub source: LogSource,
        /// The text of the line.
        #[schemars(length(max = 65_536))]
        pub text: String,
    }

    /// The result of a batch.
    pub struct AgentLogsTaken {
        /// How many lines were added.
        #[schemars(range(min = 0))]
        pub taken_count: u64,
        /// Whether this batch, or a later one of the agent, had already been accepted.
        pub is_repeat: bool,
    }
}
