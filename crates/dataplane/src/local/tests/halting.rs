//! The operator stops an environment: it drains, stays stopped, and takes up what was wanted meanwhile.

use std::fs;

use podium_domain::deployments::plan::{Observed, Rollout};
use podium_domain::deployments::rollout::RolloutStep;

use super::fixture::{Fixture, eventually, trouble};
use crate::DataPlane as _;
use crate::local::identity::Identity;
use crate::local::state::{Stop, StoppableEnvironment, stoppable_environments};

const WHY: &str =
    "the operator of its machine stopped it with `podium stop`. Run `podium start` to start it again";

fn environment(fixture: &Fixture) -> StoppableEnvironment {
    let mut found = stoppable_environments(&fixture.plane()).unwrap();
    assert_eq!(found.len(), 1);
    found.remove(0)
}

fn is_stopped(seen: &Observed) -> bool {
    trouble(seen, "environment").as_deref() == Some(WHY)
}

#[tokio::test]
async fn a_stopped_environment_stays_stopped_until_it_is_started() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    let stopped = environment(&fixture);
    assert_eq!((stopped.id, stopped.namespace.as_str()), (fixture.id, "calm-river-1234"));
    assert!(!stopped.is_marked() && !stopped.is_at_rest().unwrap());
    fs::write(fixture.path("told").join("busy"), "").unwrap();
    stopped.mark(Stop::Drain).unwrap();
    let drains =
        |seen: &Observed| seen.progress.as_ref().is_some_and(|progress| progress.step == RolloutStep::Drain);
    fixture.until(&plane, drains).await;
    assert!(before.values().all(Identity::is_alive), "its tasks may finish");
    fs::remove_file(fixture.path("told").join("busy")).unwrap();
    let seen = fixture.until(&plane, is_stopped).await;
    assert_eq!(seen.rollout, Rollout::Done, "nothing is on its way");
    assert!(!before.values().any(Identity::is_alive) && stopped.is_at_rest().unwrap());
    assert_eq!(plane.web_server(&fixture.at()).await, Ok(None));
    // After a restart, and after one without a desired state yet.
    drop(plane);
    let plane = fixture.open();
    for _ in 0..2 {
        let seen = plane.observe(&fixture.at()).await.unwrap().expect("it is there");
        assert!(is_stopped(&seen) && seen.rollout == Rollout::Done, "{seen:?}: a restart changes nothing");
        plane.apply(&fixture.environment(1)).await.unwrap();
    }
    fixture.until(&plane, |seen| seen.generation == 1 && is_stopped(seen)).await;
    // A change is accepted, and waits.
    plane.apply(&fixture.environment(2)).await.unwrap();
    let seen = fixture.until(&plane, |seen| seen.generation == 2 && is_stopped(seen)).await;
    assert_eq!(seen.rollout, Rollout::Underway);
    assert!(fixture.processes().is_empty());
    stopped.unmark().unwrap();
    fixture.bring_up(&plane, &fixture.environment(2)).await;
    assert!(!stopped.is_at_rest().unwrap());
    stopped.mark(Stop::Drain).unwrap();
    fixture.until(&plane, is_stopped).await;
    plane.remove(&fixture.at()).await.unwrap();
    fixture.until_gone(&plane).await;
    assert!(stoppable_environments(&fixture.plane()).unwrap().is_empty());
}

#[tokio::test]
async fn without_a_desired_state_it_is_stopped_as_well() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before = fixture.processes();
    drop(plane);
    environment(&fixture).mark(Stop::Drain).unwrap();
    assert!(before.values().all(Identity::is_alive), "nobody is there to stop it");
    let plane = fixture.open();
    fixture.until(&plane, is_stopped).await;
    assert!(!before.values().any(Identity::is_alive));
    assert!(!fixture.place().drain().exists(), "the next scheduler accepts tasks");
}

#[tokio::test]
async fn a_stop_that_waits_for_tasks_can_be_hurried_or_taken_back() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let stopped = environment(&fixture);
    fs::write(fixture.path("told").join("busy"), "").unwrap();
    stopped.mark(Stop::Drain).unwrap();
    eventually(|| fixture.place().drain().exists()).await;
    stopped.unmark().unwrap();
    eventually(|| !fixture.place().drain().exists()).await;
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert_eq!(fixture.starts("scheduler").len(), 1, "it was not stopped");
    stopped.mark(Stop::Drain).unwrap();
    eventually(|| fixture.place().drain().exists()).await;
    stopped.mark(Stop::Now).unwrap();
    fixture.until(&plane, is_stopped).await;
}
