//! Which of Airflow's executors runs the tasks of an environment, and how many at once. Each plane chooses for itself.

use podium_domain::deployments::Queue;

use crate::Secret;

/// Who runs the tasks.
#[derive(Clone, Debug, PartialEq)]
pub struct Tasks {
    /// The total number of parallel tasks.
    pub parallelism: u32,
    /// Workers of queues, if Celery is used.
    pub celery: Option<Celery>,
    /// Whether tasks run one at a time, inside the scheduler.
    pub is_sequential: bool,
}

/// Workers of queues, and their broker.
#[derive(Clone, Debug, PartialEq)]
pub struct Celery {
    /// The URL of the broker.
    pub broker: Secret,
    /// The URL of what keeps results.
    pub results: Secret,
    /// Whether the broker listens on a Unix socket, which Airflow does not recognise in its URL.
    pub is_on_socket: bool,
    /// A worker for each queue, with its number of parallel tasks.
    pub workers: Vec<(String, u32)>,
}

impl Tasks {
    /// Airflow's name for the executor.
    pub fn executor(&self) -> &'static str {
        match (&self.celery, self.is_sequential) {
            (Some(_), _) => "CeleryExecutor",
            (None, true) => "SequentialExecutor",
            (None, false) => "LocalExecutor",
        }
    }
}

/// How many tasks of a queue may run at once where no more than so many can.
pub fn limit(queue: &Queue, most: u32) -> u32 {
    queue.concurrency.saturating_mul(queue.max_workers.max(1)).clamp(1, most)
}
