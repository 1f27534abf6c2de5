//! What an environment has on loopback is its own: ports that cannot be taken, a broker that asks for a password, users
//! that nobody had before.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use podium_domain::deployments::plan::{Health, Rollout};

use super::bed::{Bed, eventually};
use super::services::key;
use crate::DataPlane as _;
use crate::blocking::here;
use crate::local::options::Broker;
use crate::local::ports;
use crate::local::process::{group_of, numbers};
use crate::local::tasks::tests::queue;

/// The sockets on which anybody of a process group listens, by the kernel's numbers for them.
fn listening(group: i32) -> usize {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let all: BTreeSet<String> = tables
        .iter()
        .flat_map(|table| table.lines())
        .map(|line| line.split_ascii_whitespace().collect::<Vec<_>>())
        .filter(|fields| fields.get(3) == Some(&"0A"))
        .filter_map(|fields| fields.get(9).map(|inode| format!("socket:[{inode}]")))
        .collect();
    let members = here(numbers).filter(|pid| group_of(*pid) == Some(group));
    let held =
        members.flat_map(|pid| fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten());
    let links = held.filter_map(|entry| fs::read_link(entry.path()).ok());
    links.filter(|link| all.contains(&link.display().to_string())).count()
}

#[tokio::test]
async fn a_broker_listens_on_no_port_and_answers_nobody_without_the_password() {
    let Broker::Own(redis) = Broker::find(None) else {
        // There is none on this machine.
        return;
    };
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open_with(|options, _| options.broker = Broker::Own(redis));
    let mut environment = bed.environment(1);
    environment.worker_queues = vec![queue("default", 1), queue("heavy", 1)];
    plane.apply(&environment).await.unwrap();
    let is_up = |health: &Health| *health == Health::Up;
    bed.until(&plane, |seen| {
        seen.rollout == Rollout::Done && seen.components.iter().all(|part| is_up(&part.health))
    })
    .await;
    let socket = bed.place().temporary().join("broker.sock");
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
    assert_eq!(ask(&format!("AUTH {}\r\nPING\r\n", key(bed.id, "broker"))), "+OK\r\n+PONG\r\n");
    assert_eq!(
        fs::metadata(&socket).unwrap().permissions().mode() & 0o077,
        0,
        "it is the environment's alone"
    );
    assert_eq!(listening(bed.processes()["broker"].pid), 0);
    assert!(listening(bed.processes()["apiserver"].pid) > 0, "this is how it would show");
    plane.remove(bed.id).await.unwrap();
    bed.until_gone(&plane).await;
}

#[tokio::test]
async fn a_web_servers_port_is_none_that_the_kernel_gives_away() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let door = plane.door(bed.id).await.unwrap().unwrap();
    assert!(ports::are_for_us(door.address.port()), "{}", door.address);
}

#[tokio::test]
async fn nothing_is_sent_to_a_socket_that_is_not_held() {
    let bed = Bed::new().with_runtime("3.3.2");
    // The next start cannot take it back, as where the kernel forbids that.
    fs::write(bed.path("told").join("hidden-socket"), "").unwrap();
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(1)).await;
    let before = (bed.processes()["apiserver"].clone(), plane.door(bed.id).await.unwrap().unwrap());
    drop(plane);
    bed.untell("hidden-socket");
    let plane = bed.open();
    assert_eq!(plane.door(bed.id).await.unwrap(), None, "whoever listens there may be anybody");
    bed.bring_up(&plane, &bed.environment(1)).await;
    eventually(|| bed.starts("api-server").len() == 2).await;
    assert!(!before.0.is_alive());
    assert_eq!(plane.door(bed.id).await.unwrap(), Some(before.1), "and it is where it was");
    assert_eq!(bed.starts("scheduler").len(), 1, "nobody else has to restart");
}

#[tokio::test]
async fn the_user_of_an_environment_that_is_gone_is_nobodys_ever_after() {
    let bed = Bed::new().with_runtime("3.3.2");
    let plane = bed.open();
    let mut slots = BTreeSet::new();
    for generation in 1..=3 {
        bed.bring_up(&plane, &bed.environment(generation)).await;
        assert!(slots.insert(bed.state().slot), "{slots:?}");
        plane.remove(bed.id).await.unwrap();
        bed.until_gone(&plane).await;
    }
    drop(plane);
    let plane = bed.open();
    bed.bring_up(&plane, &bed.environment(4)).await;
    assert!(slots.insert(bed.state().slot), "after a restart, too: {slots:?}");
}
