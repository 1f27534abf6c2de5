//! The simulated plane keeps its word, and breaks it when it is told to.

use podium_api::TypedId;
use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use podium_api::clusters::ClusterDetails;
use podium_api::enums::{CloudProvider, ClusterStatus, ClusterType, DeploymentType};
use podium_domain::deployments::Spec;

use super::*;
use crate::{Changed, Objects, Secret, Setting};

/// A clock that tests move.
#[derive(Clone, Default)]
struct Hands(Arc<AtomicI64>);

impl Hands {
    fn clock(&self) -> Clock {
        let hands = Arc::clone(&self.0);
        Arc::new(move || Timestamp::from_millis(hands.load(Ordering::SeqCst)))
    }

    fn set(&self, millis: i64) {
        self.0.store(millis, Ordering::SeqCst);
    }
}

const SECRET: &str = "do not keep me";

fn id<I: TypedId>(number: u32) -> I {
    I::from_raw(Id::from_parts(1, number, 0))
}

fn at(number: u32) -> Location {
    Location::unknown(id(number))
}

fn cluster_at(number: u32) -> ClusterLocation {
    ClusterLocation { id: id(number), plane: None }
}

fn environment(number: u32, generation: i64) -> Environment {
    let mut spec = Spec::new(DeploymentType::Standard, "3.3.2");
    spec.release.image_tag = format!("image-{generation}");
    spec.release.dag_version = Some(format!("dags-{generation}"));
    let variables = vec![Setting { key: "TOKEN".into(), value: Secret::new(SECRET.into()), is_secret: true }];
    Environment {
        id: id(number),
        organization_id: id(900),
        workspace_id: id(901),
        cluster_id: None,
        name: "Reports".into(),
        namespace: "calm-river-1234".into(),
        generation,
        is_hibernating: false,
        spec,
        variables,
        objects: Objects::default(),
    }
}

/// A cluster whose deployments are to run in its other region.
fn failed_over(id: ClusterId) -> Cluster {
    let mut details = ClusterDetails { dr_region: "us-west-2".into(), ..ClusterDetails::default() };
    details.is_dr_enabled = true;
    let cluster = podium_api::clusters::Cluster {
        id,
        name: "East".into(),
        organization_id: self::id(900),
        r#type: ClusterType::Dedicated,
        cloud_provider: CloudProvider::Aws,
        region: "us-east-1".into(),
        status: ClusterStatus::Creating,
        health_status: ClusterHealthStatus::default(),
        is_failed_over: false,
        failover_in_progress: false,
        is_limited: false,
        workspace_ids: Vec::new(),
        metadata: ClusterMetadata::default(),
        data_plane: None,
        created_at: Timestamp::from_millis(0),
        updated_at: Timestamp::from_millis(0),
        details,
    };
    Cluster { generation: 1, wants_failed_over: true, cluster }
}

fn asleep(mut environment: Environment) -> Environment {
    environment.is_hibernating = true;
    environment
}

fn image(observed: Option<&Observed>) -> Option<&str> {
    observed.and_then(|observed| observed.running.image_tag.as_deref())
}

fn is_up(observed: &Observed) -> bool {
    let all_up = observed.components.iter().all(|component| component.health == Health::Up);
    observed.rollout == Rollout::Done && all_up && !observed.components.is_empty()
}

#[tokio::test]
async fn every_call_takes_effect_immediately() {
    let plane = Simulated::in_memory(Hands::default().clock());
    assert_eq!(plane.observe(&at(1)).await, Ok(None));
    plane.apply(&environment(1, 1)).await.unwrap();
    let seen = plane.observe(&at(1)).await.unwrap().unwrap();
    assert!(is_up(&seen) && seen.look_again_at.is_none());
    let names: Vec<&str> = seen.components.iter().map(|component| component.name.as_str()).collect();
    assert_eq!(names, ["apiserver", "dag-processor", "scheduler", "triggerer", "worker"]);
    assert_eq!(seen.running.dag_version.as_deref(), Some("dags-1"));
    plane.apply(&asleep(environment(1, 1))).await.unwrap();
    let seen = plane.observe(&at(1)).await.unwrap().unwrap();
    assert!(seen.is_hibernating && seen.components.is_empty() && seen.rollout == Rollout::Done);
    plane.remove(&at(1)).await.unwrap();
    plane.remove(&at(1)).await.unwrap();
    assert_eq!(plane.observe(&at(1)).await, Ok(None));
    assert_eq!(plane.environments(), []);
}

#[tokio::test]
async fn an_older_generation_changes_nothing() {
    let plane = Simulated::in_memory(Hands::default().clock());
    plane.apply(&environment(1, 2)).await.unwrap();
    plane.apply(&environment(1, 1)).await.unwrap();
    let seen = plane.observe(&at(1)).await.unwrap();
    assert_eq!((seen.as_ref().unwrap().generation, image(seen.as_ref())), (2, Some("image-2")));
}

#[tokio::test]
async fn rollouts_and_removals_take_their_time() {
    let hands = Hands::default();
    let plane = Simulated::in_memory(hands.clock());
    plane.apply(&environment(1, 1)).await.unwrap();
    plane.script().lock().rollout = Duration::from_secs(10);
    plane.script().lock().removal = Duration::from_secs(5);
    plane.apply(&environment(1, 2)).await.unwrap();
    let seen = plane.observe(&at(1)).await.unwrap();
    assert_eq!(seen.as_ref().unwrap().rollout, Rollout::Underway);
    assert_eq!(seen.as_ref().unwrap().look_again_at, Some(Timestamp::from_millis(10_000)));
    assert_eq!(image(seen.as_ref()), Some("image-1"), "the old one runs until the new one is up");
    hands.set(10_000);
    let seen = plane.observe(&at(1)).await.unwrap();
    assert!(is_up(seen.as_ref().unwrap()));
    assert_eq!(image(seen.as_ref()), Some("image-2"));
    plane.remove(&at(1)).await.unwrap();
    hands.set(12_000);
    plane.remove(&at(1)).await.unwrap();
    assert!(plane.observe(&at(1)).await.unwrap().is_some());
    hands.set(15_000);
    assert_eq!(plane.observe(&at(1)).await, Ok(None), "removing again does not begin again");
    assert_eq!(plane.environments(), []);
}

#[tokio::test]
async fn the_script_injects_faults_and_keeps_a_journal() {
    let plane = Simulated::in_memory(Hands::default().clock());
    let script = plane.script();
    script.keep_journal();
    let failed = Fault::Failed("no room".into());
    script.inject(Call::Apply, InjectedFault::Fail(failed.clone()), 2);
    script.inject_for(id(2), Call::Remove, InjectedFault::LoseResponse, 1);
    assert_eq!(plane.apply(&environment(1, 1)).await, Err(failed.clone()));
    assert_eq!(plane.apply(&environment(1, 1)).await, Err(failed));
    assert_eq!(plane.apply(&environment(1, 1)).await, Ok(()));
    assert_eq!(plane.apply(&environment(2, 1)).await, Ok(()));
    assert_eq!(plane.remove(&at(1)).await, Ok(()));
    assert!(plane.remove(&at(2)).await.unwrap_err().is_unreachable());
    assert_eq!(plane.environments(), [], "it was removed, but nobody heard of it");
    let calls: Vec<(Call, Id)> = script.journal().iter().map(|entry| (entry.call, entry.id)).collect();
    let expected =
        [(Call::Apply, 1), (Call::Apply, 1), (Call::Apply, 1), (Call::Apply, 2), (Call::Remove, 1)];
    assert_eq!(calls[..5], expected.map(|(call, number)| (call, id(number))));
    assert_eq!(script.journal(), []);
}

#[tokio::test]
async fn changes_of_health_and_reachability_are_notified() {
    let plane = Simulated::in_memory(Hands::default().clock());
    plane.apply(&environment(1, 1)).await.unwrap();
    let mut changes = plane.changes();
    assert_eq!(changes.try_next(), Some(Changed::Everything), "what happened before");
    let script = plane.script();
    script.set_health(id(1), "scheduler", Health::Down("out of memory".into()));
    assert_eq!(changes.try_next(), Some(Changed::Environment(id(1))));
    assert!(!is_up(&plane.observe(&at(1)).await.unwrap().unwrap()));
    script.set_health(id(1), "scheduler", Health::Up);
    assert!(is_up(&plane.observe(&at(1)).await.unwrap().unwrap()));
    script.flap(id(1), "worker", 4);
    let mut seen = Vec::new();
    for _ in 0..5 {
        seen.push(is_up(&plane.observe(&at(1)).await.unwrap().unwrap()));
    }
    assert_eq!(seen, [false, true, false, true, true]);
    script.lose_contact();
    assert!(plane.observe(&at(1)).await.unwrap_err().is_unreachable());
    script.regain_contact();
    script.lose_contact_with(id(1));
    assert!(plane.observe(&at(1)).await.is_err() && plane.observe(&at(2)).await.is_ok());
}

#[tokio::test]
async fn stored_state_is_found_again_and_contains_no_secret() {
    let directory = tempfile::tempdir().unwrap();
    let hands = Hands::default();
    let open = || Simulated::in_directory(directory.path(), hands.clock()).unwrap();
    let cluster = failed_over(id(7));
    let plane = open();
    plane.apply(&environment(1, 1)).await.unwrap();
    plane.apply(&environment(2, 1)).await.unwrap();
    plane.remove(&at(2)).await.unwrap();
    plane.apply_cluster(&cluster).await.unwrap();
    drop(plane);
    let plane = open();
    assert_eq!((plane.environments(), plane.clusters()), (vec![id(1)], vec![id(7)]));
    assert!(is_up(&plane.observe(&at(1)).await.unwrap().unwrap()));
    let seen = plane.observe_cluster(cluster_at(7)).await.unwrap().unwrap();
    assert!(matches!(seen.progress, Progress::Ready(health) if health.value == HealthValue::Healthy));
    assert!(
        seen.metadata.oidc_issuer_url.unwrap().contains("us-west-2"),
        "it runs where it was failed over to"
    );
    plane.remove_cluster(cluster_at(7)).await.unwrap();
    assert_eq!(plane.observe_cluster(cluster_at(7)).await, Ok(None));
    let files: Vec<_> = std::fs::read_dir(directory.path().join("environments")).unwrap().flatten().collect();
    assert_eq!(files.len(), 1);
    assert!(!std::fs::read_to_string(files[0].path()).unwrap().contains(SECRET));
}

#[tokio::test]
async fn components_log_each_line_once() {
    let said: Arc<Mutex<Vec<LogLine>>> = Arc::default();
    let ear = Arc::clone(&said);
    let hands = Hands::default();
    let plane = Simulated::in_memory(hands.clock())
        .logging_to(Arc::new(move |lines| ear.lock().unwrap().extend(lines)));
    let heard = || std::mem::take(&mut *said.lock().unwrap());
    plane.apply(&environment(1, 1)).await.unwrap();
    let first = heard();
    let of = |source: &str| -> Vec<String> {
        first.iter().filter(|line| line.source == source).map(|line| line.text.clone()).collect()
    };
    assert_eq!(
        of("scheduler"),
        [
            "[1970-01-01T00:00:00.000Z] {cli_action_loggers.py:76} INFO - Starting scheduler, runtime 3.3.2, image image-1",
            "[1970-01-01T00:00:00.000Z] {scheduler_job_runner.py:1033} INFO - Starting the scheduler",
            "[1970-01-01T00:00:00.000Z] {scheduler_job_runner.py:1950} INFO - Adopting or resetting orphaned tasks: 0 found",
        ]
    );
    for source in ["apiserver", "dag-processor", "triggerer", "worker"] {
        assert_eq!(of(source).len(), 3, "{source}");
    }
    assert!(first.iter().all(|line| line.deployment_id == id(1) && !line.text.contains(SECRET)));
    plane.apply(&environment(1, 1)).await.unwrap();
    plane.observe(&at(1)).await.unwrap();
    assert_eq!(heard(), [], "asking for what is there says nothing");
    plane.script().lock().rollout = Duration::from_secs(1);
    plane.apply(&asleep(environment(1, 1))).await.unwrap();
    assert!(heard().iter().all(|line| line.text.contains("Received SIGTERM")));
    plane.apply(&environment(1, 2)).await.unwrap();
    assert_eq!(heard().len(), 10);
    hands.set(1000);
    plane.observe(&at(1)).await.unwrap();
    plane.observe(&at(1)).await.unwrap();
    assert_eq!(heard().len(), 5, "once they are up they say so once");
}

/// A plane in a directory, opened again and again.
struct Kept(tempfile::TempDir);

impl crate::conformance::Reopened for Kept {
    type Plane = Simulated;

    fn open(&self) -> Simulated {
        Simulated::in_directory(self.0.path(), Hands::default().clock()).unwrap()
    }

    fn environment(&self, generation: i64) -> Environment {
        environment(1, generation)
    }
}

#[tokio::test]
async fn it_passes_the_conformance_test() {
    crate::conformance::conforms(&Kept(tempfile::tempdir().unwrap())).await;
}
