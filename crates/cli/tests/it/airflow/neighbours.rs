//! What an author does to the neighbours on the same machine, with the means that every task has.

use std::collections::BTreeSet;
use std::fs;

use serde_json::json;

use super::world::{Environment, World};

/// Tries to take ports, and to enter its own web server and a neighbour's with what its own would believe.
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
    let doors = [("own", door(&attacker, mine[0])), ("other", door(neighbour, theirs[0]))];
    // Outside of what the kernel picks from, where anybody may listen.
    world.deploy(&attacker, &dag(&[18_998, 18_999], &doors));
    world.run_to_the_end(&attacker);
    for (said, times) in
        [("own signed 200", 1), ("own bare 401", 1), ("other signed 403", 1), ("other bare 401", 1)]
    {
        world.wait_for_lines(&attacker, &format!("\"{said}\""), times);
    }
    world.wait_for_lines(&attacker, "\"no-new-privileges 1\"", 1);
    if has_rules_for_ports() {
        assert_eq!(world.count_lines(&attacker, "\"port-taken\""), 0);
        assert_eq!(world.count_lines(&attacker, "\"port-refused\""), 4);
    }
    world.remember_traces(&mut attacker);
    world.delete(&attacker);
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
