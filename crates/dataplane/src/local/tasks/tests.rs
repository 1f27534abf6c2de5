use podium_api::enums::DeploymentType;
use podium_api::{DeploymentId, Id, OrganizationId, WorkerQueueId, WorkspaceId};
use podium_domain::deployments::{Queue, Spec};

use super::*;
use crate::{Objects, Secret};

/// A queue with one worker that runs so many tasks at once.
pub(crate) fn queue(name: &str, concurrency: u32) -> Queue {
    Queue {
        id: WorkerQueueId::from_raw(Id::from_parts(1, 1, 1)),
        name: name.into(),
        machine: None,
        node_pool_id: None,
        min_workers: 0,
        max_workers: 1,
        concurrency,
        ephemeral_storage: None,
    }
}

fn environment(executor: Executor, queues: &[(&str, u32)]) -> Environment {
    let mut spec = Spec::new(DeploymentType::Standard, "3.3.2");
    spec.executor = executor;
    spec.worker_queues = queues.iter().map(|(name, concurrency)| queue(name, *concurrency)).collect();
    let id = Id::from_parts(1, 2, 3);
    Environment {
        id: DeploymentId::from_raw(id),
        organization_id: OrganizationId::from_raw(id),
        workspace_id: WorkspaceId::from_raw(id),
        cluster_id: None,
        name: "Reports".into(),
        namespace: "calm-river-1234".into(),
        generation: 1,
        is_hibernating: false,
        spec,
        variables: Vec::new(),
        objects: Objects::default(),
    }
}

#[test]
fn the_executor_follows_from_queues_runtime_database_and_broker() {
    use Executor::{Celery, Kubernetes, Platform};
    const ONE: &[(&str, u32)] = &[("default", 2)];
    const TWO: &[(&str, u32)] = &[("default", 1), ("heavy", 2)];
    let none = || Broker::None;
    let own = || Broker::Own("/usr/bin/redis-server".into());
    let given = || Broker::Given(Secret::new("redis://broker/0".into()));
    let together = Some("no broker");
    let instead_of_celery = Some("LocalExecutor on this machine instead of CELERY");
    let instead_of_platform = Some("LocalExecutor on this machine instead of PLATFORM");
    let one_by_one = Some("one at a time");
    // Executor, queues, major version, SQLite, broker: Airflow's executor, tasks at once, workers, what is said.
    let cases = [
        (Celery, ONE, 3, true, none(), "LocalExecutor", 2, 0, instead_of_celery),
        (Celery, ONE, 3, true, own(), "LocalExecutor", 2, 0, instead_of_celery),
        (Celery, ONE, 3, false, given(), "CeleryExecutor", 2, 1, None),
        (Celery, TWO, 3, true, none(), "LocalExecutor", 3, 0, together),
        (Celery, TWO, 3, true, own(), "CeleryExecutor", 3, 2, None),
        (Celery, TWO, 3, false, given(), "CeleryExecutor", 3, 2, None),
        (
            Kubernetes,
            &[],
            3,
            true,
            own(),
            "LocalExecutor",
            1,
            0,
            Some("LocalExecutor on this machine instead of KUBERNETES"),
        ),
        (Platform, TWO, 3, true, own(), "LocalExecutor", 1, 0, instead_of_platform),
        (Platform, ONE, 3, true, given(), "LocalExecutor", 2, 0, instead_of_platform),
        (Celery, ONE, 2, true, none(), "SequentialExecutor", 2, 0, one_by_one),
        (Celery, TWO, 2, true, own(), "SequentialExecutor", 3, 0, one_by_one),
        (Celery, ONE, 2, false, none(), "LocalExecutor", 2, 0, instead_of_celery),
        (Celery, TWO, 2, false, own(), "CeleryExecutor", 3, 2, None),
    ];
    for (number, (executor, queues, major, is_sqlite, broker, name, parallelism, workers, note)) in
        cases.into_iter().enumerate()
    {
        let chosen = choose(&environment(executor, queues), major, is_sqlite, &broker, &own_broker());
        let tasks = chosen.tasks;
        assert_eq!((tasks.executor(), tasks.parallelism), (name, parallelism), "case {number}");
        assert_eq!(tasks.celery.as_ref().map_or(0, |celery| celery.workers.len()), workers, "case {number}");
        let said = chosen.note.unwrap_or_default();
        assert!(note.map_or(said.is_empty(), |note| said.as_str().contains(note)), "case {number}: {said}");
    }
}

pub(crate) fn own_broker() -> OwnBroker {
    OwnBroker { socket: "/data here/tmp/broker.sock".into(), password: Secret::new("password".into()) }
}

#[test]
fn an_own_broker_is_reached_on_this_machine_with_its_password() {
    let own = Broker::Own("/usr/bin/redis-server".into());
    let environment = environment(Executor::Celery, &[("default", 1), ("heavy", 1)]);
    let chosen = choose(&environment, 3, true, &own, &own_broker());
    let celery = chosen.tasks.celery.unwrap();
    assert_eq!(celery.broker.reveal(), "redis+socket://:password@/data%20here/tmp/broker.sock");
    assert_eq!(chosen.own_broker.as_deref(), Some(std::path::Path::new("/usr/bin/redis-server")));
    let given = Broker::Given(Secret::new("redis://elsewhere/3".into()));
    let chosen = choose(&environment, 3, true, &given, &own_broker());
    let celery = chosen.tasks.celery.unwrap();
    assert_eq!((celery.broker.reveal(), chosen.own_broker), ("redis://elsewhere/3", None));
}

#[test]
fn no_queue_gets_more_tasks_than_the_machine_can_run_or_none() {
    let at_once = |queues: &[(&str, u32)]| {
        let chosen = choose(&environment(Executor::Celery, queues), 3, true, &Broker::None, &own_broker());
        chosen.tasks.parallelism
    };
    let processors = u32::try_from(std::thread::available_parallelism().map_or(1, usize::from)).unwrap();
    assert_eq!(at_once(&[("default", 100_000)]), processors * 2);
    assert_eq!(at_once(&[("default", u32::MAX), ("heavy", u32::MAX)]), processors * 2);
    assert_eq!(at_once(&[("default", 0)]), 1);
    assert_eq!(at_once(&[]), 1);
}
