//! Remote execution: running tasks on remote agents.

use podium_api::deployments::DeploymentRemoteExecutionRequest;

use super::spec::RemoteExecution;
use crate::refusal::Fields;
use crate::{allowed_ip_address_ranges, urls};

/// Remote execution after a request; what it leaves out stays.
pub(super) fn check(
    requested: &DeploymentRemoteExecutionRequest,
    stored: RemoteExecution,
    fields: &mut Fields,
) -> RemoteExecution {
    let allowed = requested.allowed_ip_address_ranges.as_ref().map(|ranges| {
        let ranges = ranges.iter().enumerate().filter_map(|(index, range)| {
            let path = format!("remoteExecution.allowedIpAddressRanges[{index}]");
            fields.take(allowed_ip_address_ranges::range(&path, range))
        });
        ranges.map(|range| range.to_string()).collect()
    });
    let text = |requested: &Option<String>, stored: Option<String>| match requested {
        Some(text) => Some(text.clone()).filter(|text| !text.is_empty()),
        None => stored,
    };
    let pattern = requested.task_log_url_pattern.as_deref().filter(|pattern| !pattern.is_empty());
    if let Some(message) = pattern.and_then(urls::pattern_fault) {
        fields.push("remoteExecution.taskLogUrlPattern", "format", message);
    }
    RemoteExecution {
        allowed_ip_address_ranges: allowed.unwrap_or(stored.allowed_ip_address_ranges),
        task_log_bucket: text(&requested.task_log_bucket, stored.task_log_bucket),
        task_log_url_pattern: text(&requested.task_log_url_pattern, stored.task_log_url_pattern),
    }
}
