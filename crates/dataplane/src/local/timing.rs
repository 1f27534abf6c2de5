//! How long things may take, and how often they are looked at. Tests are in more of a hurry than people.

use std::time::Duration;

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Timing {
    /// How long processes may take to end by themselves: running tasks finish within it.
    pub(super) grace: Duration,
    /// How long tasks may take to end before what runs them restarts, where the deployment does not say.
    pub(super) drain: Duration,
    /// The grace where nothing of the environment is wanted any more.
    pub(super) short_grace: Duration,
    /// When to try again what did not work.
    pub(super) retry: Duration,
    /// How long an environment may take to come up before that counts as trouble.
    pub(super) startup_timeout: Duration,
    /// How often it is asked how it does, while it comes up.
    pub(super) startup_poll: Duration,
    /// The same once it is up.
    pub(super) steady_poll: Duration,
    /// How long a web server may take to answer.
    pub(super) response_timeout: Duration,
    /// How long a component that was well may be unwell before it is started again.
    pub(super) hang_timeout: Duration,
    /// What ran for so long has not failed at the start.
    pub(super) stable_after: Duration,
    /// How long what ended waits for its next start; twice as long each time.
    pub(super) first_pause: Duration,
    /// The longest that it waits.
    pub(super) longest_pause: Duration,
    /// How often somebody looks whether it is time to measure what environments have on disk.
    pub(super) disk_poll: Duration,
    /// The pause after some files were measured.
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
            startup_timeout: seconds(300),
            startup_poll: seconds(1),
            steady_poll: seconds(10),
            response_timeout: seconds(10),
            hang_timeout: seconds(60),
            stable_after: seconds(60),
            first_pause: seconds(1),
            longest_pause: seconds(60),
            disk_poll: seconds(2),
            disk_pause: Duration::from_millis(50),
        }
    }
}

impl Timing {
    /// The pause after something ended, when it had ended so many times before.
    pub(super) fn pause(&self, times: u32) -> Duration {
        self.first_pause.saturating_mul(1 << times.min(16)).min(self.longest_pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_minute() {
        let timing = Timing::default();
        let pauses = [0, 1, 2, 5, 6, 7, u32::MAX].map(|times| timing.pause(times).as_secs());
        assert_eq!(pauses, [1, 2, 4, 32, 60, 60, 60]);
    }
}
