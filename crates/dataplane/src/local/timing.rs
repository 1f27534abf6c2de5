//! Timeouts and polling intervals. Tests use shorter ones.

use std::time::Duration;

/// Timeouts and polling intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// How long processes may take to exit after SIGTERM, within which running tasks finish.
    pub(super) grace: Duration,
    /// How long tasks may take to finish before the processes that run them restart, unless the deployment sets it.
    pub(super) drain: Duration,
    /// The grace period when the environment is being removed or stopped.
    pub(super) short_grace: Duration,
    /// The pause before the first retry; it doubles each time.
    pub(super) retry: Duration,
    pub(super) longest_retry: Duration,
    /// How long an environment may take to start before that counts as a failure.
    pub(super) startup_timeout: Duration,
    /// How often its health is checked while it starts.
    pub(super) startup_poll: Duration,
    /// The same once it is up.
    pub(super) steady_poll: Duration,
    /// How long a web server may take to respond.
    pub(super) response_timeout: Duration,
    /// How long a component that was healthy may be unhealthy before it is restarted.
    pub(super) hang_timeout: Duration,
    /// After this time a process no longer counts as failed at its start.
    pub(super) stable_after: Duration,
    /// The pause before the first restart; it doubles each time.
    pub(super) first_pause: Duration,
    pub(super) longest_pause: Duration,
    /// How long to wait for DAG files that leave no trace when they are parsed, if no others do.
    pub(super) parse_settles: Duration,
    /// How often to check whether disk usage has to be measured.
    pub(super) disk_poll: Duration,
    /// The pause after a slice of files was measured.
    pub(super) disk_pause: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        Self {
            grace: seconds(60),
            drain: seconds(600),
            short_grace: seconds(5),
            retry: seconds(10),
            longest_retry: seconds(300),
            startup_timeout: seconds(300),
            startup_poll: seconds(1),
            steady_poll: seconds(10),
            response_timeout: seconds(10),
            hang_timeout: seconds(60),
            stable_after: seconds(60),
            first_pause: seconds(1),
            longest_pause: seconds(60),
            parse_settles: seconds(20),
            disk_poll: seconds(2),
            disk_pause: Duration::from_millis(50),
        }
    }
}

impl Timing {
    /// The pause before a restart after this many earlier failures.
    pub(super) fn pause(&self, times: u32) -> Duration {
        self.first_pause.saturating_mul(1 << times.min(16)).min(self.longest_pause)
    }

    /// The pause before something is tried again after this many earlier failures.
    pub(super) fn retry_pause(&self, times: u32) -> Duration {
        self.retry.saturating_mul(1 << times.min(16)).min(self.longest_retry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_bound() {
        let timing = Timing::default();
        let pauses = [0, 1, 2, 5, 6, 7, u32::MAX].map(|times| timing.pause(times).as_secs());
        assert_eq!(pauses, [1, 2, 4, 32, 60, 60, 60]);
        let retries = [0, 1, 4, 5, u32::MAX].map(|times| timing.retry_pause(times).as_secs());
        assert_eq!(retries, [10, 20, 160, 300, 300]);
    }
}
