//! Planes beside each other answer for what is theirs.

use podium_api::{ClusterId, DeploymentId, Id, Timestamp};

use super::*;
use crate::simulated::Simulated;
use crate::{Changed, EnvironmentMetrics};

const PATIENCE: Duration = Duration::from_secs(60);

fn plane(kind: PlaneKind) -> Arc<Simulated> {
    Arc::new(Simulated::in_memory(Arc::new(|| Timestamp::from_millis(0))).in_place_of(kind))
}

fn at(number: u32, plane: Option<PlaneKind>) -> Location {
    let id = |number| Id::from_parts(0, number, 0);
    let cluster = plane.map(|_| ClusterLocation { id: ClusterId::from_raw(id(900)), plane });
    Location { id: DeploymentId::from_raw(id(number)), namespace: String::new(), cluster }
}

#[tokio::test]
async fn each_is_asked_for_its_own_and_one_that_is_missing_hides_no_other() {
    let (own, other) = (plane(PlaneKind::Simulated), plane(PlaneKind::Kubernetes));
    let metrics = |at: &Location| EnvironmentMetrics { id: at.id, components: Vec::new(), disk: None };
    let (here, there) = (at(1, None), at(2, Some(PlaneKind::Kubernetes)));
    let lost = at(3, Some(PlaneKind::Local));
    own.script().lock().metrics = vec![metrics(&here), metrics(&there)];
    other.script().lock().metrics = vec![metrics(&there)];
    let planes = Planes::new(own, [other as Arc<dyn DataPlane>]);
    let (told, problem) = planes.metrics(&[here.clone(), there.clone(), lost.clone()], PATIENCE).await;
    assert_eq!(told.iter().map(|one| one.id).collect::<Vec<_>>(), [here.id, there.id]);
    let problem = problem.expect("one does not answer").to_string();
    assert!(problem.contains("local, which this server was started without"), "{problem}");
    assert!(planes.of(&lost).observe(&lost).await.unwrap_err().is_unreachable());
}

#[tokio::test]
async fn one_that_takes_too_long_hides_no_other() {
    let (own, slow) = (plane(PlaneKind::Simulated), plane(PlaneKind::Kubernetes));
    let (here, there) = (at(1, None), at(2, Some(PlaneKind::Kubernetes)));
    own.script().lock().metrics =
        vec![EnvironmentMetrics { id: here.id, components: Vec::new(), disk: None }];
    slow.script().lock().measures_forever = true;
    let planes = Planes::new(own, [slow as Arc<dyn DataPlane>]);
    let (told, problem) = planes.metrics(&[here.clone(), there], Duration::ZERO).await;
    assert_eq!(told.iter().map(|one| one.id).collect::<Vec<_>>(), [here.id]);
    assert_eq!(problem.expect("one does not answer").to_string(), NOT_IN_TIME);
}

#[tokio::test]
async fn the_changes_of_all_arrive_and_the_end_of_one_is_not_the_end() {
    let (own, other) = (plane(PlaneKind::Simulated), plane(PlaneKind::Kubernetes));
    let mut changes = Changes::merged([own.changes(), other.changes()].into_iter());
    assert_eq!(changes.next().await, Some(Changed::Everything));
    assert_eq!(changes.try_next(), None);
    other.script().clean_ups_are(None);
    assert_eq!(changes.next().await, Some(Changed::Everything));
    drop(own);
    other.script().clean_ups_are(None);
    assert_eq!(changes.try_next(), Some(Changed::Everything));
    drop(other);
    assert_eq!(changes.next().await, None);
}
