//! Attacks of an author on other environments on the same machine, with the means of a task.

use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, UdpSocket};

use serde_json::{Map, Value, json};

use super::world::{Environment, World};

/// Tries to take ports, and to enter its own web server and others with what its own would believe.
fn dag(ports: &[u16], doors: &[(&str, String)]) -> String {
    format!(
        r#"
import os, socket, time, urllib.error, urllib.request

import jwt
from airflow.decorators import dag, task


@dag(schedule=None)
def hello():
    @task(queue="heavy")
    def attack():
        for port in {ports:?}:
            for protocol in (0, 262):
                try:
                    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, protocol) as taken:
                        taken.bind(("127.0.0.1", port))
                    print("port-taken", port)
                except OSError:
                    print("port-refused", port)
        now = int(time.time())
        claims = {{"sub": "x", "role": "ADMIN", "aud": "apache-airflow", "iat": now, "nbf": now, "exp": now + 60}}
        token = jwt.encode(claims, os.environ["AIRFLOW__API_AUTH__JWT_SECRET"], algorithm="HS512")
        for door, url in {doors:?}:
            for name, headers in (("signed", {{"Authorization": "Bearer " + token}}), ("bare", {{}})):
                try:
                    status = urllib.request.urlopen(urllib.request.Request(url, headers=headers)).status
                except urllib.error.HTTPError as error:
                    status = error.code
                except urllib.error.URLError as error:
                    status = type(error.reason).__name__
                print(door, name, status)
        print("no-new-privileges", open("/proc/self/status").read().split("NoNewPrivs:")[1].split()[0])

    attack()


hello()
"#
    )
}

/// An environment with a broker and workers keeps to itself, whatever its tasks try.
pub(super) fn an_environment_keeps_to_itself(world: &World, neighbour: &Environment) {
    world.say("an environment with workers keeps to itself");
    let queue = |name: &str| {
        json!({ "name": name, "isDefault": name == "default", "maxWorkerCount": 1, "minWorkerCount": 1,
                "workerConcurrency": 1, "platformMachine": "A5" })
    };
    let settings = json!({ "isDevelopmentMode": true, "executor": "CELERY", "workerQueues": [queue("default"), queue("heavy")] });
    let mut attacker = world.create("attacker", &settings);
    world.wait_for_status(&attacker, "HEALTHY");
    let (mine, theirs) = (world.ports(&attacker), world.ports(neighbour));
    assert_eq!(listening(world, &attacker), mine, "nothing of it but its web server listens");
    let door = |environment: &Environment, port: u16| {
        format!("http://127.0.0.1:{port}/airflow/{}/api/v2/dags", environment.namespace)
    };
    let outside = Outside::open();
    let doors = [
        ("own", door(&attacker, mine[0])),
        ("other", door(neighbour, theirs[0])),
        ("console", format!("http://{}/healthz", world.program().address)),
        ("world", outside.url.clone()),
    ];
    // Outside of what the kernel picks from, where anybody may listen.
    world.deploy(&attacker, &dag(&[18_998, 18_999], &doors));
    world.run_to_the_end(&attacker);
    // With a network of its own it does not even get to speak to others. Where it has none every door asks for a secret.
    let (signed, bare, console) = match world.has_networks(&attacker) {
        true => ("ConnectionRefusedError", "ConnectionRefusedError", "ConnectionRefusedError"),
        false => ("403", "401", "200"),
    };
    let heard = |times: usize| {
        for said in [
            "own signed 200".to_owned(),
            "own bare 401".to_owned(),
            format!("other signed {signed}"),
            format!("other bare {bare}"),
            format!("console bare {console}"),
            "world bare 200".to_owned(),
        ] {
            world.wait_for_lines(&attacker, &format!("\"{said}\""), times);
        }
    };
    heard(1);
    world.wait_for_lines(&attacker, "\"no-new-privileges 1\"", 1);
    if has_rules_for_ports() {
        assert_eq!(world.count_lines(&attacker, "\"port-taken\""), 0);
        assert_eq!(world.count_lines(&attacker, "\"port-refused\""), 4);
    }
    if world.has_networks(&attacker) {
        world.say("whoever leads out of its network is killed, and its tasks reach the same again");
        let before = world.processes(&attacker);
        world.kill_uplink(&attacker);
        world.wait_until("another one leads out", || {
            let now = world.processes(&attacker);
            let is_same = |(name, process): (&String, &Value)| {
                if name.starts_with("uplink-") { *process != before[name] } else { *process == before[name] }
            };
            now.as_object().is_some_and(|now| {
                now.len() == before.as_object().map_or(0, Map::len) && now.iter().all(is_same)
            })
        });
        world.wait_for_status(&attacker, "HEALTHY");
        world.run_to_the_end(&attacker);
        heard(2);
    }
    world.remember_traces(&mut attacker);
    world.delete(&attacker);
}

/// Somebody on an address of this machine that is not loopback: the nearest part of the world.
struct Outside {
    url: String,
}

impl Outside {
    fn open() -> Self {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        socket.connect("198.51.100.1:9").expect("this machine has a network");
        let address = socket.local_addr().expect("it has an address").ip();
        let listener = TcpListener::bind((address, 0)).expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("it listens"));
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let _ = stream.read(&mut [0; 4096]);
                let _ =
                    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        Self { url }
    }
}

/// The ports that anybody of an environment listens on.
fn listening(world: &World, environment: &Environment) -> Vec<u16> {
    let held = world.descendants(environment).into_iter().flat_map(|pid| {
        let open = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        open.filter_map(|entry| fs::read_link(entry.path()).ok()).map(|link| link.display().to_string())
    });
    let held: BTreeSet<String> = held.collect();
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
    let lines = tables.iter().flat_map(|table| table.lines().skip(1));
    let fields = lines.map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    let listening =
        fields.filter(|fields| fields[3] == "0A" && held.contains(&format!("socket:[{}]", fields[9])));
    let port = |fields: Vec<&str>| u16::from_str_radix(fields[1].rsplit(':').next()?, 16).ok();
    listening.filter_map(port).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Whether the kernel is one that can keep ports from tasks.
fn has_rules_for_ports() -> bool {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").expect("Linux says which it is");
    let mut numbers = text.split(['.', '-']).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(7))
}
