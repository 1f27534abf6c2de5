//! Files that come from a set and go back to it, and plans that a pipeline asks about.

use serde_json::Value;

use super::Desk;

const OWNED: &str = "\
set: production
workspaces:
  - name: Reports
environmentObjects:
  - objectKey: warehouse
    objectType: CONNECTION
    workspace: Reports
    connection:
      type: postgres
      host: db.example.com
      password: ${env:DATABASE_PASSWORD}
  - objectKey: TOKEN
    objectType: ENVIRONMENT_VARIABLE
    workspace: Reports
    environmentVariable:
      value: ${env:TOKEN_OF_THE_API}
      isSecret: true
";

const SECRETS: [(&str, &str); 2] = [("DATABASE_PASSWORD", "one"), ("TOKEN_OF_THE_API", "two")];

fn write(desk: &Desk, text: &str) {
    std::fs::write(desk.folder().join("file.yaml"), text).unwrap();
}

#[test]
fn a_set_exports_what_it_owns_with_the_variables_of_its_files() {
    let desk = Desk::signed_in();
    write(&desk, OWNED);
    let applied = desk.run_as(&SECRETS, &["apply", "-f", "file.yaml", "--yes"]);
    assert_eq!(applied.code, Some(0), "{}", applied.stderr);
    desk.shown(&["workspace", "create", "Elsewhere"]);
    let exported: Value =
        serde_json::from_str(&desk.shown(&["export", "--set", "production", "--output", "json"])).unwrap();
    assert_eq!(exported["set"], "production");
    let names: Vec<&Value> =
        exported["workspaces"].as_array().unwrap().iter().map(|it| &it["name"]).collect();
    assert_eq!(names, ["Reports"], "neither Default nor Elsewhere is the set's");
    let objects = exported["environmentObjects"].as_array().unwrap();
    let of = |key: &str| objects.iter().find(|it| it["objectKey"] == key).unwrap();
    assert_eq!(of("warehouse")["connection"]["password"], "${env:DATABASE_PASSWORD}");
    assert_eq!(of("TOKEN")["environmentVariable"]["value"], "${env:TOKEN_OF_THE_API}");

    write(&desk, &desk.shown(&["export", "--set", "production"]));
    let again = desk.run(&["plan", "-f", "file.yaml", "--exit-code"]);
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), "Nothing to change.\n"), "{}", again.stdout);
    let all: Value = serde_json::from_str(&desk.shown(&["export", "--output", "json"])).unwrap();
    assert_eq!((all.get("set"), all["workspaces"].as_array().unwrap().len()), (None, 3));
    desk.refuses(
        &["export", "--set", "prodction"],
        3,
        "podium: there is no set called \"prodction\"\nDid you mean \"production\"?\n",
    );
}

#[test]
fn a_plan_names_every_variable_that_has_no_value() {
    let desk = Desk::signed_in();
    write(&desk, OWNED);
    let missing = "podium: 2 environment variables have no value\n  \
                   DATABASE_PASSWORD: file.yaml: environmentObjects[0].connection.password\n  \
                   TOKEN_OF_THE_API: file.yaml: environmentObjects[1].environmentVariable.value\n\
                   Set them for this command: NAME=...\n";
    desk.refuses(&["plan", "-f", "file.yaml"], 2, missing);
    let one = desk.run_as(&SECRETS[..1], &["plan", "-f", "file.yaml"]);
    assert_eq!(one.code, Some(2));
    let said = "podium: file.yaml: environmentObjects[1].environmentVariable.value refers to the environment variable \
                TOKEN_OF_THE_API, which has no value\nSet it for this command: TOKEN_OF_THE_API=...\n";
    assert_eq!(one.stderr, said);
}

#[test]
fn a_plan_that_differs_ends_so_where_that_is_asked_for() {
    let desk = Desk::signed_in();
    write(&desk, "workspaces:\n  - name: Declared\n");
    let plan = ["plan", "-f", "file.yaml", "--exit-code"];
    let differs = desk.run(&plan);
    assert_eq!(differs.code, Some(8), "{}", differs.stderr);
    assert!(differs.stdout.contains("Plan: 1 to create"), "{}", differs.stdout);
    desk.shown(&["apply", "-f", "file.yaml", "--yes"]);
    let same = desk.run(&plan);
    assert_eq!((same.code, same.stderr.as_str()), (Some(0), "Nothing to change.\n"));
}
