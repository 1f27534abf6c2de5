//! Conformance test that every data plane must pass: the loops rely on this behaviour.

use podium_domain::deployments::plan::{Health, Observed, Rollout};

use crate::{Changed, DataPlane, Environment, Location};

/// A plane that can be reopened, as after a restart of the control plane.
pub trait Reopened {
    type Plane: DataPlane;

    /// Opens it, with what is left of it from before.
    fn open(&self) -> Self::Plane;

    /// An environment that runs on it, always the same one.
    fn environment(&self, generation: i64) -> Environment;
}

/// Takes a plane through the life cycle of one environment.
pub async fn conforms(fixture: &impl Reopened) {
    let plane = fixture.open();
    let environment = fixture.environment(1);
    let at = &Location { id: environment.id, namespace: environment.namespace, cluster: None };
    assert_eq!(plane.changes().try_next(), Some(Changed::Everything), "nobody knows what happened before");
    assert_eq!(plane.observe(at).await, Ok(None));
    assert_eq!(plane.web_server(at).await, Ok(None));
    plane.remove(at).await.expect("what is not there is removed already");

    plane.apply(&fixture.environment(2)).await.expect("it takes note");
    until(&plane, &fixture.environment(2), is_up).await;
    plane.apply(&fixture.environment(2)).await.expect("calls may be repeated");
    plane.apply(&fixture.environment(1)).await.expect("it takes note");
    let seen = until(&plane, &fixture.environment(2), is_up).await;
    assert_eq!(seen.generation, 2, "whoever was overtaken changes nothing");

    drop(plane);
    let plane = fixture.open();
    assert_eq!(plane.changes().try_next(), Some(Changed::Everything));
    let seen = plane.observe(at).await.expect("it answers").expect("it is still there");
    assert!(seen.generation <= 2, "it never claims more than it was told: {seen:?}");
    plane.apply(&fixture.environment(2)).await.expect("it takes note");
    until(&plane, &fixture.environment(2), is_up).await;

    let mut asleep = fixture.environment(3);
    asleep.is_hibernating = true;
    plane.apply(&asleep).await.expect("it takes note");
    until(&plane, &asleep, |seen| seen.rollout == Rollout::Done && seen.is_hibernating).await;
    assert_eq!(plane.web_server(at).await, Ok(None), "nothing answers in its sleep");

    plane.remove(at).await.expect("it takes note");
    plane.remove(at).await.expect("calls may be repeated");
    let mut changes = plane.changes();
    while plane.observe(at).await.expect("it answers").is_some() {
        changes.next().await;
    }
    drop(plane);
    assert_eq!(fixture.open().observe(at).await, Ok(None), "nothing brings it back");
}

fn is_up(seen: &Observed) -> bool {
    let are_up = seen.components.iter().all(|component| component.health == Health::Up);
    seen.rollout == Rollout::Done && are_up && !seen.components.is_empty()
}

async fn until(
    plane: &impl DataPlane,
    environment: &Environment,
    is_so: impl Fn(&Observed) -> bool,
) -> Observed {
    let at = Location::unknown(environment.id);
    let mut changes = plane.changes();
    loop {
        let seen = plane.observe(&at).await.expect("it answers").expect("it is there");
        if seen.generation == environment.generation && is_so(&seen) {
            return seen;
        }
        changes.next().await;
    }
}
