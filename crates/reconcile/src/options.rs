//! Options of the loops.

use std::time::Duration;

/// Options of the loops.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Concurrent steps of each kind. Kinds have separate limits, so that a slow one does not delay others.
    pub concurrency: usize,
    /// The length of a lease; after that another replica takes the work over.
    pub lease: Duration,
    /// The timeout of a step; shorter than the lease.
    pub step_time: Duration,
    /// The longest sleep if other replicas add work: their wake-up may get lost.
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
