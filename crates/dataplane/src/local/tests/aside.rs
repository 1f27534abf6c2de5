//! An environment that another machine now runs is stopped here, and nothing of it is deleted.

use std::fs;

use super::fixture::Fixture;
use crate::{DataPlane as _, Machine as _};

#[tokio::test]
async fn an_environment_of_another_machine_is_stopped_and_set_aside() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert!(plane.machine().is_some());
    assert_eq!(plane.environments(), [fixture.id]);
    let processes = fixture.processes();
    drop(plane);
    let plane = fixture.open();
    assert_eq!(plane.environments(), [fixture.id], "also after a restart");
    let root = fixture.place().root;
    // The same environment, which another plane of this machine runs.
    let (name, value) = podium_airflow::settings::marker(fixture.id);
    let mut other = std::process::Command::new("sleep").arg("1000").env(name, value).spawn().unwrap();
    plane.set_aside(fixture.id).await.unwrap();
    assert!(processes.values().all(|identity| !identity.is_alive()));
    assert_eq!(other.try_wait().unwrap(), None, "what another plane runs is let be");
    other.kill().unwrap();
    other.wait().unwrap();
    assert_eq!((plane.environments(), plane.observe(&fixture.at()).await), (vec![], Ok(None)));
    assert!(!root.exists());
    let aside = fixture.plane().join("set-aside").join(format!("{}.1", fixture.id));
    assert!(fs::exists(aside.join("database/airflow.db")).unwrap(), "nothing is deleted");
    plane.set_aside(fixture.id).await.unwrap();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    plane.set_aside(fixture.id).await.unwrap();
    assert!(aside.with_extension("2").exists(), "as often as it takes");
    assert_eq!(fixture.open().environments(), []);
}
