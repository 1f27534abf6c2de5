//! Logs of a deployment.

use crate::enums::LogSource;
use crate::path::OfDeployment;
use crate::reply::{Events, Many};
use crate::{SearchId, Timestamp, WrittenTime};

endpoints! {
    tag "Deployment";

    /// Get a deployment's logs
    Get: GET "/organizations/{organizationId}/deployments/{deploymentId}/logs" as "GetDeploymentLogs" {
        path: OfDeployment, query: GetDeploymentLogs, reply: Many<DeploymentLog>,
        permission: "deployment.logs.get", marks: [live],
    }
    /// Count the lines of a deployment's logs over time
    Count: GET "/organizations/{organizationId}/deployments/{deploymentId}/logs/counts"
        as "CountDeploymentLogs" {
        path: OfDeployment, query: CountDeploymentLogs, reply: Many<DeploymentLogCounts>,
        permission: "deployment.logs.get", marks: [live],
    }
    /// Follow a deployment's logs
    Follow: GET "/organizations/{organizationId}/deployments/{deploymentId}/logs/follow"
        as "FollowDeploymentLogs" {
        path: OfDeployment, query: FollowDeploymentLogs, reply: Events<DeploymentLogEntry>,
        permission: "deployment.logs.get", marks: [live],
    }
}

/// How serious a line looks, by the words that components write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Something failed.
    Error,
    /// Something may be wrong.
    Warning,
    /// Everything else.
    Other,
}

impl LogLevel {
    /// All levels, the most serious first.
    pub const ALL: [Self; 3] = [Self::Error, Self::Warning, Self::Other];
    /// What lines of a level contain, the most serious first.
    pub const WORDS: [(Self, &[&str]); 2] = [
        (Self::Error, &["ERROR", "CRITICAL", "Traceback", "[error"]),
        (Self::Warning, &["WARN", "[warning"]),
    ];

    /// The level of a line.
    pub fn of(text: &str) -> Self {
        let found = Self::WORDS.iter().find(|(_, words)| words.iter().any(|word| text.contains(word)));
        found.map_or(Self::Other, |(level, _)| *level)
    }
}

wire! {
    /// What to follow.
    #[derive(Default)]
    pub struct FollowDeploymentLogs {
        /// The components whose lines are wanted.
        #[schemars(length(min = 1))]
        pub sources: Vec<LogSource>,
        /// What the lines must say, as in a search.
        pub search_text: Option<String>,
        /// How many seconds to wait for lines before the stream ends: 0 gives what is there already. Without it the stream
        /// goes on.
        #[schemars(range(min = 0, max = 86_400))]
        pub wait_seconds: Option<u64>,
    }

    /// What to look for.
    pub struct GetDeploymentLogs {
        /// The components whose lines are wanted.
        #[schemars(length(min = 1))]
        pub sources: Vec<LogSource>,
        /// Maximum number of lines to return.
        #[serde(default = "default_limit")]
        #[schemars(range(min = 1))]
        pub limit: u64,
        /// How many lines to skip.
        #[serde(default)]
        #[schemars(range(min = 0))]
        pub offset: u64,
        /// The window: so many seconds until now. Without meaning where `startDate` and `endDate` are given.
        #[serde(default = "default_range")]
        #[schemars(range(min = 60))]
        pub range: u64,
        /// Maximum number of lines that the whole search finds.
        #[serde(default = "default_max_num_results")]
        #[schemars(range(min = 1))]
        pub max_num_results: u64,
        /// The search that this is another page of.
        pub search_id: Option<String>,
        /// What the lines must say: all of these words, words that begin like a word with a `*` at its end, and everything
        /// in double quotes, without regard to case.
        pub search_text: Option<String>,
        /// The window: from when. Goes with `endDate`.
        pub start_date: Option<Timestamp>,
        /// The window: until before when. Goes with `startDate`.
        pub end_date: Option<Timestamp>,
    }
}

fn default_limit() -> u64 {
    500
}

fn default_range() -> u64 {
    3600
}

fn default_max_num_results() -> u64 {
    10_000
}

wire! {
    /// What to count.
    pub struct CountDeploymentLogs {
        /// The components whose lines are wanted.
        #[schemars(length(min = 1))]
        pub sources: Vec<LogSource>,
        /// Into how many parts of the same length the window is divided.
        #[serde(default = "default_buckets")]
        #[schemars(range(min = 1, max = 500))]
        pub buckets: u64,
        /// The window: so many seconds until now. Without meaning where `startDate` and `endDate` are given.
        #[serde(default = "default_range")]
        #[schemars(range(min = 60))]
        pub range: u64,
        /// What the lines must say, as in a search.
        pub search_text: Option<String>,
        /// The window: from when. Goes with `endDate`.
        pub start_date: Option<WrittenTime>,
        /// The window: until before when. Goes with `startDate`.
        pub end_date: Option<WrittenTime>,
    }
}

fn default_buckets() -> u64 {
    60
}

wire! {
    /// How many lines were written when.
    pub struct DeploymentLogCounts {
        /// The parts of the window, in order.
        pub buckets: Vec<DeploymentLogCount>,
        /// When the window begins.
        pub start_date: WrittenTime,
        /// Before when it ends.
        pub end_date: WrittenTime,
        /// There if not everything could be counted: lines from this moment on are counted, of earlier ones only some.
        pub complete_from: Option<Timestamp>,
    }

    /// How many lines were written in a part of the window, by the words in them that show how serious they are.
    #[derive(Copy, PartialEq, Eq)]
    pub struct DeploymentLogCount {
        /// When the part of the window begins.
        pub start_date: Timestamp,
        /// Lines that look like errors.
        #[schemars(range(min = 0))]
        pub error_count: u64,
        /// Lines that look like warnings.
        #[schemars(range(min = 0))]
        pub warning_count: u64,
        /// All other lines.
        #[schemars(range(min = 0))]
        pub other_count: u64,
    }

    /// A page of what a search found, newest first.
    pub struct DeploymentLog {
        /// The lines.
        pub results: Vec<DeploymentLogEntry>,
        /// How many lines are on this page.
        #[schemars(range(min = 0))]
        pub result_count: u64,
        /// Names the search: with it further pages show what the first one saw.
        pub search_id: SearchId,
        /// How many lines were asked for.
        #[schemars(range(min = 1))]
        pub limit: u64,
        /// How many items were skipped.
        #[schemars(range(min = 0))]
        pub offset: u64,
        /// Maximum number of lines that the whole search finds.
        #[schemars(range(min = 0))]
        pub max_num_results: u64,
    }

    /// A line of a log.
    #[derive(PartialEq, Eq)]
    pub struct DeploymentLogEntry {
        /// The text of the line.
        pub raw: String,
        /// The author.
        pub source: LogSource,
        /// When: milliseconds since the epoch.
        pub timestamp: i64,
    }
}
