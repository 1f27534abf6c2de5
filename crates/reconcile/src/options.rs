//! How the loops work.

use std::time::Duration;

/// How the loops work.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Steps of each kind at once. Kinds do not share: one that is slow keeps no other waiting.
    pub concurrency: usize,
    /// How long work is held; after that another replica takes it over.
    pub lease: Duration,
    /// How long a step may take before it is cut off; shorter than the lease.
    pub step_time: Duration,
    /// The longest sleep where other replicas bring work too: a wake-up of theirs may get lost.
    pub longest_sleep: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 64,
            lease: Duration::from_secs(30),
            step_time: Duration::from_secs(20),
            longest_sleep: Duration::from_secs(30),
        }
    }
}
