//! Isolation on loopback: ports that cannot be taken, a broker with a password, users that are never reused.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use podium_domain::deployments::plan::{Health, Rollout};

use super::fixture::{Fixture, eventually};
use super::services::key;
use crate::DataPlane as _;
use crate::blocking::allow_blocking;
use crate::local::options::Broker;
use crate::local::process::{group_of, pids};
use crate::local::sockets;
use crate::local::tasks::tests::queue;

/// The sockets on which any process of a group listens, by inode number.
fn listening(group: i32) -> usize {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let all: BTreeSet<String> = tables
        .iter()
        .flat_map(|table| table.lines())
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.get(3) == Some(&"0A"))
        .filter_map(|fields| fields.get(9).map(|inode| format!("socket:[{inode}]")))
        .collect();
    let members = allow_blocking(pids).filter(|pid| group_of(*pid) == Some(group));
    let held =
        members.flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let links = held.filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter(|link| all.contains(&link.display().to_string())).count()
}

#[tokio::test]
async fn a_broker_listens_on_no_port_and_requires_its_password() {
    let Broker::Own(redis) = Broker::find(None) else {
        // There is none on this machine.
        return;
    };
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open_with(|options, _| options.broker = Broker::Own(redis));
    let mut environment = fixture.environment(1);
    environment.spec.worker_queues = vec![queue("default", 1), queue("heavy", 1)];
    plane.apply(&environment).await.unwrap();
    let is_up = |health: &Health| *health == Health::Up;
    fixture
        .until(&plane, |seen| {
            seen.rollout == Rollout::Done && seen.components.iter().all(|part| is_up(&part.health))
        })
        .await;
    let socket = fixture.place().temporary().join("broker.sock");
    eventually(|| UnixStream::connect(&socket).is_ok()).await;
    let ask = |question: &str| {
        let mut stream = UnixStream::connect(&socket).unwrap();
        stream.write_all(question.as_bytes()).unwrap();
        stream.shutdown(std::net::Shutdown::Write).unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        said
    };
    assert!(ask("PING\r\n").starts_with("-NOAUTH"), "{}", ask("PING\r\n"));
    assert!(ask("AUTH guess\r\nPING\r\n").contains("-WRONGPASS"));
    assert_eq!(ask(&format!("AUTH {}\r\nPING\r\n", key(fixture.id, "broker"))), "+OK\r\n+PONG\r\n");
    assert_eq!(
        fs::metadata(&socket).unwrap().permissions().mode() & 0o077,
        0,
        "it is the environment's alone"
    );
    assert_eq!(listening(fixture.processes()["broker"].pid), 0);
    assert!(listening(fixture.processes()["apiserver"].pid) > 0, "this is how it would show");
    plane.remove(&fixture.at()).await.unwrap();
    fixture.until_gone(&plane).await;
}

#[tokio::test]
async fn a_web_servers_port_is_outside_the_ephemeral_range() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let web_server = plane.web_server(&fixture.at()).await.unwrap().unwrap();
    assert!(sockets::is_in_our_range(web_server.upstream.port), "{}", web_server.upstream);
}

#[tokio::test]
async fn nothing_is_sent_to_a_socket_that_is_not_held() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    // The next start cannot take it back, as where the kernel forbids that.
    fs::write(fixture.path("told").join("hidden-socket"), "").unwrap();
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let before =
        (fixture.processes()["apiserver"].clone(), plane.web_server(&fixture.at()).await.unwrap().unwrap());
    drop(plane);
    fixture.clear_script("hidden-socket");
    let plane = fixture.open();
    assert_eq!(plane.web_server(&fixture.at()).await.unwrap(), None, "whoever listens there may be anybody");
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    eventually(|| fixture.starts("api-server").len() == 2).await;
    assert!(!before.0.is_alive());
    assert_eq!(plane.web_server(&fixture.at()).await.unwrap(), Some(before.1), "and it is where it was");
    assert_eq!(fixture.starts("scheduler").len(), 1, "nobody else has to restart");
}

#[tokio::test]
async fn the_user_of_a_removed_environment_is_never_reused() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    let mut slots = BTreeSet::new();
    for generation in 1..=3 {
        fixture.bring_up(&plane, &fixture.environment(generation)).await;
        assert!(slots.insert(fixture.state().slot), "{slots:?}");
        plane.remove(&fixture.at()).await.unwrap();
        fixture.until_gone(&plane).await;
    }
    drop(plane);
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(4)).await;
    assert!(slots.insert(fixture.state().slot), "after a restart, too: {slots:?}");
}
