//! Which executor runs the tasks of an environment on this machine.
//!
//! Celery if there are several queues and a broker is available; otherwise Airflow's local executor, within the limits
//! of the default queue. A note for users says so, and why.

use std::path::PathBuf;

use podium_airflow::components::{Celery, Tasks, limit};
use podium_api::enums::Executor;
use podium_domain::UserText;

use super::broker::OwnBroker;
use super::options::Broker;
use crate::Environment;

/// The maximum number of parallel tasks per CPU of the machine.
const TASKS_OF_PROCESSOR: usize = 2;

/// Who runs the tasks, and what that takes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ChosenTasks {
    pub(super) tasks: Tasks,
    /// The broker program to run, if workers need one and none is configured.
    pub(super) own_broker: Option<PathBuf>,
    pub(super) note: Option<UserText>,
}

pub(super) fn choose(
    environment: &Environment,
    major: u32,
    is_sqlite: bool,
    broker: &Broker,
    own_broker: &OwnBroker,
) -> ChosenTasks {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let most = u32::try_from(processors * TASKS_OF_PROCESSOR).unwrap_or(u32::MAX);
    let queues = &environment.spec.worker_queues;
    let wants_workers = environment.spec.executor == Executor::Celery
        && (queues.len() > 1 || matches!(broker, Broker::Given(_)));
    let in_all = queues.iter().map(|queue| limit(queue, most)).sum::<u32>().clamp(1, most);
    let mut tasks = Tasks { parallelism: in_all, celery: None, is_sequential: false };
    if major < 3 && is_sqlite {
        tasks.is_sequential = true;
        return ChosenTasks::without_broker(
            tasks,
            "Tasks run one at a time: this runtime cannot run them in parallel on SQLite. Install PostgreSQL on this machine, or start the server with --airflow-database, and recreate the deployment; or deploy a 3.x runtime.",
        );
    }
    if !wants_workers {
        let default = queues.iter().find(|queue| queue.name == podium_domain::deployments::queues::DEFAULT);
        tasks.parallelism = default.map_or(in_all, |queue| limit(queue, most));
        return ChosenTasks::without_broker(tasks, local_note(environment.spec.executor));
    }
    let (url, own_broker) = match broker {
        Broker::Given(url) => (url.clone(), None),
        Broker::Own(program) => (own_broker.url(), Some(program.clone())),
        Broker::None => {
            return ChosenTasks::without_broker(
                tasks,
                "Tasks of all queues share one executor, because there is no broker: install redis-server on this machine, or start the server with --broker-url.",
            );
        }
    };
    let workers = queues.iter().map(|queue| (queue.name.clone(), limit(queue, most))).collect();
    let is_on_socket = own_broker.is_some();
    tasks.celery = Some(Celery { results: url.clone(), broker: url, is_on_socket, workers });
    ChosenTasks { tasks, own_broker, note: None }
}

impl ChosenTasks {
    fn without_broker(tasks: Tasks, note: impl Into<UserText>) -> Self {
        Self { tasks, own_broker: None, note: Some(note.into()) }
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
