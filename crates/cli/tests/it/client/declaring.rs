//! `podium plan`, `apply` and `export`: what files declare, what is there, and what it takes to make them the same.

use super::Desk;

/// A file that declares one of everything.
const FILE: &str = "\
set: production
workspaces:
  - name: Reports
    description: Numbers
  - name: Archive
    defaultCluster: main
clusters:
  - name: main
    type: DEDICATED
    cloudProvider: AWS
    region: us-east-1
    vpcSubnetRange: 172.20.0.0/20
    tags:
      - key: owner
        value: data
    workspaces: [Archive]
roles:
  - name: Log reader
    scopeType: DEPLOYMENT
    permissions: [deployment.get, deployment.logs.get]
    restrictedWorkspaces: [reports]
users:
  - email: ada@example.com
  - email: bob@example.com
    organizationRole: ORGANIZATION_OWNER
    roles:
      - workspace: Archive
        role: WORKSPACE_MEMBER
teams:
  - name: Data
    description: The data team
    members: [ada@example.com, bob@example.com]
    roles:
      - workspace: Reports
        role: WORKSPACE_AUTHOR
      - workspace: Reports
        deployment: nightly
        role: Log reader
      - workspace: Reports
        deployment: nightly
        dag: load
        role: DAG_AUTHOR
deployments:
  - name: nightly
    workspace: Reports
    description: Every night
    executor: CELERY
    isDevelopmentMode: true
    environmentVariables:
      - key: STAGE
        value: production
      - key: API_KEY
        value: ${env:API_KEY}
        isSecret: true
    scalingSpec:
      hibernationSpec:
        schedules:
          - hibernateAtCron: 0 20 * * *
            wakeAtCron: 0 6 * * *
            isEnabled: true
environmentObjects:
  - objectKey: warehouse
    objectType: CONNECTION
    workspace: Reports
    connection:
      type: postgres
      host: db.example.com
      port: 5432
      login: loader
      password: ${env:WAREHOUSE_PASSWORD}
      extra:
        sslmode: require
    links:
      - deployment: nightly
        connection:
          host: replica.example.com
  - objectKey: GREETING
    objectType: ENVIRONMENT_VARIABLE
    workspace: Reports
    deployment: nightly
    environmentVariable:
      value: hello, ${env:API_KEY}
tokens:
  - name: ci
    workspace: Reports
    role: WORKSPACE_AUTHOR
    expiryPeriodInDays: 90
  - name: audit
    role: ORGANIZATION_MEMBER
    roles:
      - workspace: Archive
        role: WORKSPACE_MEMBER
";

const SECRETS: &[(&str, &str)] = &[("API_KEY", "k1"), ("WAREHOUSE_PASSWORD", "w1")];

impl Desk {
    fn declares(&self, file: &str) {
        std::fs::write(self.folder().join("file.yaml"), file).unwrap();
    }

    /// Applies the file; standard output and standard error.
    fn applies(&self, more: &[&str]) -> (String, String) {
        let done = self.run_as(SECRETS, &[&["apply", "-f", "file.yaml", "--yes"], more].concat());
        assert_eq!(done.code, Some(0), "{}{}", done.stdout, done.stderr);
        (done.stdout, done.stderr)
    }
}

#[test]
fn a_file_is_planned_and_applied_and_the_second_time_changes_nothing() {
    let desk = Desk::signed_in();
    desk.declares(FILE);
    let planned = desk.run_as(SECRETS, &["plan", "-f", "file.yaml"]);
    assert_eq!(planned.code, Some(0), "{}{}", planned.stdout, planned.stderr);
    assert_eq!(planned.stdout, PLANNED);
    assert!(planned.stderr.starts_with("To apply exactly this: podium apply c"), "{}", planned.stderr);
    assert_eq!(desk.shown(&["workspace", "list", "--output", "name"]), "Default\n", "a plan changes nothing");
    let (shown, said) = desk.applies(&["--no-wait"]);
    let (plan, values) = shown.split_at(PLANNED.len());
    assert_eq!(plan, PLANNED);
    let is_value =
        |line: &str, name: &str| line.starts_with(&format!("token {name}: ey")) || line.contains(name);
    assert!(values.lines().count() == 2 && is_value(values, "Reports/ci"), "{values}");
    assert!(said.contains("Invited ada@example.com. A link to accept: podium invite link c"), "{said}");
    assert!(said.ends_with("Applied: 12 created, 0 changed, 0 deleted.\n"), "{said}");
    // Names, secrets and defaults are recognized: even the variables of the secrets are not needed.
    let again = desk.run_as(&[("API_KEY", "k1")], &["apply", "-f", "file.yaml", "--yes"]);
    assert_eq!(
        (again.code, again.stdout.as_str(), again.stderr.as_str()),
        (Some(0), "", "Nothing to change.\n")
    );
    let members = desk.shown(&["team", "member", "list", "Data", "--output", "name", "--sort", "username"]);
    assert_eq!(members, "ada@example.com\nbob@example.com\n");
    let deployment = desk.json(&["deployment", "get", "nightly"]);
    assert_eq!(deployment["workspaceName"], "Reports");
}

#[test]
fn only_what_is_named_changes_and_the_plan_says_so() {
    let desk = Desk::signed_in();
    desk.declares(FILE);
    desk.applies(&["--no-wait"]);
    desk.declares(
        "set: production
workspaces:
  - name: Reports
    cicdEnforcedDefault: true
teams:
  - name: Data
    members: [bob@example.com]
deployments:
  - name: nightly
    workspace: Reports
    description: Each night
    environmentVariables:
      - key: STAGE
        value: test
      - key: API_KEY
        value: ${env:API_KEY}
        isSecret: true
environmentObjects:
  - objectKey: warehouse
    objectType: CONNECTION
    workspace: Reports
    connection:
      type: postgres
      host: other.example.com
tokens:
  - name: ci
    workspace: Reports
    description: For deploys
",
    );
    let (shown, _) = desk.applies(&["--no-wait"]);
    assert_eq!(shown, CHANGED);
    let workspace = desk.json(&["workspace", "get", "Reports"]);
    assert_eq!(
        (&workspace["description"], &workspace["cicdEnforcedDefault"]),
        (&"Numbers".into(), &true.into())
    );
    let object = desk.json(&["env", "get", "warehouse", "--workspace", "Reports"]);
    let connection = &object["connection"];
    assert_eq!((&connection["host"], &connection["login"]), (&"other.example.com".into(), &"loader".into()));
    let set = object["setFields"].to_string();
    assert!(set.contains("password") && set.contains("extra.sslmode"), "{set}");
    assert_eq!(object["links"].as_array().map(Vec::len), Some(1));
    assert_eq!(desk.applies(&[]).1, "Nothing to change.\n");
}

#[test]
fn another_spelling_of_a_name_finds_the_deployment_and_does_not_rename_it() {
    let desk = Desk::signed_in();
    desk.declares(FILE);
    desk.applies(&["--no-wait"]);
    desk.declares(
        "set: production
deployments:
  - name: NIGHTLY
    workspace: reports
    description: Each night
",
    );
    desk.applies(&["--no-wait"]);
    let deployment = desk.json(&["deployment", "get", "nightly"]);
    assert_eq!((&deployment["name"], &deployment["description"]), (&"nightly".into(), &"Each night".into()));
}

#[test]
fn an_export_applied_to_an_empty_server_reproduces_it() {
    let desk = Desk::signed_in();
    desk.declares(FILE);
    desk.applies(&["--no-wait"]);
    let exported = desk.shown(&["export"]);
    for secret in ["k1\n", "w1"] {
        assert!(!exported.replace("hello, k1", "").contains(secret), "{exported}");
    }
    assert!(exported.contains("value: ${env:REPORTS_NIGHTLY_API_KEY}"), "{exported}");
    let other = Desk::signed_in();
    other.declares(&exported);
    let secrets: &[(&str, &str)] = &[
        ("REPORTS_NIGHTLY_API_KEY", "k2"),
        ("REPORTS_WAREHOUSE_PASSWORD", "w2"),
        ("REPORTS_WAREHOUSE_SSLMODE", "require"),
    ];
    let applied = other.run_as(secrets, &["apply", "-f", "file.yaml", "--yes", "--no-wait"]);
    assert_eq!(applied.code, Some(0), "{exported}\n{}{}", applied.stdout, applied.stderr);
    assert_eq!(other.shown(&["export"]), exported);
    assert_eq!(desk.shown(&["export"]), exported, "stable");
    let again = other.run(&["apply", "-f", "file.yaml", "--yes"]);
    assert_eq!((again.code, again.stderr.as_str()), (Some(0), "Nothing to change.\n"));
    let json: serde_json::Value = serde_json::from_str(&desk.shown(&["export", "--output", "json"])).unwrap();
    assert_eq!(json["workspaces"][2]["name"], "Reports");
}

#[test]
fn a_plan_that_is_stale_is_refused() {
    let desk = Desk::signed_in();
    desk.shown(&["workspace", "create", "Reports"]);
    desk.declares("workspaces:\n  - name: Reports\n    description: Numbers\n");
    let plan = desk.json(&["plan", "-f", "file.yaml"]);
    let id = plan["planId"].as_str().unwrap();
    desk.shown(&["workspace", "update", "Reports", "--description", "Somebody was faster"]);
    let done = desk.run(&["apply", id, "--yes"]);
    assert_eq!((done.code, done.stdout.as_str()), (Some(5), ""), "{}", done.stderr);
    assert!(
        done.stderr.contains("has changed since") && done.stderr.contains("Nothing was changed"),
        "{}",
        done.stderr
    );
    assert!(done.stderr.ends_with("Make a new plan: podium plan -f FILE\n"), "{}", done.stderr);
    let plan = desk.json(&["plan", "-f", "file.yaml"]);
    let applied = desk.run(&["apply", plan["planId"].as_str().unwrap(), "--yes"]);
    assert_eq!((applied.code, applied.stderr.as_str()), (Some(0), "Applied 1 calls.\n"));
    assert_eq!(desk.json(&["workspace", "get", "Reports"])["description"], "Numbers");
    let hint =
        "podium plan -f FILE shows the id of the plan that it makes. To apply a file: podium apply -f FILE";
    for arguments in [&["apply", "nothing", "--yes"][..], &["apply", "nothing"]] {
        desk.refuses(arguments, 2, &format!("podium: \"nothing\" is not the id of a plan\n{hint}\n"));
    }
}

#[test]
fn pruning_deletes_what_the_set_owns_and_nothing_else() {
    let desk = Desk::signed_in();
    desk.declares("set: a\nworkspaces:\n  - name: One\n  - name: Two\nteams:\n  - name: Gone\n");
    desk.applies(&[]);
    desk.shown(&["workspace", "create", "By hand"]);
    desk.declares("set: a\nworkspaces:\n  - name: Two\n");
    assert_eq!(desk.applies(&[]).1, "Nothing to change.\n", "without --prune nothing is deleted");
    let (shown, said) = desk.applies(&["--prune"]);
    let expected = "\
- team Gone
- workspace One
  set a
    owns 1 resource
Plan: 0 to create, 0 to change, 2 to delete.
";
    assert_eq!((shown.as_str(), said.as_str()), (expected, "Applied: 0 created, 0 changed, 2 deleted.\n"));
    let left = desk.shown(&["workspace", "list", "--output", "name", "--sort", "name"]);
    assert_eq!(left, "By hand\nDefault\nTwo\n");
    desk.declares("set: b\nworkspaces:\n  - name: two\n");
    desk.refuses(
        &["apply", "-f", "file.yaml", "--yes"],
        2,
        "podium: file.yaml: workspaces[0] is owned by the set \"a\": declare it there, or take it out of that set first\n",
    );
    desk.declares("workspaces:\n  - name: Two\n");
    assert_eq!(desk.run(&["apply", "-f", "file.yaml", "--prune"]).code, Some(2), "there is no set");
}

#[test]
fn deployments_wait_for_the_cluster_that_is_declared_with_them() {
    let desk = Desk::signed_in();
    desk.declares(
        "\
workspaces:
  - name: Big
    defaultCluster: main
clusters:
  - { name: main, type: DEDICATED, cloudProvider: AWS, region: us-east-1, vpcSubnetRange: 172.20.0.0/20 }
deployments:
  - name: nightly
    workspace: Big
",
    );
    desk.refuses(
        &["apply", "-f", "file.yaml", "--yes"],
        2,
        "podium: file.yaml: deployments[0] runs on a cluster that is new, and a cluster must be ready before deployments are created on it\nApply fewer files at once, or several plans one after the other: --in-parts\n",
    );
    let (_, said) = desk.applies(&["--in-parts"]);
    assert!(said.starts_with("Applied: 2 created, 0 changed, 0 deleted.\n"), "{said}");
    assert!(said.ends_with("Applied: 1 created, 0 changed, 0 deleted.\n"), "{said}");
    assert_eq!(desk.json(&["deployment", "get", "nightly"])["clusterName"], "main");
    assert_eq!(desk.applies(&[]).1, "Nothing to change.\n");
}

#[test]
fn edits_made_elsewhere_are_shown_with_who_made_them() {
    let desk = Desk::signed_in();
    desk.declares("set: a\nworkspaces:\n  - name: One\n    description: As declared\n");
    desk.applies(&[]);
    desk.shown(&["workspace", "update", "One", "--description", "By hand"]);
    let shown = desk.shown(&["plan", "-f", "file.yaml"]);
    let drift = shown.lines().nth(1).unwrap();
    assert!(
        drift.starts_with("    edited by ") && drift.ends_with(", since this set was last applied"),
        "{shown}"
    );
    assert!(shown.contains("    description: \"By hand\" -> \"As declared\"\n"), "{shown}");
}

#[test]
fn a_refused_plan_changes_nothing_and_says_where() {
    let desk = Desk::signed_in();
    desk.declares("workspaces:\n  - name: One\n  - name: Two\n    defaultRegion: us-east-1\n");
    let done = desk.run(&["apply", "-f", "file.yaml", "--yes"]);
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("\n  file.yaml: workspaces[1]: workspace Two: "), "{}", done.stderr);
    assert_eq!(desk.shown(&["workspace", "list", "--output", "name"]), "Default\n");
    let member = desk.run(&["token", "create", "weak", "--role", "member"]).stdout;
    desk.declares("workspaces:\n  - name: One\n");
    let denied = desk.run_as(&[("PODIUM_TOKEN", member.trim())], &["apply", "-f", "file.yaml", "--yes"]);
    assert_eq!(denied.code, Some(4), "{}", denied.stderr);
}

#[test]
fn mistakes_in_files_are_named_with_line_and_column() {
    let desk = Desk::signed_in();
    let refused = |file: &str, code: i32, expected: &str| {
        desk.declares(file);
        let done = desk.run(&["plan", "-f", "file.yaml"]);
        assert_eq!((done.code, done.stdout.as_str()), (Some(code), ""), "{file}: {}", done.stderr);
        assert!(done.stderr.starts_with(expected), "{file}: {}", done.stderr);
    };
    refused("workspaces:\n  - name: a\n    descripton: b\n", 2, "podium: file.yaml:3:5: ");
    refused(
        "deployments:\n  - name: a\n    workspace: Defalt\n",
        2,
        "podium: file.yaml: deployments[0] names the workspace \"Defalt\", which neither exists nor is declared\nDid you mean \"Default\"?\n",
    );
    refused(
        "deployments:\n  - name: a\n    workspace: Default\n    description: ${env:NONE}\n",
        2,
        "podium: file.yaml: deployments[0].description refers to the environment variable NONE, which has no value\n",
    );
    refused(
        "tokens:\n  - name: a\n",
        2,
        "podium: file.yaml: tokens[0].role is missing: a new token needs a role\n",
    );
    desk.refuses(&["plan"], 2, "podium: no file was given\nName a file or a folder: -f FILE\n");
    std::fs::create_dir(desk.folder().join("many")).unwrap();
    desk.refuses(&["plan", "-f", "many"], 2, "podium: many has no .yaml, .yml or .json file\n");
    std::fs::write(desk.folder().join("many/a.yaml"), "workspaces:\n  - name: One\n").unwrap();
    std::fs::write(desk.folder().join("many/b.json"), "{\"teams\": [{\"name\": \"T\"}]}").unwrap();
    let shown = desk.shown(&["plan", "-f", "many"]);
    assert_eq!(shown, "+ workspace One\n+ team T\nPlan: 2 to create, 0 to change, 0 to delete.\n");
}

#[test]
fn more_than_a_plan_takes_is_applied_in_parts() {
    let desk = Desk::signed_in();
    let mut file = "set: many\nteams:\n".to_owned();
    for number in 0..110 {
        file.push_str(&format!("  - name: Team {number}\n"));
    }
    desk.declares(&file);
    desk.refuses(
        &["apply", "-f", "file.yaml", "--yes"],
        2,
        "podium: the changes take 110 calls, and a plan has at most 99\nApply fewer files at once, or several plans one after the other: --in-parts\n",
    );
    let (_, said) = desk.applies(&["--in-parts"]);
    assert_eq!(
        said,
        "Applied: 99 created, 0 changed, 0 deleted.\nApplied: 11 created, 0 changed, 0 deleted.\n"
    );
    desk.declares("set: many\nteams:\n  - name: Team 0\n");
    desk.applies(&["--in-parts", "--prune"]);
    assert_eq!(desk.shown(&["team", "list", "--output", "name"]), "Team 0\n", "the set owned both parts");
}

const PLANNED: &str = "\
+ workspace Reports
    description: \"Numbers\"
+ workspace Archive
+ cluster main
    type: \"DEDICATED\"
    cloudProvider: \"AWS\"
    region: \"us-east-1\"
    vpcSubnetRange: \"172.20.0.0/20\"
~ workspace Archive
    defaultClusterId: \"main\"
+ role Log reader
    scopeType: \"DEPLOYMENT\"
    permissions: [\"deployment.get\",\"deployment.logs.get\"]
+ user ada@example.com
+ user bob@example.com
+ team Data
    description: \"The data team\"
+ deployment Reports/nightly
    description: \"Every night\"
    isDevelopmentMode: true
    executor: \"CELERY\"
    environmentVariables: [{\"key\":\"API_KEY\",\"isSecret\":true},{\"key\":\"STAGE\",\"value\":\"production\",\"isSecret\":false}]
    scalingSpec: {\"hibernationSpec\":{\"schedules\":[{\"hibernateAtCron\":\"0 20 * * *\",\"wakeAtCron\":\"0 6 * * *\",\"isEnabled\":true}]}}
~ user bob@example.com
    workspaceRoles: [{\"role\":\"WORKSPACE_MEMBER\",\"workspaceId\":\"Archive\"}]
    ! What this user may do changes with the roles. (bob@example.com)
~ team Data
    workspaceRoles: [{\"role\":\"WORKSPACE_AUTHOR\",\"workspaceId\":\"Reports\"}]
    deploymentRoles: [{\"deploymentId\":\"Reports/nightly\",\"role\":\"Log reader\"}]
    dagRoles: [{\"dagId\":\"load\",\"deploymentId\":\"Reports/nightly\",\"role\":\"DAG_AUTHOR\"}]
    ! What the members of the team may do through it changes with its roles. (ada@example.com, bob@example.com)
+ environment object Reports/CONNECTION/warehouse
    links: [{\"scope\":\"DEPLOYMENT\",\"scopeEntityId\":\"Reports/nightly\",\"setFields\":[\"host\"],\"connectionOverrides\":{\"host\":\"replica.example.com\"}}]
    connection: {\"type\":\"postgres\",\"host\":\"db.example.com\",\"port\":5432,\"login\":\"loader\",\"password\":\"\",\"extra\":{\"sslmode\":\"\"}}
+ environment object Reports/nightly/ENVIRONMENT_VARIABLE/GREETING
    environmentVariable: {\"value\":\"hello, k1\",\"isSecret\":false}
+ token Reports/ci
+ token audit
~ token audit
    roles[Archive]: {\"entityType\":\"WORKSPACE\",\"entityId\":\"Archive\",\"role\":\"WORKSPACE_MEMBER\"}
    ! What programs with this token may do changes with its roles. (audit)
  set production
    owns 10 resources
Plan: 12 to create, 0 to change, 0 to delete.
";

const CHANGED: &str = "\
~ workspace Reports
    cicdEnforcedDefault: false -> true
~ team Data
    removes the member ada@example.com
    ! The member loses what the roles of Data allow.
~ deployment Reports/nightly
    description: \"Every night\" -> \"Each night\"
    environmentVariables[STAGE].value: \"production\" -> \"test\"
    ! All components restart; workers and the scheduler first wait for running tasks, up to the deployment's grace period. (all)
~ environment object Reports/CONNECTION/warehouse
    connection.host: \"db.example.com\" -> \"other.example.com\"
~ token Reports/ci
    description: \"\" -> \"For deploys\"
  set production
    owns 10 resources
Plan: 0 to create, 5 to change, 0 to delete.
";
