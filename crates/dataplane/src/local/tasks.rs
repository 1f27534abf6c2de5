//! Which executor runs the tasks of an environment on this machine.
//!
//! Celery if there are several queues and a broker is available; otherwise Airflow's local executor, within the limits
//! of the default queue. A note for users says so, and why.

use std::path::PathBuf;

use podium_api::enums::Executor;
use podium_domain::UserText;
use podium_domain::deployments::Queue;

use super::broker::OwnBroker;
use super::options::Broker;
use crate::{Environment, Secret};

/// The maximum number of parallel tasks per CPU of the machine.
const TASKS_OF_PROCESSOR: usize = 2;

/// Who runs the tasks.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tasks {
    /// The total number of parallel tasks.
    pub(super) parallelism: u32,
    /// Workers of queues, if Celery is used.
    pub(super) celery: Option<Celery>,
    /// Whether tasks run one at a time, inside the scheduler.
    pub(super) is_sequential: bool,
    /// A note for users.
    pub(super) note: Option<UserText>,
}

/// Workers of queues, and their broker.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Celery {
    pub(super) broker: Secret,
    pub(super) results: Secret,
    /// The broker program to run, unless a broker is configured.
    pub(super) own_broker: Option<PathBuf>,
    /// A worker for each queue, with its number of parallel tasks.
    pub(super) workers: Vec<(String, u32)>,
}

impl Tasks {
    /// Chooses the executor.
    pub(super) fn new(
        environment: &Environment,
        major: u32,
        is_sqlite: bool,
        broker: &Broker,
        own_broker: &OwnBroker,
    ) -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let most = u32::try_from(processors * TASKS_OF_PROCESSOR).unwrap_or(u32::MAX);
        let queues = &environment.worker_queues;
        let wants_workers = environment.executor == Executor::Celery
            && (queues.len() > 1 || matches!(broker, Broker::Given(_)));
        let limit = |queue: &Queue| queue.concurrency.saturating_mul(queue.max_workers.max(1)).clamp(1, most);
        let in_all = queues.iter().map(limit).sum::<u32>().clamp(1, most);
        let mut tasks = Self { parallelism: in_all, celery: None, is_sequential: false, note: None };
        if major < 3 && is_sqlite {
            tasks.is_sequential = true;
            tasks.note = Some(
                "Tasks run one at a time: this runtime cannot run them in parallel on SQLite. Install PostgreSQL on this machine, or start the server with --airflow-database, and recreate the deployment; or deploy a 3.x runtime."
                    .into(),
            );
            return tasks;
        }
        if !wants_workers {
            tasks.note = Some(local_note(environment.executor));
            let default =
                queues.iter().find(|queue| queue.name == podium_domain::deployments::queues::DEFAULT);
            tasks.parallelism = default.map_or(in_all, limit);
            return tasks;
        }
        let (url, own_broker) = match broker {
            Broker::Given(url) => (url.clone(), None),
            Broker::Own(program) => (own_broker.url(), Some(program.clone())),
            Broker::None => {
                tasks.note = Some(
                    "Tasks of all queues share one executor, because there is no broker: install redis-server on this machine, or start the server with --broker-url."
                        .into(),
                );
                return tasks;
            }
        };
        let workers = queues.iter().map(|queue| (queue.name.clone(), limit(queue))).collect();
        tasks.celery = Some(Celery { results: url.clone(), broker: url, own_broker, workers });
        tasks
    }

    /// Airflow's name for it.
    pub(super) fn executor(&self) -> &'static str {
        match (&self.celery, self.is_sequential) {
            (Some(_), _) => "CeleryExecutor",
            (None, true) => "SequentialExecutor",
            (None, false) => "LocalExecutor",
        }
    }
}

/// The note if another executor was requested than the one that runs.
fn local_note(asked: Executor) -> UserText {
    let why = match asked {
        Executor::Celery => "it has one queue, which needs no separate workers",
        Executor::Kubernetes => "this server does not run pods",
        Executor::Platform => "this server runs everything on this machine",
    };
    UserText::filled(
        "Tasks run with Airflow's LocalExecutor on this machine instead of {}: {}.",
        &[&asked, &why],
    )
}

#[cfg(test)]
pub(super) mod tests;
