//! Two servers on one PostgreSQL, each with environments on its own machine.

use podium_testkit::Engine;
use serde_json::{Value, json};

use crate::loops::{environments, wait_until};
use crate::program::{Installation, Program};

/// Two machines whose archives are in one directory.
fn two_machines() -> [Installation; 2] {
    let mut first = Installation::on(Engine::Postgres);
    first.set("PODIUM_SIMULATED_IS_BOUND", "true");
    let shared = first.data_dir().with_file_name("shared");
    first.set("PODIUM_OBJECTS_DIR", shared.to_str().expect("text"));
    let second = first.another_machine();
    [first, second]
}

fn create(program: &Program, token: &str, name: &str) -> Value {
    let organization = program.organization(token);
    let workspaces = program.get(&format!("{organization}/workspaces"), token).json();
    let body = json!({ "name": name, "workspaceId": workspaces["workspaces"][0]["id"] });
    program.call("POST", &format!("{organization}/deployments"), token, Some(&body)).json()
}

fn wait_for(program: &Program, token: &str, deployment: &Value, status: &str) {
    let path = format!("{}/deployments/{}", program.organization(token), id(deployment));
    wait_until(status, || program.get(&path, token).json(), |shown| shown["status"] == status);
}

fn id(deployment: &Value) -> String {
    deployment["id"].as_str().expect("an id").to_owned()
}

#[test]
fn an_environment_runs_on_one_machine_and_others_name_it() {
    let [first, second] = two_machines();
    let mut alpha = first.serve(&["--node-name", "alpha"]);
    let beta = second.serve(&["--node-name", "beta"]);
    let token = first.read("owner-token");
    let (one, two) = (create(&beta, &token, "One"), create(&alpha, &token, "Two"));
    wait_for(&beta, &token, &one, "HEALTHY");
    wait_for(&alpha, &token, &two, "HEALTHY");
    let (of_alpha, of_beta) = (environments(&first), environments(&second));
    assert_eq!((of_alpha.len(), of_beta.len()), (1, 1), "one each");
    assert_ne!(of_alpha, of_beta);
    let there = if of_alpha.contains(&id(&one)) { &one } else { &two };

    let namespace = there["namespace"].as_str().expect("a namespace");
    let answer = beta.get(&format!("/airflow/{namespace}/api/v2/dags"), &token);
    assert_eq!(answer.status, 503);
    assert!(String::from_utf8_lossy(&answer.body).contains("runs on node alpha"), "{answer:?}");
    let answer = alpha.get(&format!("/airflow/{namespace}/api/v2/dags"), &token);
    assert!(!String::from_utf8_lossy(&answer.body).contains("node"), "it is here: {answer:?}");
    let logs = format!("{}/deployments/{}/logs?sources=scheduler", beta.organization(&token), id(there));
    assert_eq!((alpha.get(&logs, &token).status, beta.get(&logs, &token).status), (200, 503));

    let list: Value = serde_json::from_str(&second.run(&["node", "list", "--json"]).stdout).expect("JSON");
    let shown: Vec<_> =
        list.as_array().expect("a list").iter().map(|row| (&row["name"], &row["deployments"])).collect();
    assert_eq!(shown, [(&json!("alpha"), &json!(1)), (&json!("beta"), &json!(1))]);
    let refused = second.run(&["node", "forget", "alpha"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("stop its server"), "{}", refused.stderr);

    // Gone for good, as far as anybody can see.
    alpha.crash();
    second.mark_node_unseen("alpha");
    let path = format!("{}/deployments/{}", beta.organization(&token), id(there));
    let table = second.run(&["node", "list"]).stdout;
    assert!(table.lines().any(|line| line.starts_with("alpha ") && line.contains(" offline ")), "{table}");
    let forgotten = second.run(&["node", "forget", "alpha"]);
    assert_eq!(forgotten.code, Some(0), "{}", forgotten.stderr);
    assert!(forgotten.stderr.contains("Airflow metadata"), "it says what is lost: {}", forgotten.stderr);
    wait_until("made anew", || environments(&second), |all| all.len() == 2);
    wait_until("healthy", || beta.get(&path, &token).json(), |shown| shown["status"] == "HEALTHY");

    // It comes back, and leaves alone what others run.
    let alpha = first.serve(&["--node-name", "alpha"]);
    assert!(environments(&first).is_empty(), "{}", alpha.said());
    assert_eq!(beta.call("DELETE", &path, &token, None).status, 204);
    wait_until("cleaned up", || environments(&second), |all| all.len() == 1);
    alpha.stop();
    beta.stop();
}

#[test]
fn a_deletion_waits_for_the_machine_and_a_name_is_one_machine_s() {
    let [first, second] = two_machines();
    let alpha = first.serve(&["--node-name", "alpha"]);
    let token = first.read("owner-token");
    let one = create(&alpha, &token, "One");
    wait_for(&alpha, &token, &one, "HEALTHY");
    alpha.stop();
    let refused = second.run(&["serve", "--listen", "127.0.0.1:0", "--node-name", "alpha"]);
    assert_eq!(refused.code, Some(1));
    assert!(refused.stderr.contains("another node is called"), "{}", refused.stderr);
    let beta = second.serve(&["--node-name", "beta"]);
    let path = format!("{}/deployments/{}", beta.organization(&token), id(&one));
    assert_eq!(beta.call("DELETE", &path, &token, None).status, 204);
    let two = create(&beta, &token, "Two");
    wait_for(&beta, &token, &two, "HEALTHY");
    let pending = second.run(&["work", "--json"]).stdout;
    assert!(pending.contains(&id(&one)), "it waits: {pending}");
    let alpha = first.serve(&["--node-name", "alpha"]);
    wait_until("cleaned up", || environments(&first), std::collections::BTreeSet::is_empty);
    wait_until("nothing pending", || first.run(&["work"]).stdout, |text| text.contains("Nothing"));
    alpha.stop();
    beta.stop();
}

#[test]
fn with_the_embedded_database_there_is_one_node() {
    let mut installation = Installation::new();
    installation.set("PODIUM_SIMULATED_IS_BOUND", "true");
    let program = installation.serve(&["--node-name", "only"]);
    let list = installation.run(&["node", "list"]).stdout;
    assert!(list.contains("only"), "{list}");
    let refused = installation.run(&["node", "forget", "only"]);
    assert!(refused.stderr.contains("one node"), "{}", refused.stderr);
    let node_id = installation.read("node-id");
    program.stop();
    installation.serve(&["--node-name", "renamed"]).stop();
    assert_eq!(installation.read("node-id"), node_id);
}
