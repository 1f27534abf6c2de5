//! Missing prerequisites are reported, and nothing is published before it works.

use std::fs;
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use podium_domain::deployments::plan::{Health, Rollout};

use super::fixture::{Fixture, detail, eventually, eventually_some, kill, program, trouble};
use crate::DataPlane as _;
use crate::local::identity::Identity;

#[tokio::test]
async fn a_machine_without_python_says_what_to_install() {
    let fixture = Fixture::new();
    let plane = fixture.open_with(|options, _| options.python = Some("/bin/false".into()));
    plane.apply(&fixture.environment(1)).await.unwrap();
    let seen = fixture.until(&plane, |seen| trouble(seen, "runtime").is_some()).await;
    assert!(trouble(&seen, "runtime").unwrap().contains("apt install python3"));
    assert_eq!((seen.rollout, seen.generation), (Rollout::Underway, 1));
    plane.remove(&fixture.at()).await.unwrap();
    fixture.until_gone(&plane).await;
}

#[tokio::test]
async fn the_output_of_an_installer_is_for_operators_only() {
    let fixture = Fixture::new();
    let said = "error: failed to open /srv/secret/cache/wheel.whl (SELECT 1)";
    let script = format!(
        "#!/bin/sh\ncase \"$1\" in\n  venv) for made do :; done; mkdir -p \"$made\";;\n  \
         pip) echo '{said}' >&2; exit 2;;\nesac\n"
    );
    let installer = fixture.plane().join("tools/uv/bin/uv");
    fs::create_dir_all(installer.parent().unwrap()).unwrap();
    program(&installer, &script);
    let plane = fixture.open();
    plane.apply(&fixture.environment(1)).await.unwrap();
    let has_failed = |why: String| why == "installing Apache Airflow 3.3.2 failed";
    let seen = fixture.until(&plane, |seen| trouble(seen, "runtime").is_some_and(has_failed)).await;
    let why = detail(&seen, "runtime").unwrap();
    assert!(why.contains(said) && why.contains("exit status: 2"), "{why}");
}

#[tokio::test]
async fn a_web_server_is_not_published_before_it_responds() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    fixture.set_script("api-server", "while [ ! -e \"$told/go\" ]; do sleep 0.01; done");
    let plane = fixture.open();
    plane.apply(&fixture.environment(1)).await.unwrap();
    let seen = fixture.until(&plane, |seen| trouble(seen, "apiserver").is_some()).await;
    assert_eq!(trouble(&seen, "apiserver").unwrap(), "it is not serving requests yet");
    assert_eq!(plane.web_server(&fixture.at()).await, Ok(None));
    fs::write(fixture.path("told").join("go"), "").unwrap();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    assert!(plane.web_server(&fixture.at()).await.unwrap().is_some());
}

#[tokio::test]
async fn hibernating_ends_everything_and_waking_finds_the_same_database() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let (before, database) = (fixture.processes(), fixture.place().database_file());
    fs::write(&database, "what was learned").unwrap();
    let mut asleep = fixture.environment(2);
    asleep.is_hibernating = true;
    plane.apply(&asleep).await.unwrap();
    let seen = fixture.until(&plane, |seen| seen.rollout == Rollout::Done).await;
    assert!(seen.is_hibernating && seen.components.is_empty());
    assert!(before.values().all(|identity| !identity.is_alive()));
    assert!(fixture.processes().is_empty());
    assert_eq!(plane.web_server(&fixture.at()).await, Ok(None));
    fixture.bring_up(&plane, &fixture.environment(3)).await;
    assert_eq!(fs::read_to_string(&database).unwrap(), "what was learned");
}

#[tokio::test]
async fn no_process_can_take_the_port_of_a_restarting_web_server() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let web_port = fixture.state().web_port;
    let rival = || TcpListener::bind((Ipv4Addr::LOCALHOST, web_port)).map(drop);
    fixture.set_script("api-server", "echo cannot yet; exit 1");
    kill(&fixture.processes()["apiserver"]);
    fixture
        .until(&plane, |seen| detail(seen, "apiserver").is_some_and(|why| why.contains("cannot yet")))
        .await;
    assert!(rival().is_err(), "it is held while nobody serves");
    // Whoever asks meanwhile waits, and is not refused.
    let waiting = TcpStream::connect((Ipv4Addr::LOCALHOST, web_port)).unwrap();
    fixture.clear_script("api-server");
    fixture.until(&plane, |seen| seen.components.iter().all(|one| one.health == Health::Up)).await;
    drop(waiting);
    assert_eq!(fixture.state().web_port, web_port);
    drop(plane);
    assert!(rival().is_err(), "its process holds it while the control plane is away");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    fixture.set_script("api-server", "echo cannot again; exit 1");
    kill(&fixture.processes()["apiserver"]);
    fixture
        .until(&plane, |seen| detail(seen, "apiserver").is_some_and(|why| why.contains("cannot again")))
        .await;
    assert!(rival().is_err(), "a socket that was taken back is held, too");
}

#[tokio::test]
async fn a_port_that_was_taken_while_nothing_ran_is_replaced() {
    let fixture = Fixture::new().with_runtime("3.3.2");
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let (web_port, processes) = (fixture.state().web_port, fixture.processes());
    drop(plane);
    processes.values().for_each(kill);
    eventually(|| !processes.values().any(Identity::is_alive)).await;
    let somebody_else = eventually_some(|| TcpListener::bind((Ipv4Addr::LOCALHOST, web_port)).ok()).await;
    let plane = fixture.open();
    fixture.bring_up(&plane, &fixture.environment(1)).await;
    let web_server = plane.web_server(&fixture.at()).await.unwrap().unwrap();
    assert_ne!(web_server.upstream.port, web_port);
    assert_eq!(web_server.upstream.port, fixture.state().web_port);
    drop(somebody_else);
}
