//! What `podium.yaml` says about a deployment: made so, kept so, and nothing that it does not name is touched.

use serde_json::{Value, json};

use super::Desk;
use crate::program::Ended;

const QUEUES: &str = "queues:\n  - {name: default, platformMachine: A5, minWorkerCount: 0, maxWorkerCount: 3, \
                      workerConcurrency: 5}\n";
/// The value of every secret here.
const HIDDEN: &str = "hidden-from-everybody";

impl Desk {
    fn project(&self, text: &str) {
        if !self.folder().join("hello").exists() {
            self.shown(&["init", "hello"]);
        }
        let text = format!("deployment: hello\n{text}");
        std::fs::write(self.folder().join("hello/podium.yaml"), text).unwrap();
    }

    /// Deploys, sees that no value is shown, and gives what was said.
    #[track_caller]
    fn deploys(&self, variables: &[(&str, &str)], more: &[&str]) -> Ended {
        let arguments = [&["deploy", "hello", "--verbose"], more].concat();
        let done = self.run_as(variables, &arguments);
        assert!(!done.stderr.contains(HIDDEN) && !done.stdout.contains(HIDDEN), "{}", done.stderr);
        done
    }

    /// The same, where it must work.
    #[track_caller]
    fn deployed(&self, variables: &[(&str, &str)], more: &[&str]) -> String {
        let done = self.deploys(variables, more);
        assert_eq!(done.code, Some(0), "{}", done.stderr);
        done.stderr
    }

    fn hello(&self) -> Value {
        self.json(&["deployment", "get", "hello"])
    }

    fn connection(&self, key: &str) {
        let host = ["--set", "connection.type=postgres", "--set", "connection.host=db"];
        self.shown(
            &[&["env", "create", key, "--type", "CONNECTION", "--workspace", "Default"], &host[..]].concat(),
        );
    }
}

/// The audit records of updates of deployments and environment objects.
fn updates(desk: &Desk) -> Vec<String> {
    let is_update =
        |line: &&str| line.contains("UpdateDeployment") || line.contains("UpdateEnvironmentObject");
    desk.shown(&["audit", "export"]).lines().filter(is_update).map(str::to_owned).collect()
}

#[test]
fn a_deployment_is_made_with_everything_and_then_left_alone() {
    let desk = Desk::signed_in();
    desk.connection("warehouse");
    desk.project(&format!("runtime: 3.2.2\n{QUEUES}variables: [API_KEY, OF_FILE]\nlinks: [warehouse]\n"));
    std::fs::write(desk.folder().join("hello/.env"), format!("OF_FILE='{HIDDEN}'\n")).unwrap();
    let said = desk.deployed(&[("API_KEY", HIDDEN)], &["--create"]);
    assert!(said.contains("Created deployment hello.\n"), "{said}");
    assert!(said.contains("Changed hello as podium.yaml says: link warehouse.\n"), "{said}");
    let hello = desk.hello();
    assert_eq!(hello["platformRuntimeVersion"], "3.2.2");
    assert_eq!(hello["workerQueues"][0]["maxWorkerCount"], 3);
    let shown = |variable: &Value| (variable["key"].clone(), variable["isSecret"].clone());
    let variables: Vec<_> = hello["environmentVariables"].as_array().unwrap().iter().map(shown).collect();
    assert_eq!(variables, [(json!("API_KEY"), json!(true)), (json!("OF_FILE"), json!(true))]);
    let linked = desk.json(&["env", "list", "--deployment", "hello", "--resolve"]);
    assert_eq!(linked[0]["objectKey"], "warehouse", "{linked}");

    // The second time there are no values any more, and nothing is sent but the code.
    std::fs::remove_file(desk.folder().join("hello/.env")).unwrap();
    let before = updates(&desk);
    assert!(before.len() == 1 && before[0].contains("UpdateEnvironmentObject"), "{before:?}");
    let said = desk.deployed(&[], &[]);
    assert!(!said.contains("as podium.yaml says"), "{said}");
    assert_eq!(updates(&desk), before);
    assert_eq!(desk.hello()["platformRuntimeVersion"], "3.2.2", "the runtime stays");
}

#[test]
fn a_deployment_is_changed_to_what_the_file_names_and_only_that() {
    let desk = Desk::signed_in();
    let made = ["deployment", "create", "hello", "--runtime", "3.1.8", "--description", "Kept", "--wait"];
    desk.shown(&made);
    desk.shown(&["deployment", "update", "hello", "--variable", "STAGE=test", "--wait"]);
    desk.project(&format!("runtime: 3.2.0\n{QUEUES}variables: [STAGE, API_KEY]\n"));
    let said = desk.deployed(&[("API_KEY", HIDDEN), ("STAGE", HIDDEN)], &[]);
    assert!(said.contains("Changed hello as podium.yaml says: queues, variable API_KEY.\n"), "{said}");
    let moved = "This deploy moves hello to runtime 3.2.0 (from 3.1.8), as podium.yaml says.\n";
    assert!(said.contains(moved), "{said}");
    let hello = desk.hello();
    let found = (
        &hello["platformRuntimeVersion"],
        &hello["description"],
        &hello["workerQueues"][0]["maxWorkerCount"],
    );
    assert_eq!(found, (&json!("3.2.0"), &json!("Kept"), &json!(3)));
    let stage = &hello["environmentVariables"][1];
    assert_eq!((&stage["key"], &stage["value"]), (&json!("STAGE"), &json!("test")), "what is set is kept");
    // What is taken out of the file stays.
    desk.project("");
    desk.deployed(&[], &[]);
    let after = desk.hello();
    for field in ["platformRuntimeVersion", "workerQueues", "environmentVariables"] {
        assert_eq!(after[field], hello[field], "{field}");
    }
    desk.project("runtime: 3.1.8\n");
    let older = desk.deploys(&[], &[]);
    assert_eq!(older.code, Some(2), "{}", older.stderr);
    assert!(
        older.stderr.contains("  runtime: 3.2.0 cannot be moved to 3.1.8: choose from "),
        "{}",
        older.stderr
    );
    assert!(older.stderr.contains("podium deploy rollback"), "{}", older.stderr);
}

#[test]
fn everything_that_is_missing_is_named_before_anything_is_made() {
    let desk = Desk::signed_in();
    desk.connection("warehouse");
    desk.connection("lake");
    desk.shown(&[
        "env",
        "create",
        "lake",
        "--type",
        "AIRFLOW_VARIABLE",
        "--value",
        "x",
        "--workspace",
        "Default",
    ]);
    let pool = QUEUES.replace("platformMachine: A5", "nodePool: big");
    desk.project(&format!(
        "runtime: 9.9.9\n{pool}variables: [API_KEY, OTHER]\nlinks: [warehose, lake, CONNECTION/lake, x-y-z]\n"
    ));
    let expected = "podium: nothing was done: podium.yaml cannot be applied\n\
                    \x20 runtime: 9.9.9 is not offered: choose from 3.3.2, 3.3.1, 3.3.0, 3.2.2, 3.2.1 (podium deployment options)\n\
                    \x20 queues[0].nodePool: the deployment's cluster has no node pool big: see podium cluster get\n\
                    \x20 variables: API_KEY has no value: set it in the environment of this command, or in hello/.env\n\
                    \x20 variables: OTHER has no value: set it in the environment of this command, or in hello/.env\n\
                    \x20 links: no environment object has the key warehose: did you mean warehouse?\n\
                    \x20 links: lake is the key of several objects: write AIRFLOW_VARIABLE/lake or CONNECTION/lake\n\
                    \x20 links: no environment object that you may see has the key x-y-z: create it with podium env create, or correct the key\n";
    desk.refuses(&["deploy", "hello", "--create"], 2, expected);
    assert_eq!(desk.run(&["deployment", "list"]).stderr, "No results.\n");
    // The same for one that is there.
    desk.shown(&["deployment", "create", "hello", "--wait"]);
    desk.project("variables: [API_KEY]\nlinks: [warehouse]\n");
    let refused = desk.deploys(&[], &[]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(desk.json(&["env", "list", "--deployment", "hello", "--resolve"]).as_array().unwrap().is_empty());
}

#[test]
fn a_link_is_added_and_no_other_is_lost() {
    let desk = Desk::signed_in();
    desk.connection("warehouse");
    for name in ["hello", "other"] {
        desk.shown(&["deployment", "create", name, "--wait"]);
    }
    let other = desk.json(&["deployment", "get", "other"])["id"].clone();
    let link = json!([{ "scope": "DEPLOYMENT", "scopeEntityId": other, "overrides": { "connection": { "host": "elsewhere" } } }]);
    let object = ["env", "update", "warehouse", "--workspace", "Default"];
    desk.shown(&[&object[..], &["--set", &format!("links={link}")]].concat());
    desk.shown(&["env", "create", "STAGE", "--value", "test", "--link-all"]);
    desk.project("links: [connection/warehouse, STAGE]\n");
    let said = desk.deployed(&[], &[]);
    assert!(said.contains("Changed hello as podium.yaml says: link CONNECTION/warehouse.\n"), "{said}");
    let linked = desk.json(&["env", "get", "warehouse", "--workspace", "Default"])["links"].clone();
    assert_eq!(linked.as_array().unwrap().len(), 2, "{linked}");
    let kept = linked.as_array().unwrap().iter().find(|link| link["scopeEntityId"] == other).unwrap();
    assert_eq!(kept["connectionOverrides"]["host"], "elsewhere");
    assert!(!desk.deployed(&[], &[]).contains("as podium.yaml says"));
    desk.shown(&["env", "exclude", "STAGE", "hello", "--workspace", "Default"]);
    let said = desk.deployed(&[], &[]);
    assert!(said.contains("Changed hello as podium.yaml says: link STAGE.\n"), "{said}");
    assert!(!desk.deployed(&[], &[]).contains("as podium.yaml says"));
}

#[test]
fn who_may_only_deploy_can_as_long_as_nothing_differs() {
    let desk = Desk::signed_in();
    desk.connection("warehouse");
    desk.project(&format!("runtime: 3.2.2\n{QUEUES}variables: [API_KEY]\nlinks: [warehouse]\n"));
    desk.deployed(&[("API_KEY", HIDDEN)], &["--create"]);
    let author = desk.shown(&["token", "create", "ci", "--workspace", "Default", "--role", "author"]);
    let ci = [("PODIUM_TOKEN", author.trim()), ("PODIUM_URL", desk.url.as_str())];
    desk.deployed(&ci, &[]);
    desk.project("runtime: 3.3.2\n");
    let said = desk.deployed(&ci, &[]);
    assert!(said.contains("This deploy moves hello to runtime 3.3.2"), "{said}");
    desk.connection("lake");
    for (text, differs) in [(QUEUES.replace("3,", "4,"), "queues"), ("links: [lake]\n".into(), "link lake")] {
        desk.project(&text);
        let refused = desk.deploys(&ci, &[]);
        assert_eq!(refused.code, Some(4), "{}", refused.stderr);
        let message =
            format!("podium: hello differs from podium.yaml ({differs}), and you may not change that\n");
        assert!(refused.stderr.contains(&message), "{}", refused.stderr);
        assert!(refused.stderr.contains("\nNothing was deployed. Ask somebody who"), "{}", refused.stderr);
    }
}

#[test]
fn what_the_server_refuses_is_named_as_in_the_file() {
    let desk = Desk::signed_in();
    desk.project("queues:\n  - {name: big, minWorkerCount: 0, maxWorkerCount: 3, workerConcurrency: 5}\n");
    let refused = desk.deploys(&[], &["--create"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("workerQueues"), "{}", refused.stderr);
    assert!(refused.stderr.contains("In podium.yaml, workerQueues are `queues`"), "{}", refused.stderr);
}

#[test]
fn a_plan_of_a_deploy_says_what_the_file_changes() {
    let desk = Desk::signed_in();
    desk.shown(&["init", "hello"]);
    let create = |name: &str, more: &[&str]| {
        desk.shown(&[&["deployment", "create", name, "--runtime", "3.3.1", "--wait"], more].concat())
    };
    create("hello", &[]);
    let folder = desk.folder().join("hello");
    std::fs::write(folder.join("podium.yaml"), "deployment: hello\nruntime: 3.3.2\nvariables: [API_KEY]\n")
        .unwrap();
    let refused = desk.run(&["deploy", "hello", "--plan"]);
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("  variables: API_KEY has no value: "), "{}", refused.stderr);
    std::fs::write(folder.join(".env"), "API_KEY=hidden\n").unwrap();
    let planned = desk.run(&["deploy", "hello", "--plan"]);
    assert_eq!(
        (planned.code, planned.stderr.as_str()),
        (
            Some(0),
            "Nothing has been deployed yet: all 4 files are new.\n\
             podium.yaml changes the deployment: runtime 3.3.1 -> 3.3.2\n\
             podium.yaml changes the deployment: variable API_KEY\n\
             Nothing was changed.\n"
        )
    );
    create("asleep", &["--development"]);
    desk.shown(&["deployment", "hibernate", "asleep", "--wait"]);
    let asleep = desk.run(&["deploy", "hello", "--deployment", "asleep", "--plan"]);
    let said = "podium: asleep hibernates, and would refuse the deploy\n\
                To wake it for this deploy: podium deploy hello --deployment asleep --plan --wake\n";
    assert_eq!((asleep.code, asleep.stderr.as_str()), (Some(1), said));
    let created = desk.run(&["deploy", "hello", "--deployment", "fresh", "--create", "--plan"]);
    assert_eq!(created.code, Some(0), "{}", created.stderr);
    assert!(created.stderr.ends_with("Nothing was changed.\n"), "{}", created.stderr);
    assert_eq!(desk.run(&["deployment", "get", "fresh"]).code, Some(3));
}
